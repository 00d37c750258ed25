"""Decisions on the state of a running scheduler, extenders included."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from podium.cluster.decider import Decider, ignore_step
from podium.cluster.pod_groups.cycle import GroupCycle

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence

    from podium.cluster.decider import Mark
    from podium.cluster.verification import Verification
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.group_decision import GroupDecision
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.pod import Pod
    from podium.objects.kinds.pod_group import PodGroup
    from podium.scheduler.state.cluster_state import ClusterState

    #: Answers a question that the engine has for an extender.
    Ask = Callable[[Any], Awaitable[Any]]

T = TypeVar("T")

#: Memory for the answers that are kept per pod class, for all profiles together.
KEPT_BYTES: Final = 1 << 26


def decider_on(
    state: ClusterState,
    profiles: Mapping[str, Profile],
    *,
    verification: Verification | None = None,
) -> Decider:
    """A decider on the cache of a scheduler, with the time and the nominations of its state."""
    return Decider(
        state.cache,
        profiles,
        clock=lambda: state.now,
        nominations=state.queue.nominations,
        kept_bytes=KEPT_BYTES,
        verification=verification,
    )


class LiveDecider:
    """Decides about pods in an event loop; the state is frozen while extenders are asked."""

    def __init__(
        self,
        state: ClusterState,
        profiles: Mapping[str, Profile],
        ask: Ask | None = None,
        *,
        recorded_nodes: int = 0,
        verification: Verification | None = None,
        timer: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """Decide by the *profiles*; *ask* answers questions to extenders, *timer* measures.

        In a cluster of no more than *recorded_nodes* nodes, a decision keeps every verdict and
        score that led to it. *verification* says which attempts are decided twice.
        """
        self._state = state
        self._ask = ask
        self._recorded_nodes = recorded_nodes
        #: What decides where no extender is asked.
        self.plain = decider_on(state, profiles, verification=verification)
        self._groups = GroupCycle(self.plain, profiles, timer)

    async def decide(self, pod: Pod, profile: Profile, mark: Mark = ignore_step) -> Decision:
        """Decide where the pod goes, or why nowhere; only the cursors of the node order move."""
        decider = self.plain
        recording = len(decider.cache.columns.nodes.order) <= self._recorded_nodes
        steps = decider.begin(pod, profile, recording=recording, mark=mark)
        try:
            question = next(steps)
        except StopIteration as done:
            return decider.finish(done.value)
        return decider.finish(await self._ask_extenders(steps, question))

    async def decide_group(self, group: PodGroup, pods: Sequence[Pod]) -> GroupDecision:
        """Decide about the waiting pods of a group; only the cursors of the node order move."""
        recording = len(self.plain.cache.columns.nodes.order) <= self._recorded_nodes
        steps = self._groups.run(group, pods, recording=recording)
        try:
            question = next(steps)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        # The cycle itself ends and restores nominations, which the next pod must see.
        return await self._ask_extenders(steps, question, holds_nominations=False)

    async def _ask_extenders(
        self, steps: Generator[Any, Any, T], question: Any, *, holds_nominations: bool = True
    ) -> T:
        """Continue a decision that asks extenders, with the cluster state frozen until it ends."""
        if self._ask is None:
            raise RuntimeError(f"no extender can be asked {question!r} here")
        self._state.freeze()
        self.plain.holds_nominations = holds_nominations
        try:
            while True:
                question = steps.send(await self._ask(question))
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        finally:
            self.plain.holds_nominations = False
            self._state.thaw()
