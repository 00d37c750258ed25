"""Judgements; those of placements that differ are kept until all orders are tried.

A judgement has a matrix: every verdict and every score of its decision. In a large cluster that is
hundreds of kilobytes, and bindings may come much later than they are judged. Beyond the limit the
oldest ones keep their decision without its matrix.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.pod import Pod
    from podium.past.judge.agreement import PlacementComparison

#: As much as the log of decisions may take.
BUDGET_BYTES: Final = 32 << 20
#: What a name in a list of nodes takes, besides the text, which is shared.
_REFERENCE_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Judgement:
    """A placement of the other scheduler, and what Podium decides in its place."""

    pod: Pod
    attempt: int
    #: None when the placement could not be judged.
    comparison: PlacementComparison | None
    decision: Decision | None
    profile: Profile | None
    time: float


class Doubtful:
    """The judgements by the uid of their pod."""

    def __init__(self, budget_bytes: int = BUDGET_BYTES) -> None:
        """Keep matrices of *budget_bytes* at most."""
        self._budget_bytes = budget_bytes
        self._judgements: dict[str, Judgement] = {}
        #: Those with a matrix, the oldest first: the same decision without it, and the bytes of it.
        self._matrices: OrderedDict[str, tuple[Decision, int]] = OrderedDict()
        #: The bytes of all matrices that are kept.
        self.size = 0

    def __len__(self) -> int:
        return len(self._judgements)

    def put(self, uid: str, judgement: Judgement, plain: Decision) -> None:
        """Keep a judgement; *plain* is its decision without the matrix."""
        self.pop(uid)
        self._judgements[uid] = judgement
        if judgement.decision is not None:
            size = matrix_bytes(judgement.decision)
            self._matrices[uid] = (plain, size)
            self.size += size
        while self.size > self._budget_bytes:
            oldest, (smaller, size) = self._matrices.popitem(last=False)
            self.size -= size
            self._judgements[oldest] = replace(self._judgements[oldest], decision=smaller)

    def pop(self, uid: str) -> Judgement | None:
        """The judgement of a pod, which is kept no more."""
        _, size = self._matrices.pop(uid, (None, 0))
        self.size -= size
        return self._judgements.pop(uid, None)


def matrix_bytes(decision: Decision) -> int:
    """What the matrix of a decision takes."""
    arrays = [decision.codes, *([decision.totals] if decision.totals is not None else [])]
    arrays += [array for column in decision.scores for array in (column.raw, column.score)]
    names = (decision.examined, decision.feasible, decision.best)
    return sum(array.nbytes for array in arrays) + _REFERENCE_BYTES * sum(map(len, names))
