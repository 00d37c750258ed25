"""What a user's rule is given: the pod, one node, or some nodes as columns.

A rule says what its answer depends on, and is shown no more than that: a rule that depends on the
node alone does not see the pods there. A rule whose answer is kept for a class of pods does not see
what differs within the class (names, annotations). Amounts are plain integers: cpu in thousandths
of a core, everything else in units (memory in bytes).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
import numpy as np

from podium.engine.rows.rows import ManyRows, OneRow
from podium.engine.state.accounting import NATIVE
from podium.engine.state.journal import Follower, rows_in
from podium.engine.state.label_column import ABSENT
from podium.engine.state.pod_class import volume_matters
from podium.engine.state.view import KeptInView

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from podium.engine.state.pod_class import Incoming, Resident
    from podium.engine.state.view import View
    from podium.objects.kinds.node import Node, Taint
    from podium.objects.kinds.pod import Pod, PodSpec, Volume

NOTHING: Mapping[str, str] = {}


class HiddenError(AttributeError):
    """A rule looked at something that it said it does not depend on."""


#: What pods of one class may differ in.
_OF_ONE_POD: Final = frozenset(
    {"priority_class_name", "scheduler_name", "scheduling_gates", "scheduling_group"}
)


class SpecOfClass:
    """The specification of a pod, as far as all pods of its class have the same."""

    __slots__ = ("_spec",)

    def __init__(self, spec: PodSpec) -> None:
        self._spec = spec

    def __getattr__(self, name: str) -> Any:
        if name in _OF_ONE_POD:
            raise HiddenError(
                f"spec.{name} differs among pods that share an answer; "
                'say depends="cluster" to be asked about every pod'
            )
        return getattr(self._spec, name)

    @property
    def priority(self) -> int:
        """The priority; none means 0."""
        return self._spec.priority or 0

    @property
    def volumes(self) -> list[Volume]:
        """The volumes that scheduling looks at, without their names."""
        volumes = filter(volume_matters, self._spec.volumes or ())
        return [msgspec.structs.replace(each, name="") for each in volumes]


class RulePod:
    """The pod to be placed."""

    __slots__ = (
        "_class_only",
        "_pod",
        "_view",
        "labels",
        "namespace",
        "prepared",
        "priority",
        "spec",
    )

    def __init__(self, pod: Incoming, view: View, *, class_only: bool) -> None:
        self._pod = pod
        self._view = view
        self._class_only = class_only
        self.namespace: str = pod.cls.namespace
        self.labels: Mapping[str, str] = pod.pod.labels
        self.priority: int = pod.priority
        self.spec: PodSpec = pod.pod.spec
        if class_only:
            self.spec = cast("PodSpec", SpecOfClass(self.spec))
        #: What `prepare` of the rule returned for this pod.
        self.prepared: Any = None

    @property
    def object(self) -> Pod:
        """The whole pod, as far as scheduling reads it."""
        if self._class_only:
            raise HiddenError(
                "names and annotations differ among pods that share an answer; "
                'say depends="cluster" to be asked about every pod'
            )
        return self._pod.pod

    @property
    def name(self) -> str:
        """Its name."""
        return self.object.name

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations."""
        return self.object.metadata.annotations or NOTHING

    def requests(self, resource: str) -> int:
        """How much of a resource it must find free."""
        if resource in NATIVE:
            return self._pod.cls.wanted[NATIVE.index(resource)]
        column = self._view.nodes.resources.get(resource)
        return 0 if column is None else self._pod.cls.scalars.get(column, 0)


class PlacedPod(msgspec.Struct, frozen=True):
    """A pod on a node."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    priority: int
    terminating: bool


def _placed(pod: Resident) -> PlacedPod:
    namespace, _, name = pod.key.partition("/")
    return PlacedPod(namespace, name, pod.labels.labels, pod.priority, pod.terminating)


class NodeFacts:
    """One node without its pods."""

    __slots__ = ("_at", "annotations", "labels", "name", "object")

    def __init__(self, at: OneRow) -> None:
        node = at.view.nodes.objects[at.row]
        assert node is not None, "rules are asked about known nodes only"
        self._at = at
        self.object: Node = node
        self.name: str = node.name
        self.labels: Mapping[str, str] = node.labels
        self.annotations: Mapping[str, str] = node.metadata.annotations or NOTHING

    @property
    def taints(self) -> list[Taint]:
        """Its taints."""
        return self.object.spec.taints or []

    @property
    def unschedulable(self) -> bool:
        """Whether it is cordoned."""
        return self.object.spec.unschedulable

    def condition(self, kind: str) -> str:
        """`True`, `False` or `Unknown` as reported; empty when it is not."""
        reported = self.object.status.conditions or ()
        return next((each.status for each in reported if each.type == kind), "")

    def allocatable(self, resource: str) -> int:
        """How much of a resource it has for pods."""
        column = self._at.view.nodes.resources.get(resource)
        return 0 if column is None else int(self._at.allocatable(column))

    def __getattr__(self, name: str) -> Any:
        if name in {"free", "pod_count", "pods", "requested", "reserved"}:
            raise HiddenError(
                f'node.{name} depends on the pods there; say depends="pods" or "cluster"'
            )
        raise AttributeError(f"a node has no {name!r}")


class RuleNode(NodeFacts):
    """One node and what runs on it."""

    __slots__ = ()

    def requested(self, resource: str) -> int:
        """How much of a resource its pods have asked for."""
        column = self._at.view.nodes.resources.get(resource)
        return 0 if column is None else int(self._at.requested(column))

    def free(self, resource: str) -> int:
        """How much of a resource is allocatable and not requested."""
        return self.allocatable(resource) - self.requested(resource)

    @property
    def pod_count(self) -> int:
        """How many pods it holds."""
        return int(self._at.pod_count())

    @property
    def pods(self) -> list[PlacedPod]:
        """The pods on it, in their order."""
        return [_placed(pod) for pod in self._at.residents()]

    def reserved(self, rule: str) -> dict[str, Any]:
        """What a reserve rule has set aside here: namespace/name of the pod -> what it reserved."""
        kept = self._at.view.pods.reservations
        here = ((pod.key, kept[pod.uid]) for pod in self._at.residents() if pod.uid in kept)
        return {key: found[rule].value for key, found in here if rule in found}


def _looked_up(ids: np.ndarray, values: list[Any], answer: Callable[[Any], Any]) -> np.ndarray:
    """The answer for the value behind each id."""
    present = np.flatnonzero(np.bincount(ids, minlength=1))
    answers = np.array([answer(values[i]) for i in present.tolist()])
    place = np.zeros(len(values), np.int64)
    place[present] = np.arange(len(present))
    found: np.ndarray = answers[place[ids]]
    return found


class _PerNode:
    """What a function of one node answers for each row, kept until the row changes."""

    __slots__ = ("_follower", "_function", "_kind", "_known", "_values")

    def __init__(self, function: Callable[[Any], Any], kind: type[NodeFacts]) -> None:
        self._function = function
        self._kind = kind
        self._follower: Follower[int] | None = None
        self._values = np.zeros(0, np.int64)
        #: The rows whose answers are kept.
        self._known = np.zeros(0, np.bool_)

    def at(self, view: View, rows: np.ndarray) -> np.ndarray:
        """The answers for these rows, computed again where the journal notes a change."""
        journal = view.journal
        if self._follower is None or not self._follower.follows(journal.rows):
            self._follower = Follower(journal.rows, journal)
        news = self._follower.news()
        if news is None:
            self._known = np.zeros(view.nodes.capacity, np.bool_)
        elif news:
            self._known[[*rows_in(news)]] = False
        missing = rows[~self._known[rows]]
        if len(missing) and not self._put(view, missing):
            self._known[:] = False
            self._put(view, rows)
        found: np.ndarray = self._values[rows]
        return found

    def _put(self, view: View, rows: np.ndarray) -> bool:
        """Compute the answers for some rows; False if they need another type of array."""
        made = np.array([self._function(self._kind(OneRow(view, row))) for row in rows.tolist()])
        if not self._known.any():
            self._values = np.zeros((view.nodes.capacity, *made.shape[1:]), made.dtype)
        elif made.shape[1:] != self._values.shape[1:] or not np.can_cast(
            made.dtype, self._values.dtype
        ):
            return False
        self._values[rows] = made
        self._known[rows] = True
        return True


#: By the function and the kind of nodes that it gets.
_PER_NODE: KeptInView[_PerNode] = KeptInView()


def _per_node(
    at: ManyRows | OneRow,
    rows: np.ndarray,
    function: Callable[[Any], Any],
    kind: type[NodeFacts],
) -> np.ndarray:
    """The answers of a function for some rows; those of rows on trial are never kept."""
    if at.modified:
        assert isinstance(at, OneRow), "rules of users are tried on one row at a time"
        return np.array([function(kind(at))])
    kept = _PER_NODE.of(at.view, (function, kind), lambda: _PerNode(function, kind))
    return kept.at(at.view, rows)


class NodeArrays:
    """Some nodes without their pods: every answer is an array with one entry per node."""

    __slots__ = ("_at", "_rows")

    def __init__(self, at: ManyRows | OneRow) -> None:
        self._at = at
        self._rows = at.index if isinstance(at, ManyRows) else np.array([at.row])

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def names(self) -> list[str]:
        """Their names."""
        names = self._at.view.nodes.names
        return [names[row] for row in self._rows.tolist()]

    @property
    def objects(self) -> list[Node]:
        """The node objects; reading them one by one gives the speed of columns away."""
        nodes = self._at.view.nodes.objects
        return [node for row in self._rows.tolist() if (node := nodes[row]) is not None]

    def label(self, key: str, answer: Callable[[str | None], Any]) -> np.ndarray:
        """The answer for each node's value of a label, None where it has none.

        Asked once per value that some of these nodes have.
        """
        column = self._at.view.nodes.label_column(key)
        return _looked_up(column.ids[self._rows], column.values, answer)

    def has_label(self, key: str, *values: str) -> np.ndarray:
        """Whether the node has the label, with one of these values if any are given."""
        column = self._at.view.nodes.label_column(key)
        ids = column.ids[self._rows]
        found: np.ndarray = ids != ABSENT
        if values:
            wanted = [column.index[value] for value in values if value in column.index]
            found = ids == wanted[0] if len(wanted) == 1 else np.isin(ids, wanted)
        return found

    def has_taint(self, key: str, effect: str = "") -> np.ndarray:
        """Whether the node has a taint of this key."""
        column = self._at.view.nodes.facts.taints
        return _looked_up(
            column.ids[self._rows],
            column.values,
            lambda taints: any(t.key == key and effect in {"", t.effect} for t in taints),
        )

    def allocatable(self, resource: str) -> np.ndarray:
        """How much of a resource each node has for pods."""
        column = self._at.view.nodes.resources.get(resource)
        return self._column(0 if column is None else self._at.allocatable(column))

    def each(self, function: Callable[[Any], Any]) -> np.ndarray:
        """What a function answers for each node: one number, or equally many for every node.

        The function is given one node, as a rule without columns is. It is asked again only about
        nodes that changed, so it must be one that lives as long as the rule, and depend on nothing
        else: no `lambda`, no function made in the rule.
        """
        return _per_node(self._at, self._rows, function, NodeFacts)

    def full(self, value: int | bool) -> np.ndarray:  # noqa: FBT001 - a constant column
        """The same value for each node."""
        return np.full(len(self._rows), value)

    def _column(self, value: Any) -> np.ndarray:
        column = np.asarray(value)
        same = column.shape == self._rows.shape
        return column if same else np.broadcast_to(column, self._rows.shape)

    def __getattr__(self, name: str) -> Any:
        if name in {"free", "pod_count", "requested"}:
            raise HiddenError(
                f'nodes.{name} depends on the pods there; say depends="pods" or "cluster"'
            )
        raise AttributeError(f"columns of nodes have no {name!r}")


class RuleColumns(NodeArrays):
    """Some nodes and what runs on them, as columns."""

    __slots__ = ()

    def each(self, function: Callable[[Any], Any]) -> np.ndarray:
        """As above; the function also sees the pods on the node, and what is reserved there."""
        return _per_node(self._at, self._rows, function, RuleNode)

    def requested(self, resource: str) -> np.ndarray:
        """How much of a resource the pods of each node have asked for."""
        column = self._at.view.nodes.resources.get(resource)
        return self._column(0 if column is None else self._at.requested(column))

    def free(self, resource: str) -> np.ndarray:
        """How much of a resource is allocatable and not requested."""
        left: np.ndarray = self.allocatable(resource) - self.requested(resource)
        return left

    @property
    def pod_count(self) -> np.ndarray:
        """How many pods each node holds."""
        return self._column(self._at.pod_count())


class KnownNodes:
    """The nodes of a view as rules see them, made once and kept while the nodes stay the same."""

    __slots__ = ("_kind", "_known", "_last", "_state", "_view")

    def __init__(self, view: View, kind: type[NodeFacts]) -> None:
        self._view = view
        self._kind = kind
        self._state = (-1, -1)
        self._known: dict[int, NodeFacts] = {}
        self._last: tuple[np.ndarray | None, list[NodeFacts]] = (None, [])

    def at(self, index: np.ndarray) -> list[NodeFacts]:
        """The nodes of these rows, in order."""
        view = self._view
        state = (view.journal.epoch, view.journal.node_changes)
        if self._state != state:
            self._state, self._last = state, (None, [])
            objects = view.nodes.objects
            self._known = {
                row: known
                for row, known in self._known.items()
                if row < len(objects) and known.object is objects[row]
            }
        if self._last[0] is index:
            return self._last[1]
        rows = index.tolist()
        known = self._known
        for row in rows:
            if row not in known:
                known[row] = self._kind(OneRow(view, row))
        found = [known[row] for row in rows]
        self._last = (index, found)
        return found


#: By the kind of nodes.
_KNOWN_NODES: KeptInView[KnownNodes] = KeptInView()


def known_nodes(view: View, kind: type[NodeFacts], rows: np.ndarray) -> list[NodeFacts]:
    """The nodes of these rows as rules see them; all rules of one kind share what is kept."""
    return _KNOWN_NODES.of(view, kind, lambda: KnownNodes(view, kind)).at(rows)
