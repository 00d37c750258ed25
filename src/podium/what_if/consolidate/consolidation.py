"""Which nodes of a cluster can be emptied, in which order, and what holds the others.

Nodes are tried one after the other without time: their pods are placed on the nodes that are left,
by the rules of the profile, without evictions of others. The best of a few orders is then carried
out on copies of the cluster, drain by drain, with disruption budgets and controllers. The pods of a
node are evicted in three orders. A node whose drain does not succeed in one of them is left out,
and the rest is carried out again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace as replaced

from podium.cluster.simulation import Simulation
from podium.errors import InputError
from podium.lab.contents.documents import Document
from podium.library.absence import AbsentObjects
from podium.library.pending_pods import seen_by
from podium.library.workloads import (
    anew,
    belongs_to_node,
    budgets_of,
    is_active,
    is_recreated,
    requested,
)
from podium.objects.quantity import milli, value
from podium.what_if.compare.bound import lower_bound
from podium.what_if.compare.compaction import workload_of
from podium.what_if.plan.changes import Cordon, Drain, NodeSelection
from podium.what_if.plan.cluster_copy import CopyOptions, at_any_time, in_thread, open_copy
from podium.what_if.plan.execution import EVICTING
from podium.what_if.plan.plan import answer_of
from podium.what_if.plan.results import API_VERSION, PlanValue

if TYPE_CHECKING:
    from podium.library.profile_choice import ChosenProfiles
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects
    from podium.what_if.plan.cluster_copy import ClusterCopy
    from podium.what_if.plan.results import AppliedChange, Plan

#: What `kubectl drain` asks for when pods have local storage.
_LOCAL: Final = "--delete-emptydir-data"


class EmptiedNode(PlanValue):
    """A node that can be drained, when its turn comes."""

    node: str
    #: The pods that are evicted.
    evictions: list[str]
    command: str


class HeldNode(PlanValue):
    """A node that cannot be emptied, and the first pod that holds it."""

    node: str
    pod: str
    reason: str


class Consolidation(PlanValue):
    """Which nodes can be emptied, and how far that is from what is possible."""

    api_version: str = API_VERSION
    kind: str = "Consolidation"
    profile: str = ""
    #: Nodes that pods may be scheduled on.
    nodes: int = 0
    #: Nodes without pods that would have to go elsewhere.
    empty: list[str] = msgspec.field(default_factory=list)
    emptied: list[EmptiedNode] = msgspec.field(default_factory=list)
    held: list[HeldNode] = msgspec.field(default_factory=list)
    #: So many nodes are needed by any placement; None if nothing is proven.
    at_least: int | None = None
    #: What that number does not take into account.
    bound_ignores: list[str] = msgspec.field(default_factory=list)
    #: Virtual seconds that the drains take.
    seconds: float = 0.0
    notes: list[str] = msgspec.field(default_factory=list)
    interrupted: bool = False

    def __repr__(self) -> str:
        """How many nodes can be emptied."""
        return f"<Consolidation: {len(self.emptied)} of {self.nodes} nodes can be emptied>"

    @property
    def commands(self) -> list[str]:
        """What empties the nodes, each command after the one before has ended."""
        names = [*self.empty, *(each.node for each in self.emptied)]
        first = [f"kubectl cordon {' '.join(names)}"] if self.emptied and len(names) > 1 else []
        return [*first, *(each.command for each in self.emptied)]

    @property
    def needed(self) -> int:
        """How many nodes are in use afterwards."""
        return self.nodes - len(self.empty) - len(self.emptied)


def consolidate(
    items: Iterable[Document],
    chosen: ChosenProfiles,
    options: CopyOptions | None = None,
    *,
    bound_seconds: float = 10.0,
) -> Consolidation:
    """Find nodes that can be emptied, and carry it out on a copy of the cluster of *items*.

    The solver of the lower bound stops after *bound_seconds*. A `KeyboardInterrupt` ends the search
    with what was carried out so far.
    """
    options = options or CopyOptions()
    items = list(items)
    failed: dict[str, HeldNode] = {}
    while True:
        known, answers = len(failed), list[Consolidation]()
        for evicting in EVICTING:
            asked = replace(options, evicting=evicting)
            with open_copy(copies(items), chosen, asked) as made:
                answers.append(_carried_out(made, failed, 0.0 if answers else bound_seconds))
            if len(failed) > known or answers[-1].interrupted:
                break
        # Every round leaves out one node more, until all drains succeed.
        if len(failed) == known or answers[-1].interrupted:
            return answers[0]


def copies(items: Iterable[Document]) -> Iterator[Document]:
    """The same documents: those that a copy of a cluster is given belong to it."""
    for each in items:
        if each.text is not None:
            yield Document(each.where, None, each.text, each.kind, each.api_version)
        else:
            yield Document(each.where, copy.deepcopy(each.item))


def _carried_out(
    made: ClusterCopy, failed: dict[str, HeldNode], bound_seconds: float
) -> Consolidation:
    """Choose nodes and drain them in the copy; a node that cannot be drained is added to *failed*.

    The drains end with the first that does not succeed. Without *bound_seconds* nothing is proven.
    """
    chosen = made.chosen
    with at_any_time():
        objects = made.objects()
        search = best_search(objects, chosen, failed)
    found = Consolidation(profile=chosen.profile.name, nodes=len(search.pool), empty=search.empty)
    done: list[AppliedChange] = []
    try:
        for name in (*search.empty, *search.emptied) if search.emptied else ():
            # No pod goes to a node that is empty, or whose turn comes later.
            made.make(Cordon(NodeSelection(name=name)))
        for name in search.emptied:
            change = made.make(Drain(NodeSelection(name=name)))
            if change.blocked or change.unfinished:
                reason = change.blocked[0].reason if change.blocked else "the drain does not end"
                pod = change.blocked[0].pod if change.blocked else ""
                failed[name] = HeldNode(node=name, pod=pod, reason=reason)
                break
            done.append(change)
    except KeyboardInterrupt:
        found.interrupted = True
    answer = answer_of(made)
    for left in answer.pending:
        if left.from_node and not left.was_pending:
            node = left.from_node
            failed[node] = HeldNode(node=node, pod=left.pod, reason=_short(left.message))
    found.emptied = list(_emptied(done, answer))
    found.held = sorted({**search.held, **failed}.values(), key=lambda each: each.node)
    found.seconds, found.notes = answer.seconds, answer.notes
    if bound_seconds:
        _add_bound(found, objects, search, chosen, bound_seconds)
    return found


def _emptied(changes: Iterable[AppliedChange], answer: Plan) -> Iterator[EmptiedNode]:
    """The drained nodes with the pods that were evicted from them, in the order of the drains."""
    pods: dict[str, dict[str, None]] = {}
    for event in answer.timeline:
        if event.what == "terminating":
            node = event.text.partition(" on ")[2].removesuffix(" is terminating")
            pods.setdefault(node, {})[event.object] = None
        elif event.what == "gone":  # a pod without a grace period never terminates
            node = event.text.partition(" is gone from ")[2]
            pods.setdefault(node, {})[event.object] = None
    for change in changes:
        node = change.change.removeprefix("drain ")
        has_local = any(_LOCAL in note for note in change.notes)
        flags = f"--ignore-daemonsets{f' {_LOCAL}' if has_local else ''}"
        command = f"kubectl drain {node} {flags}"
        yield EmptiedNode(node=node, evictions=list(pods.get(node, ())), command=command)


def _add_bound(
    found: Consolidation,
    objects: Objects,
    search: _Search,
    chosen: ChosenProfiles,
    seconds: float,
) -> None:
    """Add the proven lower bound, if the solver is installed."""
    considered = objects.copied()
    names = {node.name for node in search.pool}
    considered.nodes = list(search.pool)
    considered.pods = [pod for pod in objects.pods if pod.spec.node_name in names]
    try:
        bound = in_thread(
            lambda: lower_bound(workload_of(considered), chosen.profiles, seconds=seconds)
        )
    except InputError as error:
        found.notes.append(f"no lower bound: {error}")
        return
    found.at_least, found.bound_ignores = bound.nodes, list(bound.ignored)


# --- without time -------------------------------------------------------------------------------


def best_search(objects: Objects, chosen: ChosenProfiles, without: Iterable[str] = ()) -> _Search:
    """The search that empties most nodes, of those that begin with the emptiest nodes."""
    left_out = frozenset(without)
    found = [_Search(objects, chosen, order, left_out) for order in (_share, _number, _size)]
    for each in found:
        each.run()
    return max(found, key=lambda each: len(each.emptied))


def _share(node: Node, pods: Sequence[Pod]) -> float:
    """The share of the node's cpu or memory that its pods request."""
    allocatable = node.status.allocatable or {}
    cpu, memory = milli(allocatable.get("cpu", 0)), value(allocatable.get("memory", 0))
    used = requested(pods)
    return max(used[0] / max(cpu, 1), used[1] / max(memory, 1))


def _number(_: Node, pods: Sequence[Pod]) -> float:
    """How many evictions it takes."""
    return len(pods)


def _size(node: Node, _: Sequence[Pod]) -> float:
    """How large the node is."""
    return milli((node.status.allocatable or {}).get("cpu", 0))


class _Search:
    """Empties nodes in one order, as long as all their pods find other nodes."""

    def __init__(
        self,
        objects: Objects,
        chosen: ChosenProfiles,
        order: Callable[[Node, Sequence[Pod]], float],
        without: frozenset[str],
    ) -> None:
        self._chosen, self._absent = chosen, AbsentObjects(objects)
        self.pool = [node for node in objects.nodes if _is_usable(node)]
        first, *others = (replace(each, post_filters=()) for each in chosen.profiles)
        self._simulation = Simulation(first, others=others)
        self._simulation.load(seen_by(objects, chosen.schedulers))
        self._pods: dict[str, list[Pod]] = {node.name: [] for node in self.pool}
        for pod in objects.pods:
            if pod.spec.node_name in self._pods and is_active(pod) and not belongs_to_node(pod):
                self._pods[pod.spec.node_name].append(pod)
        self._budgets = list(budgets_of(objects))
        self.empty = [name for name, pods in self._pods.items() if not pods]
        self._order = sorted(
            (node for node in self.pool if self._pods[node.name] and node.name not in without),
            key=lambda node: (order(node, self._pods[node.name]), node.name),
        )
        for node in self.pool:
            if node.name in self.empty:
                self._cordon(node)
        self.emptied: list[str] = []
        self.held: dict[str, HeldNode] = {}

    def run(self) -> None:
        """Try every node once."""
        for node in self._order:
            held = self._obstacle(node) or self._empty(node)
            if held is None:
                self.emptied.append(node.name)
            else:
                self.held[node.name] = held

    def _obstacle(self, node: Node) -> HeldNode | None:
        """What holds the node whatever the room elsewhere."""
        for pod in self._pods[node.name]:
            reason = self._reason_to_stay(pod)
            if reason:
                return HeldNode(node=node.name, pod=pod.key, reason=reason)
        return None

    def _reason_to_stay(self, pod: Pod) -> str:
        if not is_recreated(pod):
            return "no controller would create it anew"
        if pod.spec.scheduler_name not in self._chosen.schedulers:
            return f"the scheduler {pod.spec.scheduler_name} decides about it"
        unknown = self._absent.of(pod)
        if unknown:
            return f"it depends on {unknown}"
        for each in self._budgets:
            if each.covers(pod) and not each.budget.status.disruptions_allowed:
                return f"the disruption budget {each.budget.name} allows no eviction"
        return ""

    def _cordon(self, node: Node) -> None:
        cordoned = replaced(node, spec=replaced(node.spec, unschedulable=True))
        self._simulation.cache.put_node(cordoned)

    def _empty(self, node: Node) -> HeldNode | None:
        """Place the pods of the node elsewhere; nothing changes if one of them does not fit.

        Evictions and decisions take turns in no fixed order. The pods must fit when one
        goes after the other, and when all go at once.
        """
        self._cordon(node)
        pods = sorted(self._pods[node.name], key=lambda each: (-each.priority, each.key))
        for at_once in (True, False):
            placed, held = self._moved(node, pods, at_once=at_once)
            if held is not None or at_once:
                self._move_back(pods, placed)
            if held is not None:
                self._simulation.cache.put_node(node)
                return held
        self._pods[node.name] = []
        for pod in placed:
            self._pods[pod.spec.node_name].append(pod)
        return None

    def _moved(
        self, node: Node, pods: Sequence[Pod], *, at_once: bool
    ) -> tuple[list[Pod], HeldNode | None]:
        """The pods on their new nodes, up to the first that finds none."""
        simulation = self._simulation
        for pod in pods if at_once else ():
            simulation.remove(pod.uid)
        placed: list[Pod] = []
        for pod in pods:
            if not at_once:
                simulation.remove(pod.uid)
            waiting = anew(pod)
            decision = simulation.attempt(waiting)
            if decision.node is None:
                reason = _short(decision.message or decision.error)
                return placed, HeldNode(node=node.name, pod=pod.key, reason=reason)
            simulation.place(waiting, decision)
            placed.append(replaced(pod, spec=replaced(pod.spec, node_name=decision.node)))
        return placed, None

    def _move_back(self, pods: Sequence[Pod], placed: Sequence[Pod]) -> None:
        """Put all pods on the node that they were on."""
        for pod in placed:
            self._simulation.remove(pod.uid)
        known = self._simulation.cache.columns.pods.by_uid
        for pod in pods:
            if pod.uid not in known:
                self._simulation.cache.add_pod(pod)


def _short(message: str) -> str:
    """The reasons of a message without the number of nodes and without preemption."""
    return message.partition(": ")[2].partition(". ")[0] or message


def _is_usable(node: Node) -> bool:
    """Whether pods may be scheduled on a node: it is not cordoned, and ready if it says so."""
    ready = [each.status for each in node.status.conditions or () if each.type == "Ready"]
    return not node.spec.unschedulable and ready in ([], ["True"])
