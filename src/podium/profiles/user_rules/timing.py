"""Keeps an eye on users' rules: how long they take, and what goes wrong in them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: A rule may take this long for one pod and all nodes left.
LIMIT_SECONDS = 1.0
#: After so many overruns it is not asked any more.
OVERRUNS = 10
#: The first ones are told one by one, then every tenth, hundredth, …
TOLD_ONE_BY_ONE = 3
#: Different failures that are told apart; a rule may word each one differently.
KINDS = 1000


class RuleWatch:
    """Times rules and tells what happened, without telling the same for ever.

    An overrun is noticed when the rule returns; nothing can stop it before that.
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
        self._kinds: Counter[tuple[str, str]] = Counter()
        self._aside: set[str] = set()

    def begin(self) -> float:
        """The time."""
        return self._clock()

    def end(self, rule: str, pod: str, nodes: int, begun: float) -> None:
        """Tell if it took too long, and set the rule aside if it did so too often."""
        seconds = self._clock() - begun
        if seconds <= self._limit_seconds:
            return
        self.overruns[rule] += 1
        where = f"{nodes} nodes" if nodes != 1 else "one node"
        if _worth_telling(self.overruns[rule]):
            self._tell(
                f"rule {rule} took {seconds:.2f} s for pod {pod} and {where}, "
                f"more than {self._limit_seconds:g} s ({_times(self.overruns[rule])})"
            )
        if self._allowed and self.overruns[rule] >= self._allowed and rule not in self._aside:
            self._aside.add(rule)
            self._tell(f"rule {rule} is set aside: it took too long {_times(self._allowed)}")

    def failed(self, rule: str, pod: str, node: str, what: str) -> None:
        """Tell what went wrong, the first times and then now and then."""
        self.failures[rule] += 1
        kind = (rule, what) if len(self._kinds) < KINDS else (rule, "")
        self._kinds[kind] += 1
        if _worth_telling(self._kinds[kind]):
            times = f" ({_times(self._kinds[kind])})" if self._kinds[kind] > 1 else ""
            self._tell(f"rule {rule} failed for pod {pod} on {_node(node)}: {what}{times}")

    def set_aside(self, rule: str) -> bool:
        """Whether it took too long too often."""
        return rule in self._aside


def _node(name: str) -> str:
    return name if name.startswith("all ") else f"node {name}"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _worth_telling(number: int) -> bool:
    """The first three, then the tenth, the hundredth, the thousandth."""
    return number <= TOLD_ONE_BY_ONE or (set(str(number)[1:]) == {"0"} and str(number)[0] == "1")
