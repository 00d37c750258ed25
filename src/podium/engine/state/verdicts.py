"""Why a node was rejected, as small integers.

A predicate answers with one code per row. Code 0 means "fits"; any other code names a `Verdict`:
the predicate, its reasons in order, and whether evicting pods could change the answer. The same
verdict always has the same code, so a million rejections cost a million small integers and the
histogram of reasons is one `bincount`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

FITS = 0


@dataclass(frozen=True, slots=True)
class Reason:
    """One sentence users will read; `curable` when evicting pods could make it go away."""

    text: str
    curable: bool = True


@dataclass(frozen=True, slots=True)
class Verdict:
    """A rejection: the rule, its reasons, and whether evicting pods could help."""

    predicate: str
    reasons: tuple[str, ...]
    curable: bool
    #: Every rule that took part: the predicate, or those that excluded the node together.
    plugins: tuple[str, ...] = ()
    #: Each rule with the reasons that it gave, in order.
    by_rule: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __post_init__(self) -> None:
        """A verdict that one predicate gave is of that predicate alone."""
        if self.predicate and not self.plugins:
            object.__setattr__(self, "plugins", (self.predicate,))
        if not self.by_rule:
            object.__setattr__(self, "by_rule", ((self.predicate, self.reasons),))


class Verdicts:
    """The vocabulary of verdicts of one view."""

    __slots__ = ("_by_reasons", "_codes", "_merged", "_tables", "_values")

    def __init__(self) -> None:
        self._values = [Verdict("", (), curable=True)]
        self._codes: dict[Verdict, int] = {}
        self._by_reasons: dict[tuple[str, tuple[Reason, ...]], int] = {}
        self._merged: dict[tuple[int, int], int] = {}
        self._tables: dict[tuple[str, tuple[Reason, ...]], np.ndarray] = {}

    def __getitem__(self, code: int) -> Verdict:
        return self._values[code]

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self._values)

    def code(self, verdict: Verdict) -> int:
        """The code of a verdict, made on first use."""
        found = self._codes.get(verdict)
        if found is None:
            found = self._codes[verdict] = len(self._values)
            self._values.append(verdict)
        return found

    def of(self, predicate: str, reasons: tuple[Reason, ...]) -> int:
        """The code for these reasons; curable only if every single reason is."""
        found = self._by_reasons.get((predicate, reasons))
        if found is None:
            texts = tuple(reason.text for reason in reasons if reason.text)
            curable = all(reason.curable for reason in reasons)
            found = self.code(Verdict(predicate, texts, curable))
            self._by_reasons[predicate, reasons] = found
        return found

    def table(self, predicate: str, reasons: tuple[Reason, ...]) -> np.ndarray:
        """The code for each combination of these reasons, where bit i stands for reason i.

        -1 for a combination that was not given yet; the caller writes its code there.
        """
        found = self._tables.get((predicate, reasons))
        if found is None:
            found = self._tables[predicate, reasons] = np.full(1 << len(reasons), -1, np.int32)
            found[0] = FITS
        return found

    def merge(self, first: int, second: int) -> int:
        """One code for a node that two predicates rejected (alwaysCheckAllPredicates)."""
        if not first or not second:
            return first or second
        found = self._merged.get((first, second))
        if found is None:
            one, two = self._values[first], self._values[second]
            both = Verdict(
                one.predicate,
                one.reasons + two.reasons,
                one.curable and two.curable,
                tuple(dict.fromkeys(one.plugins + two.plugins)),
                one.by_rule + two.by_rule,
            )
            found = self._merged[first, second] = self.code(both)
        return found


def histogram(codes: np.ndarray) -> dict[int, int]:
    """How often each verdict was given; rows that fit are not counted."""
    counts = np.bincount(codes, minlength=1)
    present = np.flatnonzero(counts).tolist()
    return {code: int(counts[code]) for code in present if code != FITS}
