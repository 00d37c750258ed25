"""The pods on the rows of a view, and everything that is counted about them.

A pod is kept as a `Resident`; what scheduling knows of it is in its `PodClass`, which is shared by
all pods that no rule can tell apart. Counts are kept up to date as pods are added and removed, so
that no decision walks over pods.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from podium.engine.state.accounting import NATIVE, wrap
from podium.engine.state.affinity_terms import carried_terms, terms_fault
from podium.engine.state.disk_users import DiskUsers
from podium.engine.state.node_columns import longer
from podium.engine.state.pod_class import (
    ANY_IP,
    Incoming,
    PodClass,
    PodForm,
    Port,
    RequestFacts,
    Resident,
    class_key,
    class_parts,
    encoded,
    requests_key,
    shares_class,
    volume_matters,
)
from podium.engine.state.pod_group_members import PlacedMember, PodGroupMembers
from podium.engine.state.selector_index import Anchor, ByAnchor, ByLabel
from podium.engine.state.tallies import (
    SPARSE,
    CarriedTerm,
    LabelSet,
    PodTerm,
    Presence,
    SparseLimits,
    Tally,
)
from podium.objects.kinds.pod import ClaimVolume, Volume

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from podium.engine.state.accounting import Accounting
    from podium.engine.state.node_columns import LabelMove, NodeColumns
    from podium.engine.state.reservation import Reservation
    from podium.objects.kinds.pod import Pod

#: Lines of numbers per row: native resources, cpu and memory for the scores, pods.
LINES = len(NATIVE) + 3
#: So many specifications are kept to recognize those seen before; then all are dropped.
MOST_RECENT = 1024
#: So many controllers and labels are kept to recognize the next pod of each; then all are dropped.
MOST_SIBLINGS = 1 << 14
FormKey = tuple["RequestFacts", bytes]
ANY_CLAIM = Volume(persistent_volume_claim=ClaimVolume())


class PodIndex:
    """Placed and nominated pods, their classes, and counts of them.

    `cluster.cache.columns.Columns` adds, removes and nominates pods; the columns here are as long
    as those of the nodes. Classes, label sets and tallies are also made when a pod or a rule first
    asks for them.
    """

    def __init__(
        self, accounting: Accounting, nodes: NodeColumns, sparse: SparseLimits = SPARSE
    ) -> None:
        self.accounting = accounting
        self._sparse = sparse
        self._nodes = nodes
        capacity = nodes.capacity

        #: The pods of each row, in the order in which kube-scheduler keeps them.
        self.residents: list[list[Resident]] = []
        self.by_uid: dict[str, Resident] = {}
        #: The pods of pod groups.
        self.groups = PodGroupMembers()
        #: Rows that hold pods and have no node object.
        self.unknown_nodes: set[int] = set()
        #: What reserve rules set aside: uid of the pod -> name of the rule -> what it reserved.
        self.reservations: dict[str, Mapping[str, Reservation]] = {}
        #: Nominated pods by the name of their node, in order of nomination.
        self.nominated: dict[str, list[Resident]] = {}
        #: The pods that `nominated` has the records of.
        self.nominated_pods: dict[str, list[Pod]] = {}

        self._take_numbers(np.zeros((LINES, capacity), np.int64), [])
        #: The number of pods on all rows.
        self.total = 0
        #: The host ports in use on each row, and the rows of each port.
        self.ports: list[set[Port]] = []
        self.port_rows: dict[Port, set[int]] = {}
        #: Protocol and number -> ip, protocol and number -> how many pods name that port.
        self.port_users: dict[tuple[str, int], Counter[Port]] = defaultdict(Counter)
        #: Rows with pods that have volumes -> how many such pods.
        self.volume_rows: dict[int, int] = {}
        self.disk_users = DiskUsers()
        #: (namespace, claim) -> row -> how many pods there use it.
        self.claim_users: dict[tuple[str, str], dict[int, int]] = {}

        self.classes: dict[bytes, PodClass] = {}
        self.classes_by_id: dict[int, PodClass] = {}
        #: How many classes there ever were.
        self.class_total = 0
        #: The id of a specification -> a pod with it, which keeps it alive, and the pod's class.
        self._recent: dict[int, tuple[Pod, PodClass]] = {}
        #: The last pod whose class was asked for, the class, and the host: a pod that is placed
        #: was decided about just before.
        self._last: tuple[Pod, PodClass, str] | None = None
        #: The last pod of every controller that was encoded, its parts once they were asked for,
        #: and its class, by the uid of the controller; of pods without one, the last with the same
        #: values of labels, by these.
        self._siblings: dict[object, tuple[Pod, tuple[object, ...] | None, PodClass]] = {}
        self._requests: dict[bytes, RequestFacts] = {}
        self._forms: dict[FormKey, PodForm] = {}
        #: Told when pods with some labels, or affinity terms of pods, appear or are gone. While it
        #: and the nodes stay the same, no tally begins to count pods or ceases to, on all rows or
        #: on those with a label key. Not to be relied on while there are unknown nodes.
        self.presence = Presence()
        self.label_sets: dict[tuple[Any, ...], LabelSet] = {}
        self._sets_by_label: ByLabel[LabelSet] = ByLabel()
        self.tallies: dict[object, Tally] = {}
        #: The same tallies, each with the test for the label sets that it counts.
        self._tally_tests: ByAnchor[tuple[Tally, Callable[[LabelSet], bool]]] = ByAnchor()
        #: The affinity terms of placed pods.
        self.carried: ByAnchor[CarriedTerm] = ByAnchor()
        #: Those of them whose selector cannot be compiled.
        self.invalid_carried: list[CarriedTerm] = []
        self._carried_index: dict[object, CarriedTerm] = {}

    def _take_numbers(self, numbers: np.ndarray, others: list[np.ndarray]) -> None:
        """Keep what pods request in these lines, and of other resources in these columns."""
        native = len(NATIVE)
        #: What the pods of each row count for, a line each, so that all numbers of some rows are
        #: read together: requests of native resources, cpu and memory for the scores, pods.
        self.numbers = numbers
        #: Per resource, what the pods of each row request.
        self.requested = [*numbers[:native], *others]
        #: The same for cpu and memory, where a container without a request counts as some.
        self.nonzero_requested = list(numbers[native:-1])
        #: The number of pods on each row.
        self.counts: np.ndarray = numbers[-1]

    # Reading ----------------------------------------------------------------------------------

    def incoming(self, pod: Pod) -> Incoming:
        """The pod of a decision, with its class."""
        return Incoming(pod, self.class_of(pod, pod.spec.node_name))

    def conflicting_ports(self, wanted: Port) -> Collection[Port]:
        """The host ports in use that are in conflict with this one."""
        ip, protocol, number = wanted
        found: Collection[Port] = self.port_users.get((protocol, number), ())
        if ip == ANY_IP or not found:
            return found
        return [port for port in (wanted, (ANY_IP, protocol, number)) if port in found]

    def unknown_nodes_by_name(self) -> list[int]:
        """The rows that have no node object, sorted by the node name that their pods give."""
        return sorted(self.unknown_nodes, key=lambda row: self._nodes.names[row])

    # Classes, label sets and tallies: made on first use ---------------------------------------

    def class_of(self, pod: Pod, host: str = "") -> PodClass:
        """The class of a pod; *host* is the node that a pod yet to be placed names."""
        last = self._last
        if last is not None and pod is last[0] and host == last[2]:
            return last[1]
        found = self._class_of(pod, host)
        self._last = (pod, found, host)
        return found

    def _class_of(self, pod: Pod, host: str) -> PodClass:
        spec = id(pod.spec)
        recent = self._recent.get(spec)
        if recent is not None:
            other, found = recent
            if host == found.host and (pod is other or shares_class(pod, other)):
                return found
        owner = pod.metadata.controller()
        siblings = owner.uid if owner is not None else tuple(pod.labels.values())
        sibling = self._siblings.get(siblings)
        if sibling is not None:
            other, parts, found = sibling
            if host == found.host and owner == found.owner:
                if parts is None:
                    parts = class_parts(other)
                    self._siblings[siblings] = (other, parts, found)
                if parts == class_parts(pod):
                    return found
        key = class_key(pod, host)
        known = self.classes.get(key)
        if known is None:
            known = self.classes[key] = self._compile(pod, host)
            self.classes_by_id[known.id] = known
        if len(self._siblings) >= MOST_SIBLINGS:
            self._siblings.clear()
        self._siblings[siblings] = (pod, None, known)
        if len(self._recent) >= MOST_RECENT:
            self._recent.clear()
        self._recent[spec] = (pod, known)
        return known

    def resident(self, pod: Pod, row: int) -> Resident:
        """The record of a pod on a row; -1 is the row of a pod that is only nominated."""
        cls = self.class_of(pod)
        resident = Resident(pod, cls, cls.labels, row)
        if resident.terminating:
            self._set_terminating(resident)
        return resident

    def resource(self, name: str) -> int:
        """The column of a resource."""
        column = self._nodes.resource(name)
        self.follow_nodes()
        return column

    def label_set(self, namespace: str, labels: dict[str, str], *, terminating: bool) -> LabelSet:
        """The set of pods with these labels."""
        key = (namespace, terminating, *sorted(labels.items()))
        found = self.label_sets.get(key)
        if found is None:
            found = self.label_sets[key] = LabelSet(
                namespace, labels, terminating=terminating, presence=self.presence
            )
            self._sets_by_label.add(found, labels)
            for tally, matches in self._tally_tests.likely(labels):
                if matches(found):
                    found.tallies.append(tally)
        return found

    def label_sets_with(self, wanted: Anchor) -> Collection[LabelSet]:
        """The label sets that a selector which requires these labels may match."""
        return self._sets_by_label.likely(wanted)

    def _new_tally(self) -> Tally:
        return Tally(self._nodes.capacity, self._nodes.label_column, self._sparse, self.presence)

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
        tally, wanted = self._new_tally(), insists()
        for labels in self._sets_by_label.likely(wanted):
            if not matches(labels):
                continue
            labels.tallies.append(tally)
            tally.add_all(labels.rows)
        self.tallies[key] = tally
        self._tally_tests.add((tally, matches), wanted)
        return tally

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
        requests = cls.requests = self._requests_of(pod, requests_key(pod))
        cls.taken, cls.nonzero_requests = requests.taken, requests.nonzero_requests
        cls.wanted, cls.scalars = requests.wanted, requests.scalars
        cls.ports = requests.ports
        cls.volumes = cls.claims = ()
        if pod.spec.volumes:
            cls.volumes = tuple([v for v in pod.spec.volumes if volume_matters(v)])
            claimed = [each.persistent_volume_claim for each in cls.volumes]
            cls.claims = tuple([claim.claim_name for claim in claimed if claim is not None])
        cls.memo = {}
        cls.form = self._form_of(cls)
        cls.labels = self.label_set(pod.namespace, pod.labels, terminating=False)
        cls.terminating_labels = None
        cls.carried = ()
        if cls.has_pod_affinity:
            accounting = self.accounting
            terms = accounting.terms(cls)
            carried = carried_terms(terms, drop_invalid=accounting.drops_invalid_terms)
            cls.carried = tuple(self._carry(*each) for each in carried)
        return cls

    def _form_of(self, cls: PodClass) -> PodForm:
        key = _form_key(cls)
        found = self._forms.get(key)
        if found is None:
            if len(self._forms) >= MOST_RECENT:
                self._forms.clear()
            found = self._forms[key] = PodForm()
        return found

    def _requests_of(self, pod: Pod, key: bytes) -> RequestFacts:
        found = self._requests.get(key)
        if found is not None:
            return found
        found = RequestFacts()
        accounting = self.accounting
        taken = accounting.taken(pod)
        scalars = [(self.resource(name), number) for name, number in taken.scalars.items()]
        found.taken = tuple(pair for pair in [*enumerate(taken.native), *scalars] if pair[1])
        found.nonzero_requests = accounting.nonzero_requests(pod)
        line = (*taken.native, *found.nonzero_requests, 1)
        found.line = np.array([wrap(number) for number in line], np.int64)
        found.others = tuple(pair for pair in scalars if pair[1])
        wanted = accounting.wanted(pod)
        found.wanted = tuple(wanted.native)
        found.scalars = {self.resource(name): number for name, number in wanted.scalars.items()}
        found.ports = accounting.ports(pod)
        found.memo = {}
        if len(self._requests) >= MOST_RECENT:
            self._requests.clear()
        self._requests[key] = found
        return found

    def _carry(self, kind: str, weight: int, term: PodTerm) -> CarriedTerm:
        key = (kind, weight, term.key)
        found = self._carried_index.get(key)
        if found is None:
            tally = self._new_tally()
            found = self._carried_index[key] = CarriedTerm(kind, weight, term, tally)
            tally.carried = found
            self.carried.add(found, term.anchor)
            self.presence.changes += 1
            if term.error:
                self.invalid_carried.append(found)
        return found

    # Writing ----------------------------------------------------------------------------------

    def add(self, pod: Pod, row: int) -> Resident:
        """Put a pod on a row, and count it."""
        resident = self.add_uncounted(pod, row)
        self._count(resident, 1)
        return resident

    def add_uncounted(self, pod: Pod, row: int) -> Resident:
        """Put a pod on a row; `count_added` has to follow before anything else is asked."""
        resident = self.resident(pod, row)
        if resident.group:
            self.groups.place(resident, pod)
        self._settle(resident)
        return resident

    def _settle(self, resident: Resident) -> None:
        """Put a pod at the end of its row; its host ports are in use."""
        row = resident.row
        self.residents[row].append(resident)
        self.by_uid[resident.uid] = resident
        if ports := resident.cls.ports:
            self.ports[row].update(ports)
            for port in ports:
                self.port_rows.setdefault(port, set()).add(row)
                self.port_users[port[1], port[2]][port] += 1

    def count_added(self, residents: Sequence[Resident]) -> None:
        """Count pods of `add_uncounted`; what equal requests add to a column is added together."""
        self.total += len(residents)
        rows_of: dict[RequestFacts, list[int]] = defaultdict(list)
        rows_with: dict[LabelSet, list[int]] = defaultdict(list)
        for resident in residents:
            row, cls = resident.row, resident.cls
            rows_of[cls.requests].append(row)
            rows_with[resident.labels].append(row)
            if cls.volumes:
                self._count_volumes(cls, row, 1)
            for carried in cls.carried:
                carried.tally.add(row, 1)
        for labels, rows in rows_with.items():
            labels.add_each(rows)
        for facts, rows in rows_of.items():
            for resource, number in facts.taken:
                np.add.at(self.requested[resource], rows, wrap(number))
            for column, number in zip(self.nonzero_requested, facts.nonzero_requests, strict=True):
                np.add.at(column, rows, wrap(number))
            np.add.at(self.counts, rows, 1)

    def remove(self, uid: str) -> Resident:
        """Take a pod off its row; the last pod of the row takes its place."""
        resident = self.by_uid[uid]
        self.take_off(resident)
        return resident

    def take_off(self, resident: Resident) -> PlacedMember | None:
        """Take a pod off its row; `put_on` takes what is returned. Reservations stay."""
        del self.by_uid[resident.uid]
        self._move_to_end(resident)
        self.residents[resident.row].pop()
        for port in resident.cls.ports:
            self._release(port, resident.row)
        self._count(resident, -1)
        return self.groups.leave(resident) if resident.group else None

    def put_on(self, resident: Resident, member: PlacedMember | None) -> None:
        """Put a pod that was taken off its row at the end of it again."""
        if member is not None:
            self.groups.put_back(member)
        self._settle(resident)
        self._count(resident, 1)

    def mark_terminating(self, resident: Resident) -> None:
        """Count a placed pod as one that is being deleted, and move it to the end of its row."""
        self._move_to_end(resident)
        self._count(resident, -1)
        self._set_terminating(resident)
        self._count(resident, 1)

    def set_nominated(self, pods: Mapping[str, Iterable[Pod]]) -> None:
        """Replace the nominated pods: those of each node, in order of nomination.

        Records of pods that are nominated to the same node as before are kept.
        """
        groups = {node: list(nominated) for node, nominated in pods.items()}
        self.nominated = {
            node: self.nominated[node]
            if self.nominated_pods.get(node) == group
            else [self.resident(pod, -1) for pod in group]
            for node, group in groups.items()
        }
        self.nominated_pods = groups

    def reserve(self, uid: str, reservations: Mapping[str, Reservation]) -> None:
        """Keep what reserve rules set aside for a pod, by the name of the rule."""
        if reservations:
            self.reservations[uid] = reservations

    def unreserve(self, uid: str) -> Mapping[str, Reservation]:
        """Drop what was set aside for a pod, and return it."""
        return self.reservations.pop(uid, {})

    def follow_nodes(self) -> None:
        """Have room for every row, and a column for every resource, that the nodes have."""
        nodes = self._nodes
        capacity = nodes.capacity
        while len(self.residents) < len(nodes.names):
            self.residents.append([])
            self.ports.append(set())
        while len(self.requested) < len(nodes.allocatable):
            self.requested.append(np.zeros(capacity, np.int64))
        if len(self.counts) < capacity:
            others = [longer(column, capacity) for column in self.requested[len(NATIVE) :]]
            self._take_numbers(longer(self.numbers, capacity), others)
            for tally in self._all_tallies():
                tally.grow(capacity)

    def move_labels(self, row: int, moves: Iterable[LabelMove]) -> None:
        """Count the pods of a row for other topology domains: labels of its node changed."""
        for key, before, after in moves:
            for tally in self._all_tallies():
                tally.move(row, key, before, after)

    def trim(self) -> None:
        """Forget classes, label sets and terms of no placed or nominated pod, and every tally.

        Tallies and what classes remember are made again when they are needed; the sums per
        topology domain of carried terms are, too, since label values will be numbered anew.
        """
        rows = (*self.residents, *self.nominated.values())
        live = {resident.cls.id: resident.cls for residents in rows for resident in residents}
        self.classes = {key: cls for key, cls in self.classes.items() if cls.id in live}
        self.classes_by_id = dict(sorted(live.items()))
        self._recent, self._requests, self._forms = {}, {}, {}
        self._siblings, self._last = {}, None
        for cls in live.values():
            cls.memo = {}
            cls.form.memo.clear()
        self.tallies, self._tally_tests = {}, ByAnchor()
        self.presence.changes += 1
        self._trim_label_sets(live.values())
        self._trim_carried(live.values())

    def _set_terminating(self, resident: Resident) -> None:
        cls = resident.cls
        if cls.terminating_labels is None:
            labels = cls.labels
            cls.terminating_labels = self.label_set(
                labels.namespace, dict(labels.labels), terminating=True
            )
        resident.labels = cls.terminating_labels
        resident.terminating = True

    def _move_to_end(self, resident: Resident) -> None:
        """Swap a pod with the last one of its row."""
        pods = self.residents[resident.row]
        position = pods.index(resident)
        pods[position] = pods[-1]
        pods[-1] = resident

    def _release(self, port: Port, row: int) -> None:
        users = self.port_users[port[1], port[2]]
        users[port] -= 1
        if not users[port]:
            del users[port]
        if not users:
            del self.port_users[port[1], port[2]]
        # A set, as in kube-scheduler: a port that two pods share is free when one leaves.
        self.ports[row].discard(port)
        rows = self.port_rows.get(port)
        if rows is not None:
            rows.discard(row)
            if not rows:
                del self.port_rows[port]

    def _count(self, resident: Resident, sign: int) -> None:
        """Add what a pod counts for, or with a *sign* of -1 take it away."""
        row, facts = resident.row, resident.cls.requests
        numbers = self.numbers[:, row]
        if sign > 0:  # arrays wrap at 64 bits by themselves
            numbers += facts.line
        else:
            numbers -= facts.line
        for resource, number in facts.others:
            column = self.requested[resource]
            column[row] = wrap(column.item(row) + sign * number)
        self._count_others(resident, sign)

    def _count_others(self, resident: Resident, sign: int) -> None:
        """Count a pod for everything but the numbers of its row."""
        row, cls = resident.row, resident.cls
        self.total += sign
        if cls.volumes:
            self._count_volumes(cls, row, sign)
        for carried in cls.carried:
            carried.tally.add(row, sign)
        resident.labels.add(row, sign)

    def _count_volumes(self, cls: PodClass, row: int, sign: int) -> None:
        self.disk_users.add(cls, row, sign)
        left = self.volume_rows.get(row, 0) + sign
        self.volume_rows[row] = left
        if not left:
            del self.volume_rows[row]
        for claim in cls.claims:
            users = self.claim_users.setdefault((cls.namespace, claim), {})
            users[row] = users.get(row, 0) + sign
            if not users[row]:
                del users[row]
            if not users:
                del self.claim_users[cls.namespace, claim]

    def _all_tallies(self) -> list[Tally]:
        return [*self.tallies.values(), *(carried.tally for carried in self.carried)]

    def _trim_label_sets(self, classes: Collection[PodClass]) -> None:
        used = {each for cls in classes for each in (cls.labels, cls.terminating_labels)}
        self.label_sets = {key: each for key, each in self.label_sets.items() if each in used}
        self._sets_by_label = ByLabel()
        for labels in self.label_sets.values():
            self._sets_by_label.add(labels, labels.labels)
            labels.start_afresh()

    def _trim_carried(self, classes: Collection[PodClass]) -> None:
        used = {term for cls in classes for term in cls.carried}
        terms = [term for term in self.carried if term in used]
        self._carried_index = {(t.kind, t.weight, t.term.key): t for t in terms}
        self.invalid_carried = [term for term in terms if term.term.error]
        self.carried = ByAnchor()
        for term in terms:
            self.carried.add(term, term.term.anchor)
            term.tally.start_afresh()


def _form_key(cls: PodClass) -> FormKey:
    """Equal for classes of one form, as long as what follows from their containers is kept."""
    spec, affinity = cls.spec, cls.spec.affinity
    terms: object = None
    if affinity is not None:
        near, apart = affinity.pod_affinity, affinity.pod_anti_affinity
        kinds = [None if part is None else bool(part.preferred) for part in (near, apart)]
        terms = (affinity.node_affinity, kinds, terms_fault(cls))
    rest = (
        bool(cls.host),
        [_of_any_claim(volume) for volume in cls.volumes],
        spec.node_selector,
        terms,
        spec.tolerations,
        spec.topology_spread_constraints,
        spec.preemption_policy,
        spec.host_network,
        spec.host_users,
        spec.resource_claims,
    )
    return cls.requests, encoded(rest)


def _of_any_claim(volume: Volume) -> Volume:
    """A volume of a claim without its own name and that of the claim; others as they are."""
    claim = volume.persistent_volume_claim
    if claim is None:
        return volume
    if volume == Volume(volume.name, ClaimVolume(claim.claim_name)):
        return ANY_CLAIM  # there is nothing else to it
    unnamed = msgspec.structs.replace(claim, claim_name="")
    return msgspec.structs.replace(volume, name="", persistent_volume_claim=unnamed)
