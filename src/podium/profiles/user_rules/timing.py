"""Run times and failures of users' rules."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: A rule may take this long for one pod and all remaining nodes.
LIMIT_SECONDS = 1.0
#: After this many overruns a rule is no longer called.
OVERRUNS = 10
#: This many occurrences are reported one by one, then the 10th, the 100th, the 1000th, …
REPORTED_ONE_BY_ONE = 3
#: Limit of failure texts that are counted apart; the text of a rule may differ every time.
MAX_FAILURE_TEXTS = 1000


class RuleWatch:
    """Measures rules, reports overruns and failures, and sets slow rules aside.

    An overrun is noticed when the rule returns; a rule cannot be interrupted.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        tell: Callable[[str], None],
        *,
        limit_seconds: float = LIMIT_SECONDS,
        overruns: int = OVERRUNS,
    ) -> None:
        self._clock = clock
        self._tell = tell
        self._limit_seconds = limit_seconds
        self._allowed = overruns
        #: How often each rule took too long, and how often it failed.
        self.overruns: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self._failure_texts: Counter[tuple[str, str]] = Counter()
        self._aside: set[str] = set()

    def begin(self) -> float:
        """The time at which a call begins."""
        return self._clock()

    def end(self, rule: str, pod: str, nodes: int, begun: float) -> None:
        """Report a call that took too long; set the rule aside after too many of them."""
        seconds = self._clock() - begun
        if seconds <= self._limit_seconds:
            return
        self.overruns[rule] += 1
        where = f"{nodes} nodes" if nodes != 1 else "one node"
        if _is_reported(self.overruns[rule]):
            self._tell(
                f"rule {rule} took {seconds:.2f} s for pod {pod} and {where}, "
                f"more than {self._limit_seconds:g} s ({_times(self.overruns[rule])})"
            )
        if self._allowed and self.overruns[rule] >= self._allowed and rule not in self._aside:
            self._aside.add(rule)
            self._tell(f"rule {rule} is set aside: it took too long {_times(self._allowed)}")

    def failed(self, rule: str, pod: str, node: str, what: str) -> None:
        """Report a failure, unless the same one was reported often enough."""
        self.failures[rule] += 1
        failure = (rule, what) if len(self._failure_texts) < MAX_FAILURE_TEXTS else (rule, "")
        self._failure_texts[failure] += 1
        count = self._failure_texts[failure]
        if _is_reported(count):
            times = f" ({_times(count)})" if count > 1 else ""
            self._tell(f"rule {rule} failed for pod {pod} on {_node(node)}: {what}{times}")

    def set_aside(self, rule: str) -> bool:
        """Whether the rule took too long too often and is no longer called."""
        return rule in self._aside


def _node(name: str) -> str:
    return name if name.startswith("all ") else f"node {name}"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _is_reported(number: int) -> bool:
    """Whether the occurrence of this number is reported."""
    digits = str(number)
    return number <= REPORTED_ONE_BY_ONE or (set(digits[1:]) == {"0"} and digits[0] == "1")
