"""One attempt at one pod: the engine's cycle over what we believe, extenders asked on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.engine.cycle.cycle import Attempt, cycle, unheard
from podium.engine.cycle.ties import ties
from podium.engine.fast.class_answers import Rankings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping

    from podium.daemon.cluster_state import Beliefs
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.pod import Pod

    #: The reply to a question of the engine.
    Ask = Callable[[Any], Awaitable[Any]]
    #: Told of each step of a decision.
    Mark = Callable[[str], None]

#: Memory for what earlier pods of a class were told.
RANKING_BYTES = 1 << 26


class Attempts:
    """Decides about pods, one at a time."""

    def __init__(
        self,
        beliefs: Beliefs,
        profiles: Mapping[str, Profile],
        ask: Ask | None = None,
        *,
        recording: bool = False,
        recorded_nodes: int = 0,
    ) -> None:
        """Decide by the *profiles*.

        With *recording*, or with no more than *recorded_nodes*, everything that led to a decision
        is kept.
        """
        self._recording = recording
        self._recorded_nodes = recorded_nodes
        self._beliefs = beliefs
        self._ask = ask
        first = next(iter(profiles.values()))
        self._profiles = profiles
        self._ties = ties(first.ties)
        self._rankings: dict[str, Rankings] = {}
        self._nominations = -1
        self.start_afresh()

    def start_afresh(self) -> None:
        """Forget what earlier pods were told."""
        columns = self._beliefs.cache.columns
        self._rankings = {
            name: Rankings(columns, profile, RANKING_BYTES // len(self._profiles))
            for name, profile in self._profiles.items()
        }
        self._nominations = -1

    async def decide(self, pod: Pod, profile: Profile, mark: Mark = unheard) -> Decision:
        """Where the pod goes, or why nowhere. Nothing is changed but the cursors."""
        steps = self._begin(pod, profile, mark)
        try:
            question = next(steps)
        except StopIteration as done:
            return self._ended(done.value)
        return self._ended(await self._asked(steps, question))

    def decide_alone(self, pod: Pod, profile: Profile) -> Decision:
        """The same, where there is nobody to ask."""
        try:
            question = next(self._begin(pod, profile, unheard))
        except StopIteration as done:
            return self._ended(done.value)
        raise RuntimeError(f"nobody can answer {question!r} here")

    def _begin(self, pod: Pod, profile: Profile, mark: Mark) -> Generator[Any, Any, Decision]:
        cache = self._beliefs.cache
        self._keep_nominations()
        attempt = Attempt(
            cache.columns.incoming(pod),
            profile,
            cache.order(),
            self._ties,
            recording=self._recording or len(cache.columns.order) <= self._recorded_nodes,
            rankings=self._rankings[profile.scheduler_name],
            mark=mark,
        )
        return cycle(cache.columns, attempt)

    def _ended(self, decision: Decision) -> Decision:
        self._beliefs.cache.advance(decision.consumed, dropped=decision.dropped)
        return decision

    async def _asked(self, steps: Generator[Any, Any, Decision], question: Any) -> Decision:
        """Go on with somebody to ask; meanwhile the view stands still."""
        if self._ask is None:
            raise RuntimeError(f"nobody can answer {question!r} here")
        self._beliefs.hold()
        try:
            while True:
                question = steps.send(await self._ask(question))
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        finally:
            self._beliefs.release()

    def _keep_nominations(self) -> None:
        """Show the engine who was promised which node."""
        queue, columns = self._beliefs.queue, self._beliefs.cache.columns
        version = queue.nominations_version
        if version != self._nominations:
            self._nominations = version
            columns.nominated = {
                node: [columns.resident(pod, -1) for pod in queue.nominated_on(node)]
                for node in queue.nominated_nodes()
            }
