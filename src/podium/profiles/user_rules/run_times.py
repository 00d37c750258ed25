"""Run times and failures of users' rules, what they print, and rules that do not return."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: A rule may take this long for one pod and all remaining nodes.
LIMIT_SECONDS = 1.0
#: After this many overruns a rule is no longer called.
OVERRUNS = 10
#: A rule that has not returned after so many times its limit is taken as one that never will.
HANGS_AFTER = 10
#: This many occurrences are reported one by one, then the 10th, the 100th, the 1000th, …
REPORTED_ONE_BY_ONE = 3
#: Limit of failure texts that are counted apart; the text of a rule may differ every time.
MAX_FAILURE_TEXTS = 1000
_PACKAGE = Path(__file__).parents[2]


class RuleWatch:
    """Measures rules, reports overruns and failures, and sets slow rules aside.

    An overrun is noticed when the rule returns; a rule cannot be interrupted. What a rule prints
    goes to standard error.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        tell: Callable[[str], None],
        *,
        limit_seconds: float = LIMIT_SECONDS,
        overruns: int = OVERRUNS,
        on_hang: Callable[[str], None] | None = None,
    ) -> None:
        """*on_hang* is called in another thread with a sentence about a rule that hangs."""
        self._clock = clock
        self._on_hang = on_hang
        self._guard: threading.Thread | None = None
        #: The rule and pod that are asked about, when that began, and the thread that asks.
        self._asked: tuple[str, str, float, int] | None = None
        self._printing: Any = None
        self._tell = tell
        self._limit_seconds = limit_seconds
        self._allowed = overruns
        #: How often each rule took too long, and how often it failed.
        self.overruns: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self._failure_texts: Counter[tuple[str, str]] = Counter()
        self._aside: set[str] = set()

    def begin(self, rule: str, pod: str) -> float:
        """The time at which a call begins."""
        if sys.stdout is not sys.stderr:
            self._printing, sys.stdout = sys.stdout, sys.stderr
        if self._on_hang is not None:
            self._asked = (rule, pod, time.monotonic(), threading.get_ident())
            if self._guard is None:
                self._guard = threading.Thread(target=self._watch, name="rules", daemon=True)
                self._guard.start()
        return self._clock()

    def _watch(self) -> None:
        """Look for a call that does not return, until there is one."""
        assert self._on_hang is not None
        allowed = self._limit_seconds * HANGS_AFTER
        while True:
            time.sleep(min(self._limit_seconds, 1.0))
            asked = self._asked
            if asked is not None and time.monotonic() - asked[2] > allowed:
                rule, pod, _, thread = asked
                place = _place(thread)
                where = f" at {place}" if place else ""
                self._on_hang(f"rule {rule} has not returned for pod {pod} in {allowed:g} s{where}")
                return

    def end(self, rule: str, pod: str, nodes: int, begun: float) -> None:
        """Report a call that took too long; set the rule aside after too many of them."""
        self._asked = None
        if self._printing is not None:
            sys.stdout, self._printing = self._printing, None
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
            shown = what.replace(f"({Path.cwd()}/", "(")  # the file, seen from here
            self._tell(f"rule {rule} failed for pod {pod} on {_node(node)}: {shown}{times}")

    def set_aside(self, rule: str) -> bool:
        """Whether the rule took too long too often and is no longer called."""
        return rule in self._aside


def _place(thread: int) -> str:
    """The file and line of the code outside of Podium that a thread is in."""
    frame = sys._current_frames().get(thread)  # noqa: SLF001  there is no other way
    while frame is not None and Path(frame.f_code.co_filename).is_relative_to(_PACKAGE):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _node(name: str) -> str:
    return name if name.startswith("all ") else f"node {name}"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _is_reported(number: int) -> bool:
    """Whether the occurrence of this number is reported."""
    digits = str(number)
    return number <= REPORTED_ONE_BY_ONE or (set(digits[1:]) == {"0"} and digits[0] == "1")
