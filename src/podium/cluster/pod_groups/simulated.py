"""Pod groups in a simulation: a cycle is carried out at once, victims are gone at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from weakref import proxy

from podium.cluster.pod_groups.cycle import (
    GroupCycle,
    condition_after,
    own_decision,
    with_condition,
)
from podium.engine.framework.decision import Decision
from podium.engine.framework.rule import Refused
from podium.engine.rules.pod_groups import GangGate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from podium.cluster.simulation import Simulation, Step
    from podium.engine.framework.group_decision import GroupDecision, MemberResult
    from podium.objects.kinds.pod import Pod
    from podium.objects.kinds.pod_group import PodGroup


class GroupStep(NamedTuple):
    """One cycle of a group, and what became of each of its pods."""

    decision: GroupDecision
    steps: tuple[Step, ...]
    #: The pods that were not placed, as they are now.
    left: tuple[Pod, ...]


class SimulatedGroups:
    """Runs the cycles of groups on a simulation, and carries them out."""

    def __init__(self, simulation: Simulation) -> None:
        # The simulation owns this: without a cycle of references, it is freed when it is dropped.
        self._simulation: Simulation = proxy(simulation)
        self.cycle = GroupCycle(simulation.decider, simulation.decider.profiles)
        self._gate = GangGate()
        #: How often each pod of a group was tried.
        self._attempts: dict[str, int] = {}

    def expect(self, pods: Sequence[Pod]) -> None:
        """Count pods without a node as members of their groups."""
        for pod in pods:
            self._simulation.cache.columns.pods.groups.expect(pod)

    def named(self, key: str) -> PodGroup | None:
        """The group with this key, as it is now."""
        namespace, _, name = key.partition("/")
        return self._simulation.cache.columns.catalog.pod_groups.get(name, namespace)

    def hold(self, pods: Sequence[Pod]) -> Refused | None:
        """Why pods of a group are not tried: one of them is held, and so are all."""
        columns = self._simulation.cache.columns
        for pod in pods:
            incoming = columns.pods.incoming(pod)
            gates = self._simulation.profile_of(pod).gates
            for gate in gates if self._gate.name in _names(gates) else (*gates, self._gate):
                held = gate.hold(incoming, columns)
                if held is not None:
                    return held
        return None

    def held(self, pods: Sequence[Pod], refused: Refused) -> Iterator[Step]:
        """The steps of pods of a group that is not tried."""
        for pod in pods:
            decision = self._blank(pod)
            decision.held = refused
            yield self._simulation.step_of(pod, self._attempts.get(pod.uid, 0) + 1, decision)

    def look(
        self, key: str, pods: Sequence[Pod]
    ) -> tuple[GroupDecision | None, dict[str, Decision]]:
        """Decide about the waiting pods of a group, and carry nothing out.

        The cycle, or None if the group is held; and the decision about each pod by its key.
        """
        simulation = self._simulation
        self.expect(pods)
        held, group = self.hold(pods), self.named(key)
        if held is not None or group is None:
            assert held is not None  # a missing group holds its pods
            return None, {each.pod.key: each.decision for each in self.held(pods, held)}
        found = simulation.answered(self.cycle.run(group, pods, recording=True))
        columns, name = simulation.cache.columns, simulation.profile_of(pods[0]).name
        own = {each.pod.key: own_decision(each, name, columns) for each in found.members}
        return found, own

    def run(
        self,
        group: PodGroup,
        pods: Sequence[Pod],
        *,
        recording: bool,
        start_time: Callable[[], str] | None = None,
    ) -> GroupStep:
        """Try the pods of a group together, and carry out what is decided.

        *start_time* gives the start time of pods that are placed.
        """
        simulation = self._simulation
        self.cycle.decided = simulation.decided
        found = simulation.answered(self.cycle.run(group, pods, recording=recording))
        steps, left = [], []
        for member in found.members:
            pod = member.pod
            self._attempts[pod.uid] = self._attempts.get(pod.uid, 0) + 1
            step = self._step(member, found)
            if step.decision.node is not None:
                simulation.nominate(pod, "")
                simulation.place(pod, step.decision, start_time=start_time)
            else:
                left.append(simulation.renominated(pod, member.nomination))
            steps.append(step)
        if found.preemption is not None:
            for uid in found.preemption.uids:
                simulation.evict(uid)
        for release in found.released:
            simulation.release(release)
        condition = condition_after(group, found)
        if condition is not None:
            shelf = simulation.cache.columns.catalog.pod_groups
            shelf.put(with_condition(group, condition))
        return GroupStep(found, tuple(steps), tuple(left))

    def _step(self, member: MemberResult, found: GroupDecision) -> Step:
        simulation, pod = self._simulation, member.pod
        name = simulation.profile_of(pod).name
        decision = own_decision(member, name, simulation.cache.columns)
        return simulation.step_of(pod, self._attempts[pod.uid], decision, found)

    def _blank(self, pod: Pod) -> Decision:
        columns = self._simulation.cache.columns
        name = self._simulation.profile_of(pod).name
        return Decision(
            pod.key, pod.uid, name, nodes=len(columns.nodes.order), verdicts=columns.verdicts
        )


def _names(gates: Sequence[object]) -> set[str]:
    return {getattr(gate, "name", "") for gate in gates}
