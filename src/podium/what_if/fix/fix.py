"""What would make a pending pod fit: edits that the simulation was asked about, the smallest first.

Every edit is tried in a simulation of the cluster, and reduced until a smaller one no longer helps.
Single edits are tried first; two at a time only where no single one helps.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import replace as replaced
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from podium.cluster.decider import without_extenders
from podium.engine.cycle.pre_filter import PreFilter
from podium.engine.framework.rule import AttemptError
from podium.engine.pipelines.filtering import run_filters_with_nominated
from podium.engine.rows.trial_one import TrialRow
from podium.engine.state.verdicts import FITS
from podium.library.explained_causes import add_rejection_causes
from podium.library.lookup import pod_named
from podium.library.notices import Notify, log_warning
from podium.library.pending_pods import seen_by
from podium.library.pod_notes import PodNotes
from podium.library.simulations import open_simulation
from podium.library.workloads import anew, is_recreated
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.registry import RESOURCE_CLAIM, RESOURCE_SLICE
from podium.objects.reading.collection import Objects
from podium.render.decision.plain_reason import plain_reason
from podium.what_if.capacity.node_shapes import (
    NodeShape,
    add_node,
    daemons_for,
    drop_node,
    shapes_of,
    slices_for,
)
from podium.what_if.fix.claim_advice import claim_advice
from podium.what_if.fix.edits import (
    Operation,
    delete_pods,
    difference,
    effects_of_edit,
    effects_of_eviction,
    label_node,
    node_needs,
    patch_pod,
    patched,
    uncordon,
)
from podium.what_if.fix.evictions import Budgets, Evictions, claim_without
from podium.what_if.fix.node_labels import (
    LabelConditions,
    label_changes,
    without_node_conditions,
)
from podium.what_if.fix.relaxations import Relaxation, relaxations
from podium.what_if.fix.results import Edit, Fix, Fixes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from podium.cluster.simulation import Simulation
    from podium.engine.framework.profile import Profile

_T = TypeVar("_T")
_ADD_NODE_COST: Final = 10.0
_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """How much is tried in large clusters, and how many answers of one kind are given."""

    #: Nodes that are tried one by one for a label, an uncordon or an eviction, once any single
    #: edit helps; as long as none does, all nodes are tried.
    nodes: int = 60
    #: Answers of one kind that differ only in the node.
    of_a_kind: int = 3
    shapes: int = 50
    #: Pairs, all in all.
    pairs: int = 12


DEFAULT_LIMITS: Final = SearchLimits()


def fix(
    objects: Objects,
    pod: Pod | str,
    profile: Profile,
    *,
    shapes: Sequence[NodeShape] | None = None,
    pairs: bool = False,
    limits: SearchLimits = DEFAULT_LIMITS,
    notify: Notify = log_warning,
) -> Fixes:
    """The smallest changes that would give the pod a node, the cheapest first.

    *pod* is one of the *objects*, or its `NAME` or `NAMESPACE/NAME`. Other pending pods are not
    placed before it. *shapes* are nodes that could be added, by default the most common of the
    cluster. Two edits at a time are tried if no single one helps, or always with *pairs*.
    """
    search = FixSearch(objects, pod, profile, shapes=shapes, limits=limits, notify=notify)
    for _ in search.steps(pairs=pairs):
        pass
    return search.result


def apply_fix(objects: Objects, fix: Fix) -> Objects:
    """The objects after the edits of a fix, by their JSON patches."""
    found = objects.copied()
    for edit in fix.edits:
        if edit.action == "evict":
            gone = {pod.uid for pod in found.pods if pod.key in edit.names}
            found.pods = [pod for pod in found.pods if pod.uid not in gone]
            claims = [claim_without(each, gone) for each in found.of(RESOURCE_CLAIM)]
            found.lists[RESOURCE_CLAIM.name] = [each for each in claims if each is not None]
        elif edit.action == "add node":
            node = msgspec.convert(edit.patch[0]["value"], Node)
            found.nodes = [*found.nodes, node]
            found.pods = [*found.pods, *daemons_for(objects, edit.like, node.name)]
            for each in slices_for(objects, edit.like, node.name):
                found.add(RESOURCE_SLICE, each)
        elif edit.kind == "Node":
            found.nodes = [_patched(n, edit) if n.name in edit.names else n for n in found.nodes]
        else:
            found.pods = [_patched(p, edit) if p.key in edit.names else p for p in found.pods]
    return found


def _patched(item: Any, edit: Edit) -> Any:
    changed = patched(msgspec.to_builtins(item), edit.patch)
    return msgspec.convert(changed, type(item))


class FixSearch:
    """A search that can be interrupted: `result` holds what was found so far.

    The parameters are those of `fix`.
    """

    def __init__(
        self,
        objects: Objects,
        pod: Pod | str,
        profile: Profile,
        *,
        shapes: Sequence[NodeShape] | None = None,
        limits: SearchLimits = DEFAULT_LIMITS,
        notify: Notify = log_warning,
    ) -> None:
        wanted = pod_named(objects, pod) if isinstance(pod, str) else pod
        self.pod = anew(wanted)
        self._objects = objects
        self._profile, self._notify, self._limits = profile, notify, limits
        known = shapes_of(objects)[: limits.shapes] if shapes is None else shapes
        self._shapes = list(known)
        self._relaxations = relaxations(self.pod, objects.nodes, len(objects.pods))
        self._budgets = Budgets(objects)
        self._about = PodNotes(objects, {profile.scheduler_name})
        self.result = Fixes(self.pod.key, profile.name, "", complete=False)

    @property
    def total(self) -> int:
        """About how many steps the search for single edits has, for a progress bar."""
        return len(self._relaxations) + 4

    def steps(self, *, pairs: bool = False) -> Iterator[str]:
        """Try one kind of edit after the other; yields what was tried."""
        without = replaced(
            self._profile,
            post_filters=(),
            percentage_of_nodes_to_score=100,
            adaptive_sampling=False,
        )
        others = [each for each in self._objects.pods if each.uid != self.pod.uid]
        cluster = self._objects.copied()
        cluster.pods = others
        seen = seen_by(cluster, {self._profile.scheduler_name})
        self._first_decision(seen)
        yield "the cluster as it is"
        if self.result.node is not None:
            self.result.complete = True
            return
        with open_simulation(without, notify=self._notify) as simulation:
            simulation.load(seen)
            trial = _Trial(simulation, seen, self._limits, self._budgets)
            yield from self._singles(trial)
            if pairs or not self.result.fixes:
                yield from self._pairs(trial)
        self.result.complete = not trial.cut
        self.result.untried = tuple(trial.cut)
        if not self.result.fixes:
            self.result.advice = claim_advice(self.pod, self._objects)

    def _first_decision(self, seen: Objects) -> None:
        """Decide about the pod as it is, with preemption."""
        with open_simulation(self._profile, notify=self._notify) as simulation:
            simulation.load(seen)
            decision = simulation.attempt(self.pod, recording=True)
            if decision.node is None:
                profile = without_extenders(self._profile)
                add_rejection_causes(simulation.cache.columns, self.pod, profile, decision)
        self.result.message, self.result.node = decision.message, decision.node
        self.result.plain = plain_reason(decision)
        self.result.notes = tuple(self._about.of(self.pod, decision))
        preemption = decision.preemption
        if preemption is not None and preemption.node is not None:
            self.result.preempts = preemption.candidates[preemption.node].pods
            self.result.preempts_on = preemption.node

    # Single edits ---------------------------------------------------------------------------------

    def _singles(self, trial: _Trial) -> Iterator[str]:
        tolerated = False
        for relaxation in self._relaxations:
            narrower = tolerated and relaxation.is_for_all_taints
            if not narrower and trial.node_for(relaxation.on(self.pod, relaxation.steps)):
                steps = trial.fewest(relaxation, self.pod)
                self._add(trial, [_PodEdit(relaxation, steps)])
                tolerated = tolerated or relaxation.action == "toleration"
            yield relaxation.action
        for name, found in (
            ("nodes that are cordoned", trial.uncordons),
            ("labels of nodes", trial.labels),
            ("evictions", trial.evictions),
        ):
            trial.looks_at_all = not self.result.fixes
            for change in found(self.pod):
                self._add(trial, [change])
            yield name
        trial.looks_at_all = False
        given = 0
        for shape in self._shapes:
            given += self._add(trial, [_NewNode(shape)])
            if given >= self._limits.of_a_kind:
                break
        yield "a new node"

    # Pairs ----------------------------------------------------------------------------------------

    def _pairs(self, trial: _Trial) -> Iterator[str]:
        """Two edits that help together, of which none helps alone."""
        useless = [
            each for each in self._relaxations if not trial.node_for(each.on(self.pod, each.steps))
        ]
        yield from self._pairs_of_pod(trial, useless)
        yield from self._pairs_with_cluster(trial, useless)
        for first in (*trial.uncordons(None), *trial.labels(self.pod, alone=False)):
            undo = trial.applied([first])
            for second in trial.on_node(self.pod, first):
                self._add(trial, [first, second])
            trial.undo(undo)
            yield "two edits of the cluster"

    def _pairs_of_pod(self, trial: _Trial, useless: Sequence[Relaxation]) -> Iterator[str]:
        for one, two in combinations(useless, 2):
            if trial.node_for(two.on(one.on(self.pod, one.steps), two.steps)):
                for first, second in ((one, two), (two, one)):
                    self._add(trial, trial.fewest_of_two(first, second, self.pod))
            yield "two edits of the pod"

    def _pairs_with_cluster(self, trial: _Trial, useless: Sequence[Relaxation]) -> Iterator[str]:
        before = len(self.result.fixes)
        for relaxation in useless:
            loose = relaxation.on(self.pod, relaxation.steps)
            for found in (trial.uncordons, trial.labels, trial.evictions):
                for change in found(loose):
                    self._add_with(trial, relaxation, change)
            for shape in self._shapes:
                self._add_with(trial, relaxation, _NewNode(shape))
            yield "an edit of the pod and one of the cluster"
            if len(self.result.fixes) - before >= self._limits.pairs:
                trial.cut[f"pairs of edits were tried until {self._limits.pairs} helped"] = None
                return

    def _add_with(self, trial: _Trial, relaxation: Relaxation, change: _Change) -> None:
        """Add the pair of a relaxation and a change of the cluster, unless one is enough."""
        undo = trial.applied([change])
        helps = trial.node_for(relaxation.on(self.pod, relaxation.steps)) is not None
        alone = trial.node_for(self.pod) is not None
        steps = trial.fewest(relaxation, self.pod) if helps and not alone else 0
        trial.undo(undo)
        if steps:
            self._add(trial, [_PodEdit(relaxation, steps), change])

    # Results --------------------------------------------------------------------------------------

    def _add(self, trial: _Trial, changes: Sequence[_Change]) -> bool:
        """Check the changes once more as a whole, and add them to the result if they help."""
        if len(changes) > 1 and any(trial.helps([each], self.pod) for each in changes):
            return False
        node = trial.helps(changes, self.pod)
        if node is None:
            return False
        changes = trial.with_fewer_evictions(changes, self.pod)
        node = trial.helps(changes, self.pod) or node
        edits = [
            change.edit(self.pod, self._objects, changes[:place])
            for place, change in enumerate(changes)
        ]
        pending = trial.pending_after(changes, self.pod)
        edits = [
            replaced(edit, effects=(*edit.effects, *pending)) if edit.action == "evict" else edit
            for edit in edits
        ]
        if any(edit.action == "evict" for edit in edits):
            known = (*self.result.notes, *self._about.of_evictions())
            self.result.notes = tuple(dict.fromkeys(known))
        found = Fix(tuple(edits), node)
        said = {edit.sentence for edit in edits}
        if all(said != {edit.sentence for edit in each.edits} for each in self.result.fixes):
            self.result.fixes.append(found)
            self.result.fixes.sort(key=lambda each: (len(each.edits), each.cost, each.sentence))
        return True


# Changes ----------------------------------------------------------------------------------------


class _Change:
    """One edit of the pod or of the cluster."""

    def on_pod(self, pod: Pod) -> Pod:
        """The pod after the change."""
        return pod

    def begin(self, trial: _Trial) -> Callable[[], None]:  # noqa: ARG002
        """Make the change in the simulation; the answer undoes it."""
        return lambda: None

    def edit(self, pod: Pod, objects: Objects, earlier: Sequence[_Change]) -> Edit:
        """The change as users see it, after *earlier* changes of the same fix."""
        raise NotImplementedError


@dataclass(frozen=True)
class _PodEdit(_Change):
    """A relaxation by a number of steps."""

    relaxation: Relaxation
    steps: int

    def on_pod(self, pod: Pod) -> Pod:
        return self.relaxation.on(pod, self.steps)

    def edit(self, pod: Pod, objects: Objects, earlier: Sequence[_Change]) -> Edit:
        def operations(of: Pod) -> list[Operation]:
            for change in earlier:
                of = change.on_pod(of)
            return difference(msgspec.to_builtins(of), msgspec.to_builtins(self.on_pod(of)))

        patch = operations(pod)
        command = patch_pod(pod, patch, objects, operations)
        edit = self.relaxation
        sentence, cost = edit.sentence(self.steps), edit.cost(self.steps)
        effects = effects_of_edit(edit.action, pod, patch, objects)
        return Edit(
            edit.action, sentence, "Pod", (pod.key,), tuple(patch), command, cost, effects=effects
        )


@dataclass(frozen=True)
class _NodeEdit(_Change):
    """Another version of a node: uncordoned, or with another label."""

    action: str
    sentence: str
    before: Node
    after: Node
    command: str
    cost: float

    def begin(self, trial: _Trial) -> Callable[[], None]:
        trial.simulation.cache.put_node(self.after)
        return lambda: trial.simulation.cache.put_node(self.before)

    def edit(self, pod: Pod, objects: Objects, earlier: Sequence[_Change]) -> Edit:  # noqa: ARG002
        patch = difference(msgspec.to_builtins(self.before), msgspec.to_builtins(self.after))
        names = (self.before.name,)
        return Edit(
            self.action, self.sentence, "Node", names, tuple(patch), self.command, self.cost
        )


@dataclass(frozen=True)
class _Evict(_Change):
    """Pods that are evicted."""

    pods: tuple[Pod, ...]
    cost: float

    def begin(self, trial: _Trial) -> Callable[[], None]:
        holders = trial.holders
        for pod in self.pods:
            holders.evict(pod)

        def undo() -> None:
            for pod in self.pods:
                holders.bring_back(pod)

        return undo

    def edit(self, pod: Pod, objects: Objects, earlier: Sequence[_Change]) -> Edit:  # noqa: ARG002
        nodes = sorted({each.spec.node_name for each in self.pods})
        keys = tuple(sorted(each.key for each in self.pods))
        sentence = f"evict {', '.join(keys)} from {', '.join(nodes)}"
        patch = ({"op": "remove", "path": ""},)
        command = delete_pods(sorted(self.pods, key=lambda each: each.key))
        effects = effects_of_eviction(self.pods)
        return Edit("evict", sentence, "Pod", keys, patch, command, self.cost, effects=effects)


@dataclass(frozen=True)
class _NewNode(_Change):
    """One more node of a known shape."""

    shape: NodeShape

    def begin(self, trial: _Trial) -> Callable[[], None]:
        node, pods = add_node(trial.simulation, self.shape)
        return lambda: drop_node(trial.simulation, node, pods)

    def edit(self, pod: Pod, objects: Objects, earlier: Sequence[_Change]) -> Edit:  # noqa: ARG002
        node, _ = self.shape.built(each.name for each in objects.nodes)
        manifest = {"apiVersion": "v1", "kind": "Node"} | msgspec.to_builtins(node)
        manifest["metadata"].pop("uid", None)
        sentence = f"add a node like {self.shape.name}, with {node_needs(pod, node)}"
        patch = ({"op": "add", "path": "", "value": manifest},)
        return Edit(
            "add node",
            sentence,
            "Node",
            (node.name,),
            patch,
            "",
            _ADD_NODE_COST,
            self.shape.name,
        )


# Trials -----------------------------------------------------------------------------------------


class _Trial:
    """The simulation in which changes are tried and undone."""

    def __init__(
        self, simulation: Simulation, objects: Objects, limits: SearchLimits, budgets: Budgets
    ) -> None:
        self.simulation, self._limits = simulation, limits
        self._objects = objects
        self._nodes = {node.name: node for node in objects.nodes}
        self._evictions = Evictions(simulation, objects, budgets)
        self.holders = self._evictions.holders
        #: Whether all nodes are tried one by one until one of them helps.
        self.looks_at_all = False
        #: What was not tried because there is too much of it, one sentence each.
        self.cut: dict[str, None] = {}

    def node_for(self, pod: Pod) -> str | None:
        """The node that the pod gets as the cluster is now."""
        return self.simulation.attempt(pod).node

    def helps(self, changes: Sequence[_Change], pod: Pod) -> str | None:
        """The node that the pod gets after the changes."""
        undo = self.applied(changes)
        for change in changes:
            pod = change.on_pod(pod)
        node = self.node_for(pod)
        self.undo(undo)
        return node

    def applied(self, changes: Sequence[_Change]) -> list[Callable[[], None]]:
        """Make the changes of the cluster; what undoes them."""
        return [change.begin(self) for change in changes]

    def undo(self, steps: list[Callable[[], None]]) -> None:
        """Undo changes, the last one first."""
        for step in reversed(steps):
            step()

    def fewest(self, relaxation: Relaxation, pod: Pod) -> int:
        """The fewest steps that help, where all of them do."""
        low, high = 0, relaxation.steps
        while high - low > 1:
            middle = (low + high) // 2
            if self.node_for(relaxation.on(pod, middle)):
                high = middle
            else:
                low = middle
        return high

    def fewest_of_two(self, one: Relaxation, two: Relaxation, pod: Pod) -> list[_Change]:
        """As little of the first as possible, then as little of the second."""
        first = self.fewest(one, two.on(pod, two.steps))
        second = self.fewest(two, one.on(pod, first))
        return [_PodEdit(one, first), _PodEdit(two, second)]

    def with_fewer_evictions(self, changes: Sequence[_Change], pod: Pod) -> Sequence[_Change]:
        """The same changes without evictions that are not needed on any node."""
        for place, change in enumerate(changes):
            if not isinstance(change, _Evict):
                continue
            needed = list(change.pods)
            for each in change.pods:
                fewer = [other for other in needed if other is not each]
                smaller = [*changes[:place], self._evict(fewer, pod), *changes[place + 1 :]]
                if fewer and self.helps(smaller, pod) is not None:
                    needed, changes = fewer, smaller
        return changes

    def pending_after(self, changes: Sequence[_Change], pod: Pod) -> list[str]:
        """The pods in the place of those that are evicted which find no node, in sentences."""
        victims = [each for change in changes if isinstance(change, _Evict) for each in change.pods]
        if not victims:
            return []
        undo = self.applied(changes)
        for change in changes:
            pod = change.on_pod(pod)
        decision = self.simulation.attempt(pod)
        found = []
        if decision.node is not None:
            self.simulation.place(pod, decision)
            found += [
                f"the pod in the place of {each.key} will be pending itself"
                for each in victims
                if is_recreated(each) and self.node_for(anew(each)) is None
            ]
            self.simulation.remove(pod.uid)
        self.undo(undo)
        return found

    def fits_on(self, pod: Pod, name: str) -> bool:
        """Whether the filters accept the pod on one node."""
        columns, profile = self.simulation.cache.columns, self.simulation.profile_of(pod)
        incoming = columns.pods.incoming(pod)
        row = columns.nodes.row_of[name]
        if any(gate.hold(incoming, columns) for gate in profile.gates):
            return False
        try:
            if any(check(incoming, columns) for check in profile.checks):
                return False
            pre_filter = PreFilter(incoming, columns, profile)
            if pre_filter.refused is not None:
                return False
            if pre_filter.only is not None and name not in pre_filter.only:
                return False
            trial = TrialRow(columns, row)
            code = run_filters_with_nominated(
                incoming,
                trial,
                pre_filter.taking_part(),
                nominees_count_for_affinity=profile.nominees_count_for_affinity,
            )
        except AttemptError:
            return False
        return code == FITS

    def feasible(self, pod: Pod) -> list[str]:
        """All nodes that the pod fits on as the cluster is now."""
        decision = self.simulation.attempt(pod, recording=True)
        return list(dict.fromkeys(decision.feasible)) if decision.node is not None else []

    # Changes of nodes -----------------------------------------------------------------------------

    def uncordons(self, pod: Pod | None) -> Iterator[_NodeEdit]:
        """Nodes to uncordon: all of them for no pod, else those that the pod fits on then."""
        given: list[_NodeEdit] = []
        cordoned = [node for node in self._nodes.values() if _is_cordoned(node)]
        for node in self._some(cordoned, given):
            change = _uncordoned(node)
            if pod is None or self._fits_after(change, pod, node.name):
                yield change
                given.append(change)
            if len(given) >= self._limits.of_a_kind and pod is not None:
                return

    def labels(self, pod: Pod, *, alone: bool = True) -> Iterator[_NodeEdit]:
        """Labels to set or remove on a node that the pod fits on then.

        Without *alone* those that are a part of what is needed, on nodes that accept the rest.
        """
        names = self.feasible(without_node_conditions(pod)) if alone else list(self._nodes)
        given: list[_NodeEdit] = []
        asked = LabelConditions(pod, self._objects)
        tried = [self._nodes[name] for name in names if name in self._nodes]
        for node in self._some(tried, given):
            for key, wanted in label_changes(asked, node):
                change = _labelled(node, key, wanted)
                if not alone or self._fits_after(change, pod, node.name):
                    yield change
                    given.append(change)
                    break
            if len(given) >= self._limits.of_a_kind and alone:
                return

    def evictions(self, pod: Pod) -> Iterator[_Evict]:
        """Pods to evict, a smallest set for each of the best nodes."""
        found: list[_Evict] = []
        nodes = self._evictions.ordered(pod, self.simulation)
        for name in self._some(nodes, found):
            change = self._eviction(pod, name)
            if change is not None:
                found.append(change)
        found.sort(key=lambda change: (change.cost, [each.key for each in change.pods]))
        yield from found[: self._limits.of_a_kind]

    def _eviction(self, pod: Pod, name: str) -> _Evict | None:
        pods = self._evictions.smallest(pod, name, lambda: self.fits_on(pod, name))
        return self._evict(pods, pod) if pods else None

    def _evict(self, pods: Sequence[Pod], pod: Pod) -> _Evict:
        cost = sum(self._evictions.cost(each, pod) for each in pods)
        return _Evict(tuple(pods), round(cost, 2))

    def on_node(self, pod: Pod, first: _NodeEdit) -> Iterator[_Change]:
        """Second changes of a node that was changed already."""
        name = first.after.name
        changed = self._nodes[name]
        self._nodes[name] = first.after
        try:
            if _is_cordoned(first.after):
                change: _Change = _uncordoned(first.after)
                if self._fits_after(change, pod, name):
                    yield change
            for key, wanted in label_changes(LabelConditions(pod, self._objects), first.after):
                change = _labelled(first.after, key, wanted)
                if self._fits_after(change, pod, name):
                    yield change
                    break
            evicted = self._eviction(pod, name)
            if evicted is not None:
                yield evicted
        finally:
            self._nodes[name] = changed

    def _fits_after(self, change: _Change, pod: Pod, name: str) -> bool:
        undo = change.begin(self)
        fits = self.fits_on(pod, name)
        undo()
        return fits

    def _some(self, nodes: Sequence[_T], found: Sequence[object]) -> Iterator[_T]:
        """The nodes that are tried one by one: the first ones, or all until one was *found*."""
        for place, node in enumerate(nodes):
            if place >= self._limits.nodes and (found or not self.looks_at_all):
                most = f"labels, uncordons and evictions were tried on {place} nodes only"
                self.cut[most] = None
                return
            yield node


def _is_cordoned(node: Node) -> bool:
    tainted = any(taint.key == _UNSCHEDULABLE for taint in node.spec.taints or ())
    return node.spec.unschedulable or tainted


def _uncordoned(node: Node) -> _NodeEdit:
    taints = [t for t in node.spec.taints or () if t.key != _UNSCHEDULABLE] or None
    after = replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))
    sentence, command = f"uncordon the node {node.name}", uncordon(node.name)
    return _NodeEdit("uncordon", sentence, node, after, command, 2.0)


def _labelled(node: Node, key: str, wanted: str | None) -> _NodeEdit:
    labels = {k: v for k, v in node.labels.items() if k != key}
    if wanted is not None:
        labels[key] = wanted
    after = replace(node, metadata=replace(node.metadata, labels=labels))
    what = f"remove the label {key} from" if wanted is None else f"add the label {key}={wanted} to"
    sentence = f"{what} the node {node.name}"
    command = label_node(node.name, key, wanted)
    return _NodeEdit("label", sentence, node, after, command, 3.0)
