"""The cluster as the engine reads it: columns, one row per node.

`View` is only read here; `cluster.Columns` is the one that changes it. Words are interned when
they first appear, so rules compare small integers. A row without a node object (`known` is False)
holds pods that claim to run on a node nobody knows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from operator import methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from podium.engine.state.accounting import NATIVE
from podium.engine.state.affinity_terms import carried_terms
from podium.engine.state.catalog import Catalog
from podium.engine.state.disk_users import DiskUsers
from podium.engine.state.pod_class import (
    ANY_IP,
    Incoming,
    PodClass,
    Port,
    Resident,
    class_key,
    volume_matters,
)
from podium.engine.state.selector_index import Anchor, ByAnchor, ByLabel, anchor
from podium.engine.state.tallies import CarriedTerm, LabelColumn, LabelSet, PodTerm, Tally
from podium.engine.state.verdicts import Verdicts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

    from podium.engine.state.accounting import Accounting
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod


class FactColumn:
    """An interned fact per row, such as its list of taints."""

    __slots__ = ("ids", "index", "values")

    def __init__(self, capacity: int, absent: Any) -> None:
        self.ids = np.zeros(capacity, np.int32)
        self.values: list[Any] = [absent]
        self.index: dict[Any, int] = {absent: 0}

    def put(self, row: int, value: Any) -> None:
        """Set the fact of a row."""
        found = self.index.get(value)
        if found is None:
            found = self.index[value] = len(self.values)
            self.values.append(value)
        self.ids[row] = found


class ImageState(NamedTuple):
    """What nodes remember of an image: its size and how many nodes had it at that time."""

    size: int
    nodes: int


class Facts:
    """The interned facts of nodes, one column each."""

    def __init__(self, capacity: int) -> None:
        self.taints = FactColumn(capacity, ())
        self.conditions = FactColumn(capacity, ())
        self.pressures = FactColumn(capacity, frozenset())
        self.unschedulable = FactColumn(capacity, False)  # noqa: FBT003 - the absent value
        self.zone = FactColumn(capacity, "")
        self.avoid = FactColumn(capacity, "")
        self.attach_limits = FactColumn(capacity, ())
        self.features = FactColumn(capacity, frozenset())

    def columns(self) -> list[FactColumn]:
        """All of them, to grow together."""
        return list(vars(self).values())


class View:
    """Columns of the cluster, and the vocabularies behind them."""

    def __init__(self, accounting: Accounting, capacity: int = 64) -> None:
        self.accounting = accounting
        self.capacity = capacity
        self.catalog = Catalog()
        self.verdicts = Verdicts()
        self.names: list[str] = []
        self.row_of: dict[str, int] = {}
        self.nodes: list[Node | None] = []
        #: Their labels; none where there is no node.
        self.node_labels: list[Mapping[str, str]] = []
        self.known = np.zeros(capacity, np.bool_)
        #: Rows that hold pods but have no node object.
        self.ghosts: set[int] = set()
        #: The rows of all nodes, in node order.
        self.order = np.zeros(0, np.int64)

        self.resources: dict[str, int] = {name: i for i, name in enumerate(NATIVE)}
        self.allocatable = [np.zeros(capacity, np.int64) for _ in NATIVE]
        self.requested = [np.zeros(capacity, np.int64) for _ in NATIVE]
        self.assumed = [np.zeros(capacity, np.int64) for _ in range(2)]
        self.pod_count = np.zeros(capacity, np.int64)
        self.allowed_pods = np.zeros(capacity, np.int64)
        self.facts = Facts(capacity)
        self.label_columns: dict[str, LabelColumn] = {}

        self.residents: list[list[Resident]] = []
        self.pod_total = 0
        self.ports: list[set[Port]] = []
        self.port_rows: dict[Port, set[int]] = {}
        #: Protocol and number -> ip, protocol and number -> how many pods name that port.
        self.port_users: dict[tuple[str, int], Counter[Port]] = defaultdict(Counter)
        #: Rows with pods that have volumes -> how many such pods.
        self.volume_rows: dict[int, int] = {}
        #: Rows where pods with volumes came or went, and nodes did; the oldest are dropped.
        self.volume_journal: list[int] = []
        self.volume_journal_start = 0
        #: What rules keep about rows between decisions, by the key of the rule.
        self.ledgers: dict[Hashable, Any] = {}
        #: What reserve rules set aside: uid of the pod -> name of the rule -> what it reserved.
        self.reservations: dict[str, Mapping[str, object]] = {}
        self.disk_users = DiskUsers()
        #: (namespace, claim) -> row -> how many pods there use it.
        self.claim_users: dict[tuple[str, str], dict[int, int]] = {}
        #: Image name -> row -> what that node remembers of it.
        self.images: dict[str, dict[int, ImageState]] = {}
        #: Image name -> its size as first reported, and the rows that have it.
        self.image_registry: dict[str, tuple[int, set[int]]] = {}
        #: Pods promised to a node, by its name, in order of nomination.
        self.nominated: dict[str, list[Resident]] = {}

        self.classes: dict[bytes, PodClass] = {}
        #: The same by number.
        self.class_list: dict[int, PodClass] = {}
        #: How many classes there ever were.
        self.class_total = 0
        self._last: tuple[Pod | None, PodClass] = (None, PodClass())
        self._once: tuple[Any, bool] = (None, True)
        self.label_sets: dict[tuple[Any, ...], LabelSet] = {}
        self._labelled: ByLabel[LabelSet] = ByLabel()
        self.tallies: dict[object, Tally] = {}
        #: The same, with what each of them counts.
        self._counting: ByAnchor[tuple[Tally, Callable[[LabelSet], bool]]] = ByAnchor()
        self.carried: ByAnchor[CarriedTerm] = ByAnchor()
        #: Those of them whose selector cannot be compiled.
        self.invalid_carried: list[CarriedTerm] = []
        self._carried_index: dict[object, CarriedTerm] = {}

        #: Raised whenever rows come or go: nothing computed before holds then.
        self.epoch = 0
        #: How often a node changed.
        self.node_changes = 0
        #: Rows that changed, oldest first: `row` when its pods did, `~row` when the node did.
        self.journal: list[int] = []
        #: How many journal entries were dropped from the front.
        self.journal_start = 0

    # Vocabularies ---------------------------------------------------------------------------

    def resource(self, name: str) -> int:
        """The column of a resource, made on first use."""
        found = self.resources.get(name)
        if found is None:
            found = self.resources[name] = len(self.resources)
            self.allocatable.append(np.zeros(self.capacity, np.int64))
            self.requested.append(np.zeros(self.capacity, np.int64))
        return found

    def label_column(self, key: str) -> LabelColumn:
        """The column of a label key, made on first use."""
        column = self.label_columns.get(key)
        if column is None:
            column = self.label_columns[key] = LabelColumn(self.capacity)
            column.fill(list(map(methodcaller("get", key), self.node_labels)))
        return column

    def pod_class(self, pod: Pod, host: str = "") -> PodClass:
        """The class of a pod, made on first use."""
        if pod is self._last[0] and host == self._last[1].host:
            return self._last[1]  # decided and then placed: the same pod twice in a row
        key = class_key(pod, host)
        found = self.classes.get(key)
        if found is None:
            found = self.classes[key] = self._compile(pod, host)
            self.class_list[found.id] = found
        self._last = (pod, found)
        return found

    def incoming(self, pod: Pod) -> Incoming:
        """A pod to decide about."""
        return Incoming(pod, self.pod_class(pod, pod.spec.node_name))

    def resident(self, pod: Pod, row: int) -> Resident:
        """The record of a pod on a row."""
        cls = self.pod_class(pod)
        resident = Resident(pod, cls, cls.labels, row)
        if pod.terminating:
            self.mark(resident)
        return resident

    def mark(self, resident: Resident) -> None:
        """Count a pod as one that is being deleted."""
        cls = resident.cls
        if cls.terminating_labels is None:
            labels = cls.labels
            cls.terminating_labels = self.label_set(
                labels.namespace, dict(labels.labels), terminating=True
            )
        resident.labels = cls.terminating_labels
        resident.terminating = True

    def label_set(self, namespace: str, labels: dict[str, str], *, terminating: bool) -> LabelSet:
        """The set of pods with these labels, made on first use."""
        key = (namespace, terminating, *sorted(labels.items()))
        found = self.label_sets.get(key)
        if found is None:
            found = self.label_sets[key] = LabelSet(namespace, labels, terminating=terminating)
            self._labelled.add(found, labels)
            for tally, matches in self._counting.likely(labels):
                if matches(found):
                    found.tallies.append(tally)
        return found

    def _compile(self, pod: Pod, host: str) -> PodClass:
        cls = PodClass()
        cls.host = host
        cls.id = self.class_total
        self.class_total += 1
        cls.namespace = pod.namespace
        cls.priority = pod.priority
        cls.owner = pod.metadata.controller()
        cls.sample = pod
        cls.spec = pod.spec
        taken = self.accounting.taken(pod)
        scalars = [(self.resource(name), number) for name, number in taken.scalars.items()]
        cls.taken = tuple(pair for pair in [*enumerate(taken.native), *scalars] if pair[1])
        cls.assumed = self.accounting.assumed(pod)
        wanted = self.accounting.wanted(pod)
        cls.wanted = (wanted.native[0], wanted.native[1], wanted.native[2])
        cls.scalars = {self.resource(name): number for name, number in wanted.scalars.items()}
        cls.ports = self.accounting.ports(pod)
        cls.volumes = tuple(v for v in pod.spec.volumes or () if volume_matters(v))
        cls.labels = self.label_set(pod.namespace, pod.labels, terminating=False)
        cls.terminating_labels = None
        cls.memo = {}
        accounting = self.accounting
        terms = carried_terms(cls, accounting.term, drop_invalid=accounting.drops_invalid_terms)
        cls.carried = tuple(self._carry(*carried) for carried in terms)
        return cls

    def _carry(self, kind: str, weight: int, term: PodTerm) -> CarriedTerm:
        key = (kind, weight, term.key)
        found = self._carried_index.get(key)
        if found is None:
            tally = Tally(self.capacity, self.label_column)
            found = self._carried_index[key] = CarriedTerm(kind, weight, term, tally)
            tally.carried = found
            self.carried.add(found, anchor(term.selector))
            if term.error:
                self.invalid_carried.append(found)
        return found

    def tally(
        self,
        key: object,
        matches: Callable[[LabelSet], bool],
        insists: Callable[[], Anchor] = lambda: None,
    ) -> Tally:
        """The count of pods whose label set `matches`; equal keys share one tally.

        Label sets without any of the labels that it `insists` on never match.
        """
        found = self.tallies.get(key)
        if found is not None:
            return found
        tally, wanted = Tally(self.capacity, self.label_column), insists()
        for labels in self._labelled.likely(wanted):
            if not matches(labels):
                continue
            labels.tallies.append(tally)
            tally.add_all(labels.rows)
        self.tallies[key] = tally
        self._counting.add((tally, matches), wanted)
        return tally

    def keep(
        self, label_sets: Callable[[LabelSet], bool], carried: Callable[[CarriedTerm], bool]
    ) -> None:
        """Forget all other label sets and terms, and every tally of label sets."""
        self.tallies, self._counting = {}, ByAnchor()
        self.label_sets = {key: each for key, each in self.label_sets.items() if label_sets(each)}
        self._labelled = ByLabel()
        for labels in self.label_sets.values():
            self._labelled.add(labels, labels.labels)
            labels.start_afresh()
        terms = [term for term in self.carried if carried(term)]
        self._carried_index = {(t.kind, t.weight, t.term.key): t for t in terms}
        self.carried = ByAnchor()
        self.invalid_carried = [term for term in terms if term.term.error]
        for term in terms:
            self.carried.add(term, anchor(term.term.selector))
            term.tally.start_afresh()

    @property
    def changes(self) -> int:
        """How often anything changed about nodes and the pods on them."""
        return self.journal_start + len(self.journal)

    def names_once(self, order: np.ndarray) -> bool:
        """Whether an order names no row twice; remembered for the order last asked about."""
        if self._once[0] is not order:
            self._once = (order, len(np.unique(order)) == len(order))
        return self._once[1]

    # Reading ----------------------------------------------------------------------------------

    def ports_like(self, wanted: Port) -> Collection[Port]:
        """The host ports that pods name and that this one is in conflict with."""
        ip, protocol, number = wanted
        found: Collection[Port] = self.port_users.get((protocol, number), ())
        if ip == ANY_IP or not found:
            return found
        return [port for port in (wanted, (ANY_IP, protocol, number)) if port in found]

    def ghosts_by_name(self) -> list[int]:
        """The rows without a node object, by the name of the node they stand for."""
        return sorted(self.ghosts, key=lambda row: self.names[row])

    def rows_named(self, names: Sequence[str]) -> np.ndarray:
        """The rows of these nodes, in this order."""
        return np.fromiter(map(self.row_of.__getitem__, names), np.int64, len(names))

    def names_of(self, rows: np.ndarray) -> tuple[str, ...]:
        """The names of the nodes on these rows, in this order."""
        return tuple(map(self.names.__getitem__, rows.tolist()))
