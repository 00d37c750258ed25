"""How long each predicate and each priority takes, measured for one attempt in ten.

The engine has no clock. A profile is therefore given rules of the same kind that read one around
their work while the stopwatch runs, and do nothing else differently.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import wraps
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from podium.engine.framework.profile import Weighted
from podium.engine.rules.plugins import FilterPlugin

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.engine.framework.profile import Profile

#: What a rule does, under the name it has in kube-scheduler's metrics.
POINTS: Final = {
    "prepare": "PreFilter",
    "reject": "Filter",
    "score": "Score",
    "reduce": "ScoreExtensionNormalize",
}
#: kube-scheduler measures plugins in a tenth of its cycles, too.
EVERY: Final = 10


class Stopwatch:
    """Adds up what the rules of a measured attempt take."""

    def __init__(self, clock: Callable[[], float] = perf_counter, every: int = EVERY) -> None:
        self._clock = clock
        self._every = every
        self._left = 0
        self._classes: dict[type, type] = {}
        #: Whether the attempt under way is measured.
        self.running = True
        #: Rule and extension point -> seconds in the attempt under way.
        self.spent: dict[tuple[str, str], float] = {}

    def lap(self) -> dict[tuple[str, str], float] | None:
        """An attempt has ended: what was measured, if it was; and whether the next one is."""
        spent = self.spent if self.running else None
        self._left = self._every - 1 if self.running else self._left - 1
        self.running = self._left <= 0
        if self.running or spent is not None:
            self.spent = {}
        return spent

    def timed(self, profile: Profile) -> Profile:
        """The same profile, measured."""
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
        """A rule of a subclass that differs in nothing but that it is timed."""
        kind = type(rule)
        if kind not in self._classes:
            methods = {
                name: self._around(getattr(kind, name), point)
                for name, point in POINTS.items()
                # A first look that is merely inherited has nothing to say, and rules are asked so.
                if getattr(kind, name, None) not in (None, FilterPlugin.prepare)
            }
            self._classes[kind] = type(kind.__name__, (kind,), {"__slots__": (), **methods})
        twin = copy.copy(rule)
        object.__setattr__(twin, "__class__", self._classes[kind])
        return twin

    def _around(self, method: Callable[..., Any], point: str) -> Callable[..., Any]:
        clock = self._clock

        @wraps(method)
        def timed(rule: Any, *given: Any) -> Any:
            if not self.running:
                return method(rule, *given)
            begun = clock()
            try:
                return method(rule, *given)
            finally:
                key = (rule.name, point)
                self.spent[key] = self.spent.get(key, 0.0) + clock() - begun

        return timed
