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
from podium.library.parallel import in_parallel
from podium.library.pending import is_pending, pending, seen_by
from podium.library.simulating import open_simulation
from podium.objects.kinds.registry import (
    DEPLOYMENT,
    POD_DISRUPTION_BUDGET,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from podium.objects.selectors.selectors import SelectorError, from_label_selector
from podium.planning.results import API_VERSION, Value
from podium.profiles.similar_names import did_you_mean

if TYPE_CHECKING:
    from podium.cluster.simulation import Simulation
    from podium.library.profile_choice import ChosenProfiles
    from podium.objects.kinds.pod import Pod
    from podium.objects.kinds.workloads import PodDisruptionBudget
    from podium.objects.reading.collection import Objects

_SCALED: Final = (DEPLOYMENT, REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET)
_MIRROR: Final = "kubernetes.io/config.mirror"


class LostPod(Value):
    """A pod of the lost domain that has no node afterwards."""

    pod: str
    workload: str
    #: Whether it waits for a node; otherwise nothing creates it anew.
    pending: bool
    reason: str


class Shortfall(Value):
    """A workload or a disruption budget with fewer pods than it asks for."""

    name: str
    wanted: int
    #: Pods that are left at once, and pods with a node after rescheduling.
    at_once: int
    after: int


class DomainLoss(Value):
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


class Survival(Value):
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

    With several *workers* the losses are tried at the same time, in copies of this process.
    *progress* iterates over the losses as they are known, of which there will be so many. A
    `KeyboardInterrupt` ends it with those that are known so far.
    """
    values = domain_values(objects, label)
    found = Survival(profile=chosen.profile.name, label=label)
    found.unlabelled = sum(label not in node.labels for node in objects.nodes)
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


def domain_values(objects: Objects, label: str) -> list[str]:
    """The values of a label of nodes; an error names labels that there are."""
    if not objects.nodes:
        raise InputError("there is no node", hint="losses need the nodes of a cluster")
    values = sorted({node.labels[label] for node in objects.nodes if label in node.labels})
    if not values:
        known = sorted({key for node in objects.nodes for key in node.labels})
        hint = did_you_mean(label, known) or f"labels of nodes are {', '.join(known) or 'none'}"
        raise InputError(f"no node has the label {label!r}", hint=hint)
    return values


def at_rest(objects: Objects, chosen: ChosenProfiles) -> tuple[Objects, list[str]]:
    """The cluster after its pending pods were scheduled, and the pods that still have no node."""
    waiting = pending(objects, chosen.schedulers, by_priority=chosen.profile.by_priority)
    if not waiting:
        return objects, []
    first, *others = chosen.profiles
    with open_simulation(first, others) as simulation:
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
                        if _is_recreated(victim):
                            displaced.append(anew(victim))
                            found.pods[uid] = displaced[-1]
                        else:
                            found.gone.append(victim)
            else:
                found.reasons.pop(pod.uid, None)
        if displaced:
            queue.append(displaced)
    return found


def anew(pod: Pod) -> Pod:
    """The pod that a controller creates in the place of *pod*: without node and status."""
    status = replace(pod.status, phase="Pending", nominated_node_name="", start_time=None)
    return replace(pod, spec=replace(pod.spec, node_name=""), status=status)


def _is_recreated(pod: Pod) -> bool:
    return pod.metadata.controller() is not None


def lose_domain(objects: Objects, label: str, value: str, chosen: ChosenProfiles) -> DomainLoss:
    """Lose all nodes with this value of the label and schedule their pods anew."""
    lost = {node.name for node in objects.nodes if node.labels.get(label) == value}
    names = _Workloads(objects)
    remaining = objects.copied()
    remaining.nodes = [node for node in objects.nodes if node.name not in lost]
    there = [pod for pod in objects.pods if pod.spec.node_name in lost and not pod.finished]
    remaining.pods = [pod for pod in objects.pods if pod.spec.node_name not in lost]
    displaced = [pod for pod in there if not names.is_daemon(pod) and not _is_mirror(pod)]
    waiting = [anew(pod) for pod in displaced if _is_recreated(pod)]
    found = DomainLoss(value=value, nodes=len(lost), pods=len(displaced), replaced=0)
    remaining.pods += waiting
    order = pending(remaining, chosen.schedulers, by_priority=chosen.profile.by_priority)
    first, *others = chosen.profiles
    with open_simulation(first, others) as simulation:
        simulation.load(seen_by(remaining, chosen.schedulers, without=order))
        running = {pod.uid: pod for pod in remaining.pods}
        outcome = _schedule(simulation, order, running)
    found.evicted = outcome.evicted
    found.replaced = sum(bool(outcome.pods[pod.uid].spec.node_name) for pod in waiting)
    found.left = [
        LostPod(
            pod=pod.key,
            workload="",
            pending=False,
            reason="it has no controller that would create it anew",
        )
        for pod in (*(each for each in displaced if not _is_recreated(each)), *outcome.gone)
    ]
    before = {pod.uid for pod in objects.pods if is_pending(pod, chosen.schedulers)}
    found.left += [
        LostPod(
            pod=pod.key, workload=names.of(pod), pending=True, reason=outcome.reasons.get(uid, "")
        )
        for uid, pod in outcome.pods.items()
        if not pod.spec.node_name and uid not in before
    ]
    gone = {pod.uid for pod in outcome.gone} | {
        pod.uid for pod in displaced if not _is_recreated(pod)
    }
    after = [
        pod
        for each in remaining.pods
        if (pod := outcome.pods.get(each.uid, each)).spec.node_name
        and pod.uid not in gone
        and not pod.finished
    ]
    at_once = [
        pod
        for pod in objects.pods
        if pod.spec.node_name and pod.spec.node_name not in lost and not pod.finished
    ]
    found.workloads = list(_workload_shortfalls(names, at_once, after, there))
    found.budgets = list(_budget_shortfalls(objects, names, at_once, after, there))
    return found


def _is_mirror(pod: Pod) -> bool:
    return _MIRROR in (pod.metadata.annotations or {})


class _Workloads:
    """The workloads of a cluster: whose pod is whose, and how many each wants."""

    def __init__(self, objects: Objects) -> None:
        self.wanted: dict[str, int] = {}
        self._above: dict[str, str] = {}
        for kind in _SCALED:
            for item in objects.of(kind):
                name = f"{kind.name}/{item.namespace}/{item.name}"
                owner = item.metadata.controller()
                if owner is not None:
                    self._above[name] = f"{owner.kind}/{item.namespace}/{owner.name}"
                replicas = item.spec.replicas
                self.wanted[name] = 1 if replicas is None else replicas
        # A snapshot has no deployments: their replica sets say how many pods they want.
        absent = {above for above in self._above.values() if above not in self.wanted}
        for name, above in self._above.items():
            if above in absent:
                self.wanted[above] = self.wanted.get(above, 0) + self.wanted[name]

    def of(self, pod: Pod) -> str:
        """The workload that a user knows: the deployment, not its replica set."""
        owner = pod.metadata.controller()
        if owner is None:
            return ""
        name = f"{owner.kind}/{pod.namespace}/{owner.name}"
        return self._above.get(name, name)

    def is_daemon(self, pod: Pod) -> bool:
        """Whether the pod belongs to a daemon set."""
        owner = pod.metadata.controller()
        return owner is not None and owner.kind == "DaemonSet"


def _workload_shortfalls(
    names: _Workloads, at_once: Sequence[Pod], after: Sequence[Pod], there: Sequence[Pod]
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
    names: _Workloads,
    at_once: Sequence[Pod],
    after: Sequence[Pod],
    there: Sequence[Pod],
) -> Iterable[Shortfall]:
    """The disruption budgets that are not met, at once or after rescheduling."""
    for budget in objects.of(POD_DISRUPTION_BUDGET):
        try:
            selector = from_label_selector(budget.spec.selector)
        except SelectorError:
            continue

        def selects(pod: Pod, budget: PodDisruptionBudget = budget) -> bool:
            return pod.namespace == budget.namespace and selector.matches(pod.labels)  # noqa: B023

        if not any(map(selects, there)):
            continue
        pods = [pod for pod in objects.pods if selects(pod) and not pod.finished]
        wanted = desired_healthy(budget, pods, names)
        first, last = (sum(map(selects, group)) for group in (at_once, after))
        if min(first, last) < wanted:
            yield Shortfall(
                name=f"PodDisruptionBudget/{budget.namespace}/{budget.name}",
                wanted=wanted,
                at_once=first,
                after=last,
            )


def desired_healthy(budget: PodDisruptionBudget, pods: Sequence[Pod], names: _Workloads) -> int:
    """How many pods a budget wants healthy, as the disruption controller counts them."""
    least, most = budget.spec.min_available, budget.spec.max_unavailable
    if most is None and not isinstance(least, str):
        return 1 if least is None else least
    owners = {name for pod in pods if (name := names.of(pod)) in names.wanted}
    expected = sum(names.wanted[name] for name in owners)
    expected += sum(names.of(pod) not in names.wanted for pod in pods)
    if most is not None:
        return max(expected - _share(most, expected), 0)
    assert least is not None
    return _share(least, expected)


def _share(amount: int | str, of: int) -> int:
    """A number, or a percentage rounded up."""
    if isinstance(amount, int):
        return amount
    digits = amount.removesuffix("%")
    return -(-of * int(digits) // 100) if digits.isdigit() else 0
