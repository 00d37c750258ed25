"""How long rules and steps take: each rule in one attempt in ten, each step of a slow decision.

The engine has no clock. The rules of a profile are therefore replaced by copies that read a clock
around their work while an attempt is measured, and otherwise do the same.

Slow decisions are logged with the duration of each step:

    Scheduling default/web-0 took 173 ms: Basic checks done 1 ms; Prioritizing done 160 ms; …

Upstream: utiltrace around schedulePod, which logs from 100 ms on, as information.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial, wraps
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from podium.engine.framework.profile import Weighted
from podium.engine.framework.rule import FilterRule, ScoreRule
from podium.scheduler.state.observers import Observer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from podium.engine.framework.profile import Profile
    from podium.scheduler.state.observers import AttemptResult
    from podium.scheduler.telemetry.logs import Log

#: kube-scheduler measures plugins in one of ten cycles as well.
EVERY: Final = 10


class RuleTimings:
    """Adds up the time that each rule takes in a measured attempt."""

    def __init__(self, clock: Callable[[], float] = perf_counter, every: int = EVERY) -> None:
        self._clock = clock
        self._every = every
        self._left = 0
        self._classes: dict[type, type] = {}
        #: Whether the attempt under way is measured.
        self.measuring = True
        #: Rule and extension point -> seconds in the attempt under way.
        self.spent: dict[tuple[str, str], float] = {}

    def end_attempt(self) -> dict[tuple[str, str], float] | None:
        """Return what was measured of the attempt, if it was; the next one may be measured."""
        spent = self.spent if self.measuring else None
        self._left = self._every - 1 if self.measuring else self._left - 1
        self.measuring = self._left <= 0
        if self.measuring or spent is not None:
            self.spent = {}
        return spent

    def instrument(self, profile: Profile) -> Profile:
        """The same profile with rules that are measured."""
        made: dict[int, Any] = {}

        def timed(rule: Any) -> Any:
            found = made.get(id(rule))
            if found is None:
                found = made[id(rule)] = self._copy(rule)
            return found

        return replace(
            profile,
            predicates=tuple(timed(rule) for rule in profile.predicates),
            pre_filters=tuple(timed(rule) for rule in profile.pre_filters),
            priorities=tuple(
                Weighted(timed(each.priority), each.weight) for each in profile.priorities
            ),
        )

    def _copy(self, rule: Any) -> Any:
        """A copy of a rule, of a subclass whose methods are timed and otherwise the same."""
        kind = type(rule)
        if kind not in self._classes:
            methods: dict[str, Any] = {"__slots__": ()}
            if issubclass(kind, FilterRule):
                # A rule without one is known by its inherited method, and not asked.
                if kind.pre_filter is not FilterRule.pre_filter:
                    methods["pre_filter"] = self._around(kind.pre_filter, "PreFilter")
                methods["filter"] = self._around(kind.filter, "Filter")
                methods["of_block"] = self._around_block(kind.of_block, "Filter", "bits", "bits_on")
            if issubclass(kind, ScoreRule):
                methods["score"] = self._around(kind.score, "Score")
                methods["of_few"] = self._around(kind.of_few, "Score")
                methods["of_block"] = self._around_block(
                    kind.of_block, "Score", "scores", "score_on"
                )
                methods["normalize"] = self._around(kind.normalize, "ScoreExtensionNormalize")
            self._classes[kind] = type(kind.__name__, (kind,), methods)
        twin = copy.copy(rule)
        object.__setattr__(twin, "__class__", self._classes[kind])
        return twin

    def _around_block(
        self, method: Callable[..., Any], point: str, *answering: str
    ) -> Callable[..., Any]:
        """The method, whose answer is another way to ask the rule: this is timed as well."""

        @wraps(method)
        def timed(rule: Any, *given: Any) -> Any:
            found = method(rule, *given)
            if found is None:
                return None

            def around(answer: Callable[..., Any]) -> Callable[..., Any]:
                return partial(self._around(lambda _, numbers: answer(numbers), point), rule)

            return _TimedBlock(found, answering, around)

        return timed

    def _around(self, method: Callable[..., Any], point: str) -> Callable[..., Any]:
        clock = self._clock

        @wraps(method)
        def timed(rule: Any, *given: Any) -> Any:
            if not self.measuring:
                return method(rule, *given)
            begun = clock()
            try:
                return method(rule, *given)
            finally:
                key = (rule.name, point)
                self.spent[key] = self.spent.get(key, 0.0) + clock() - begun

        return timed


class _TimedBlock:
    """Another way to ask a rule, of which some methods are timed."""

    def __init__(
        self,
        block: Any,
        answering: tuple[str, ...],
        around: Callable[[Callable[..., Any]], Callable[..., Any]],
    ) -> None:
        self.block, self._answering, self._around = block, answering, around
        for name in answering:
            setattr(self, name, around(getattr(block, name)))

    def stacked(self, rules: Sequence[_TimedBlock]) -> _TimedBlock:
        """Several of them as one, which is timed as this one is."""
        block = self.block.stacked([each.block for each in rules])
        return _TimedBlock(block, self._answering, self._around)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.block, name)


SLOW_SECONDS: Final = 0.1


class Steps:
    """Measures the steps of one attempt; `mark` is handed to the engine's `Attempt`."""

    __slots__ = ("_clock", "_last", "_taken")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last = clock()
        self._taken: list[tuple[str, float]] = []

    def mark(self, step: str) -> None:
        """End the step that is under way, and name it."""
        now = self._clock()
        self._taken.append((step, now - self._last))
        self._last = now

    def taken(self) -> tuple[tuple[str, float], ...]:
        """The name and duration of each step."""
        return tuple(self._taken)


class SlowTrace(Observer):
    """Logs each decision that took *seconds* or more."""

    def __init__(self, log: Log, seconds: float = SLOW_SECONDS) -> None:
        self._log = log
        self._seconds = seconds

    def attempted(self, result: AttemptResult) -> None:
        """Log the attempt if it was slow."""
        if result.seconds < self._seconds:
            return
        rest = result.seconds - sum(seconds for _, seconds in result.steps)
        steps = [*result.steps, ("the rest", max(0.0, rest))]
        self._log.info(
            f"Scheduling {result.pod.key} took {_milliseconds(result.seconds)}",
            pod=result.pod.key,
            profile=result.profile.name,
            nodes=result.decision.nodes,
            steps="; ".join(f"{name} {_milliseconds(seconds)}" for name, seconds in steps),
        )


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"
