"""One scheduling attempt: the engine's cycle on the cluster state, extenders included."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.engine.cycle.attempt import Attempt, ignore_step
from podium.engine.cycle.cycle import cycle
from podium.engine.cycle.ties import ties
from podium.engine.fast.class_answers import AnswerCache

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping

    from podium.daemon.cluster_state import ClusterState
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.pod import Pod

    #: Answers a question that the engine has for an extender.
    Ask = Callable[[Any], Awaitable[Any]]
    #: Called with the name of each finished step of a decision.
    Mark = Callable[[str], None]

#: Memory for the answers that are kept per pod class, for all profiles together.
RANKING_BYTES = 1 << 26


class Decider:
    """Decides about pods, one at a time."""

    def __init__(
        self,
        state: ClusterState,
        profiles: Mapping[str, Profile],
        ask: Ask | None = None,
        *,
        recorded_nodes: int = 0,
    ) -> None:
        """Decide by the *profiles*.

        In a cluster of no more than *recorded_nodes* nodes, a decision keeps every verdict and
        score that led to it.
        """
        self._recorded_nodes = recorded_nodes
        self._state = state
        self._ask = ask
        first = next(iter(profiles.values()))
        self._profiles = profiles
        #: The rule that breaks ties, for all profiles.
        self.ties = ties(first.ties)
        self._answers: dict[str, AnswerCache] = {}
        self._nominations = -1
        self.clear_rankings()

    def clear_rankings(self) -> None:
        """Drop the answers that were kept per pod class; the columns they refer to have changed."""
        columns = self._state.cache.columns
        self._answers = {
            name: AnswerCache(columns, profile, RANKING_BYTES // len(self._profiles))
            for name, profile in self._profiles.items()
        }
        self._nominations = -1

    async def decide(self, pod: Pod, profile: Profile, mark: Mark = ignore_step) -> Decision:
        """Decide where the pod goes, or why nowhere; only the cursors of the node order move."""
        steps = self._begin(pod, profile, mark)
        try:
            question = next(steps)
        except StopIteration as done:
            return self._finish(done.value)
        return self._finish(await self._ask_extenders(steps, question))

    def decide_without_extenders(self, pod: Pod, profile: Profile) -> Decision:
        """Decide at once, for a profile that has no extenders."""
        try:
            question = next(self._begin(pod, profile, ignore_step))
        except StopIteration as done:
            return self._finish(done.value)
        raise RuntimeError(f"no extender can be asked {question!r} here")

    def _begin(self, pod: Pod, profile: Profile, mark: Mark) -> Generator[Any, Any, Decision]:
        cache = self._state.cache
        cache.columns.decided_at = self._state.now
        self._update_nominations()
        attempt = Attempt(
            cache.columns.pods.incoming(pod),
            profile,
            cache.order(),
            self.ties,
            recording=len(cache.columns.nodes.order) <= self._recorded_nodes,
            answers=self._answers[profile.scheduler_name],
            mark=mark,
        )
        return cycle(cache.columns, attempt)

    def _finish(self, decision: Decision) -> Decision:
        self._state.cache.advance(decision.consumed, dropped=decision.dropped)
        return decision

    async def _ask_extenders(self, steps: Generator[Any, Any, Decision], question: Any) -> Decision:
        """Continue a cycle that asks extenders, with the cluster state frozen until it ends."""
        if self._ask is None:
            raise RuntimeError(f"no extender can be asked {question!r} here")
        self._state.freeze()
        try:
            while True:
                question = steps.send(await self._ask(question))
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        finally:
            self._state.thaw()

    def _update_nominations(self) -> None:
        """Copy the queue's nominated pods into the columns, if they have changed."""
        queue, columns = self._state.queue, self._state.cache.columns
        version = queue.nominations_version
        if version != self._nominations:
            self._nominations = version
            columns.set_nominated(
                {node: queue.nominated_on(node) for node in queue.nominated_nodes()}
            )
