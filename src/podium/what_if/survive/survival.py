"""What would be left if each domain of a cluster were lost: a node, a zone, a rack.

Every value of a label is lost in turn. The pods on its nodes are created anew by their controllers
and scheduled on the nodes that are left, in the order of the scheduling queue; pods that are
evicted for others are created anew as well. No time passes in between.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from podium.errors import InputError
from podium.library.absence import AbsentObjects
from podium.library.frames import TabularAnswer
from podium.library.parallel import in_parallel
from podium.library.pending_pods import is_pending, pending, seen_by
from podium.library.simulations import open_simulation
from podium.library.workloads import (
    Workloads,
    anew,
    belongs_to_node,
    budgets_of,
    desired_healthy,
    is_active,
    is_recreated,
)
from podium.profiles.similar_names import did_you_mean
from podium.what_if.plan.results import API_VERSION, PlanValue

if TYPE_CHECKING:
    from podium.cluster.simulation import Simulation
    from podium.library.profile_choice import ChosenProfiles
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects

#: In place of a label: every node is a domain of its own.
EACH_NODE: Final = "node"


class LostPod(PlanValue):
    """A pod of the lost domain that has no node afterwards."""

    pod: str
    workload: str
    #: Whether it waits for a node; otherwise nothing creates it anew.
    pending: bool
    reason: str
    priority: int = 0
    #: What the input does not have, and what the answer about this pod depends on; usually empty.
    unknown: str = ""


class Shortfall(PlanValue):
    """A workload or a disruption budget with fewer pods than it asks for."""

    name: str
    wanted: int
    #: Pods that are left at once, and pods with a node after rescheduling.
    at_once: int
    after: int


class DomainLoss(PlanValue):
    """What follows from the loss of all nodes with one value of the label."""

    value: str
    nodes: int
    #: Pods that ran there, without those of daemon sets.
    pods: int
    #: Pods of the domain that have another node afterwards.
    replaced: int
    left: list[LostPod] = msgspec.field(default_factory=list)
    #: Pods that were evicted to make room, whether or not they have a node afterwards.
    evicted: list[str] = msgspec.field(default_factory=list)
    workloads: list[Shortfall] = msgspec.field(default_factory=list)
    budgets: list[Shortfall] = msgspec.field(default_factory=list)

    @property
    def badness(self) -> tuple[int, int, int, str]:
        """The order of the table: most pods left first, then budgets, then workloads."""
        below = [each for each in self.budgets if each.after < each.wanted]
        return -len(self.left), -len(below), -len(self.budgets), self.value


class Survival(PlanValue, TabularAnswer):
    """The losses of all domains, the worst first."""

    api_version: str = API_VERSION
    kind: str = "Survival"
    profile: str = ""
    label: str = ""
    domains: list[DomainLoss] = msgspec.field(default_factory=list)
    #: Nodes without the label, which are never lost.
    unlabelled: int = 0
    #: Pods that have no node even if nothing is lost.
    pending_before: list[str] = msgspec.field(default_factory=list)
    interrupted: bool = False

    def __repr__(self) -> str:
        """How many losses leave pods without a node."""
        worst = sum(bool(each.left) for each in self.domains)
        return f"<Survival: {self.label}: {worst} of {len(self.domains)} leave pods without a node>"

    def __getitem__(self, value: str) -> DomainLoss:
        """The loss of one domain."""
        found = next((each for each in self.domains if each.value == value), None)
        if found is None:
            raise KeyError(f"{value}; there are {', '.join(each.value for each in self.domains)}")
        return found

    def rows(self) -> tuple[tuple[str, ...], list[tuple[str | int, ...]]]:
        """The names of columns, and a row for each loss."""
        names = ("lost", "nodes", "pods", "replaced", "left", "evicted", "budgets", "workloads")
        return names, [
            (
                *(d.value, d.nodes, d.pods, d.replaced, len(d.left)),
                *(len(d.evicted), len(d.budgets), len(d.workloads)),
            )
            for d in self.domains
        ]

    @property
    def leaves_pods(self) -> bool:
        """Whether some loss leaves a pod without a node."""
        return any(each.left for each in self.domains)


def survive(
    objects: Objects,
    label: str,
    chosen: ChosenProfiles,
    *,
    workers: int = 1,
    progress: Callable[[Iterator[DomainLoss], int], Iterable[DomainLoss]] = lambda done, _: done,
) -> Survival:
    """Lose every value of *label* in turn, and say what would be left without a node.

    A name such as `zone` or `rack` stands for the label that ends in it, `node` for every node.
    With several *workers* the losses are tried at the same time, in copies of this process.
    *progress* iterates over the losses as they are known, of which there will be so many. A
    `KeyboardInterrupt` ends it with those that are known so far.
    """
    label = domain_label(objects, label)
    values = domain_values(objects, label)
    found = Survival(profile=chosen.profile.name, label=label)
    found.unlabelled = sum(_domain_of(node, label) is None for node in objects.nodes)
    settled, found.pending_before = at_rest(objects, chosen)
    try:
        work = [partial(lose_domain, settled, label, value, chosen) for value in values]
        done = (loss for _, loss in in_parallel(work, workers))
        for loss in progress(done, len(values)):
            found.domains.append(loss)
    except KeyboardInterrupt:
        found.interrupted = True
    found.domains.sort(key=lambda each: each.badness)
    return found


def domain_label(objects: Objects, name: str) -> str:
    """The label of nodes that *name* means: itself, or the one that ends in `/name`.

    Of several, the one that most nodes have; `node` means no label.
    """
    counts = Counter(key for node in objects.nodes for key in node.labels)
    if name in counts or name == EACH_NODE:
        return name
    ending = [key for key in counts if key.rpartition("/")[2] == name]
    return max(ending, key=lambda key: (counts[key], key), default=name)


def _domain_of(node: Node, label: str) -> str | None:
    """The domain that a node is lost with."""
    return node.name if label == EACH_NODE else node.labels.get(label)


def domain_values(objects: Objects, label: str) -> list[str]:
    """The values of a label of nodes; an error names labels that there are."""
    if not objects.nodes:
        raise InputError("there is no node", hint="losses need the nodes of a cluster")
    values = sorted({each for node in objects.nodes if (each := _domain_of(node, label))})
    if not values:
        known = sorted({key for node in objects.nodes for key in node.labels})
        hint = did_you_mean(label, known) or f"labels of nodes are {', '.join(known) or 'none'}"
        hint = f"{hint}; {EACH_NODE} loses one node after the other"
        raise InputError(f"no node has the label {label!r}", hint=hint)
    return values


def at_rest(objects: Objects, chosen: ChosenProfiles) -> tuple[Objects, list[str]]:
    """The cluster after its pending pods were scheduled, and the pods that still have no node."""
    waiting = pending(objects, chosen.schedulers, by_priority=chosen.profile.by_priority)
    if not waiting:
        return objects, []
    with open_simulation(chosen.profiles) as simulation:
        simulation.load(seen_by(objects, chosen.schedulers, without=waiting))
        outcome = _schedule(simulation, waiting, {pod.uid: pod for pod in objects.pods})
    settled = objects.copied()
    settled.pods = [outcome.pods.get(pod.uid, pod) for pod in objects.pods]
    left = [pod.key for pod in settled.pods if is_pending(pod, chosen.schedulers)]
    return settled, left


class _Outcome:
    """The pods after scheduling, by uid, and why those without a node have none."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.reasons: dict[str, str] = {}
        self.evicted: list[str] = []
        #: Evicted pods without a controller.
        self.gone: list[Pod] = []


def _schedule(simulation: Simulation, waiting: Sequence[Pod], running: dict[str, Pod]) -> _Outcome:
    """Schedule the pods; victims of preemption are created anew and wait behind all others."""
    found = _Outcome()
    queue: deque[list[Pod]] = deque([list(waiting)])
    while queue:
        batch = queue.popleft()
        displaced: list[Pod] = []
        for step in simulation.run(batch):
            pod, decision = step.pod, step.decision
            found.pods[pod.uid] = replace(
                pod, spec=replace(pod.spec, node_name=decision.node or "")
            )
            if decision.node is None:
                found.reasons[pod.uid] = decision.message or decision.error
                preemption = decision.preemption
                if preemption is not None and preemption.node is not None:
                    for uid in preemption.candidates[preemption.node].uids:
                        victim = found.pods.get(uid) or running[uid]
                        found.evicted.append(victim.key)
                        if is_recreated(victim):
                            displaced.append(anew(victim))
                            found.pods[uid] = displaced[-1]
                        else:
                            found.gone.append(victim)
            else:
                found.reasons.pop(pod.uid, None)
        if displaced:
            queue.append(displaced)
    return found


def lose_domain(objects: Objects, label: str, value: str, chosen: ChosenProfiles) -> DomainLoss:
    """Lose all nodes with this value of the label and schedule their pods anew."""
    lost = {node.name for node in objects.nodes if _domain_of(node, label) == value}
    names = Workloads(objects)
    remaining = objects.copied()
    remaining.nodes = [node for node in objects.nodes if node.name not in lost]
    # A pod that is terminating goes anyway; what replaces it is there already, or comes anyway.
    there = [pod for pod in objects.pods if pod.spec.node_name in lost and is_active(pod)]
    remaining.pods = [pod for pod in objects.pods if pod.spec.node_name not in lost]
    displaced = [pod for pod in there if not belongs_to_node(pod)]
    waiting = [anew(pod) for pod in displaced if is_recreated(pod)]
    found = DomainLoss(value=value, nodes=len(lost), pods=len(displaced), replaced=0)
    remaining.pods += waiting
    order = pending(remaining, chosen.schedulers, by_priority=chosen.profile.by_priority)
    with open_simulation(chosen.profiles) as simulation:
        simulation.load(seen_by(remaining, chosen.schedulers, without=order))
        running = {pod.uid: pod for pod in remaining.pods}
        outcome = _schedule(simulation, order, running)
    found.evicted = outcome.evicted
    of_others = [pod for pod in waiting if pod.uid not in outcome.pods]
    found.replaced = sum(
        bool(outcome.pods[pod.uid].spec.node_name) for pod in waiting if pod.uid in outcome.pods
    )
    found.left = [
        LostPod(
            pod=pod.key,
            workload="",
            pending=False,
            reason="it has no controller that would create it anew",
            priority=pod.spec.priority or 0,
        )
        for pod in (*(each for each in displaced if not is_recreated(each)), *outcome.gone)
    ]
    before = {pod.uid for pod in objects.pods if is_pending(pod, chosen.schedulers)}
    absent = AbsentObjects(objects)
    left = [
        (pod, outcome.reasons.get(uid, ""), absent.of(pod))
        for uid, pod in outcome.pods.items()
        if not pod.spec.node_name and uid not in before
    ]
    left += [
        (pod, f"the scheduler {name} decides about it", f"scheduler {name}")
        for pod in of_others
        for name in (pod.spec.scheduler_name,)
    ]
    found.left += [
        LostPod(
            pod=pod.key,
            workload=names.of(pod),
            pending=True,
            reason=reason,
            priority=pod.spec.priority or 0,
            unknown=unknown,
        )
        for pod, reason, unknown in left
    ]
    found.left.sort(key=lambda each: (-each.priority, each.workload, each.pod))
    gone = {pod.uid for pod in outcome.gone} | {
        pod.uid for pod in displaced if not is_recreated(pod)
    }
    after = [
        pod
        for each in remaining.pods
        if (pod := outcome.pods.get(each.uid, each)).spec.node_name
        and pod.uid not in gone
        and is_active(pod)
    ]
    at_once = [
        pod
        for pod in objects.pods
        if pod.spec.node_name and pod.spec.node_name not in lost and is_active(pod)
    ]
    found.workloads = list(_workload_shortfalls(names, at_once, after, there))
    found.budgets = list(_budget_shortfalls(objects, names, at_once, after, there))
    return found


def _workload_shortfalls(
    names: Workloads, at_once: Sequence[Pod], after: Sequence[Pod], there: Sequence[Pod]
) -> Iterable[Shortfall]:
    """The workloads of the domain that have fewer pods than replicas, at once or after."""
    touched = sorted({name for pod in there if (name := names.of(pod)) in names.wanted})
    first, last = (Counter(names.of(pod) for pod in pods) for pods in (at_once, after))
    for name in touched:
        wanted = names.wanted[name]
        if min(first[name], last[name]) < wanted:
            yield Shortfall(name=name, wanted=wanted, at_once=first[name], after=last[name])


def _budget_shortfalls(
    objects: Objects,
    names: Workloads,
    at_once: Sequence[Pod],
    after: Sequence[Pod],
    there: Sequence[Pod],
) -> Iterable[Shortfall]:
    """The disruption budgets that are not met, at once or after rescheduling."""
    for each in budgets_of(objects):
        if not any(map(each.covers, there)):
            continue
        pods = [pod for pod in objects.pods if each.covers(pod) and not pod.finished]
        wanted = desired_healthy(each.budget, pods, names)
        first, last = (sum(map(each.covers, group)) for group in (at_once, after))
        if min(first, last) < wanted:
            name = f"PodDisruptionBudget/{each.budget.key}"
            yield Shortfall(name=name, wanted=wanted, at_once=first, after=last)
