"""The placements of another scheduler compared with what Podium decides about the same pods.

A judgement of a placement that differs is kept until all orders are tried. It has a matrix: every
verdict and every score of its decision. In a large cluster that is hundreds of kilobytes, and
bindings may come much later than they are judged. Beyond the limit the oldest ones keep their
decision without its matrix.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from podium.library.decision_json import API_VERSION
from podium.render.decision import sentences
from podium.render.decision.analysis import node_report, ranking, score_gaps
from podium.render.plain import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.pod import Pod
    from podium.render.decision.analysis import ScoreGap


#: How the node of a pod compares with the decision: the same node; another one with the same
#: total; the best of those that a scheduler looked at which looks at a share of them; one that is
#: as good if other pods were decided before or after it; another one.
SAME, AS_GOOD, LOOKED_AT = "same", "asGood", "bestOfLookedAt"
OTHER_ORDER, DIFFERENT = "asGoodInAnotherOrder", "different"
KINDS: Final = (SAME, AS_GOOD, LOOKED_AT, OTHER_ORDER, DIFFERENT)
#: What is different: the node has a lower total; it was rejected or not examined; none was found.
LOWER, REJECTED, UNPLACED = "lower", "rejected", "unplaced"
DETAILS: Final = (LOWER, REJECTED, UNPLACED)
_TEXTS: Final = {
    AS_GOOD: "as good",
    LOOKED_AT: "best of the nodes looked at",
    OTHER_ORDER: "as good in another order",
    LOWER: "scored lower",
    REJECTED: "rejected",
    UNPLACED: "no node found",
}


@dataclass(frozen=True, slots=True)
class PlacementComparison:
    """The node that was decided on for a pod, and the one that it was placed on."""

    pod: str
    ours: str | None
    theirs: str
    #: One of `KINDS`, and of `DETAILS` where it is different.
    kind: str
    detail: str = ""
    #: Why they differ, in sentences.
    why: tuple[str, ...] = ()
    #: The differences of the scores of the two nodes, by priority.
    gaps: tuple[ScoreGap, ...] = ()
    #: When the placement was seen, in seconds since 1970.
    time: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """The comparison as plain data."""
        found: dict[str, Any] = {
            "pod": self.pod,
            "ours": self.ours,
            "theirs": self.theirs,
            "kind": self.kind,
            **({"detail": self.detail} if self.detail else {}),
            "why": list(self.why),
        }
        if self.gaps:
            found["priorities"] = [
                {
                    "priority": gap.priority,
                    "weight": gap.weight,
                    "ours": gap.mine,
                    "theirs": gap.theirs,
                    "points": gap.points,
                }
                for gap in self.gaps
            ]
        return found


def compare_placement(decision: Decision, theirs: str, time: float = 0.0) -> PlacementComparison:
    """The decision compared with *theirs*, the node that the pod was placed on."""
    pod, ours = decision.pod, decision.node
    if ours == theirs:
        return PlacementComparison(pod, ours, theirs, SAME, time=time)
    report = node_report(decision, theirs)
    why = tuple(sentences.node_sentences(decision, report))
    if not decision.examined:
        why = ("the verdict on that node was not recorded",)
    if ours is None:
        why = (decision.message, *why)
        return PlacementComparison(pod, ours, theirs, DIFFERENT, UNPLACED, why, time=time)
    if report.position is None or decision.totals is None:
        return PlacementComparison(pod, ours, theirs, DIFFERENT, REJECTED, why, time=time)
    score_differences = tuple(score_gaps(decision, ranking(decision)[0], report.position))
    equal = int(decision.totals[report.position]) == int(decision.totals.max())
    kind, detail = (AS_GOOD, "") if equal else (DIFFERENT, LOWER)
    return PlacementComparison(pod, ours, theirs, kind, detail, why, score_differences, time)


@dataclass(slots=True)
class JudgedGroup:
    """The placements of the pods of one pod group."""

    #: namespace/name.
    name: str
    #: How many pods must have a node; None where the group itself is not known.
    min_count: int | None = None
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))

    @property
    def pods(self) -> int:
        """The number of placements that were compared."""
        return sum(self.counts.values())

    def as_json(self) -> dict[str, Any]:
        """The group as plain data."""
        return {"name": self.name, "minCount": self.min_count, "pods": self.pods, **self.counts}

    def __str__(self) -> str:
        agree = self.pods - self.counts[DIFFERENT]
        needed = "" if self.min_count is None else f"; {self.min_count} must have a node"
        return f"pod group {self.name}: {counted(self.pods, 'placement')}, {agree} agree{needed}"


@dataclass(slots=True)
class Agreement:
    """How many placements agree with Podium's decisions, and how the others differ."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    #: What is different about those that are.
    details: dict[str, int] = field(default_factory=lambda: dict.fromkeys(DETAILS, 0))
    #: Placements that could not be judged: nothing is known of the pod before it had a node, or
    #: extenders would have to be asked.
    undecided: int = 0
    #: Pods that wait for a node, or whose placement waits for that of pods decided before.
    waiting: int = 0
    #: Pods that Podium finds a node for where the other scheduler reported none.
    missed: int = 0
    differences: Sequence[PlacementComparison] = ()
    #: The pod groups of the pods.
    groups: Sequence[JudgedGroup] = ()

    @property
    def pods(self) -> int:
        """The number of placements that were compared."""
        return sum(self.counts.values())

    @property
    def ratio(self) -> float:
        """The share of placements on the same node, or on one that is as good."""
        return 1 - self.counts[DIFFERENT] / self.pods if self.pods else 1.0

    def listed(self, *, verbose: bool = False) -> Sequence[PlacementComparison]:
        """The placements that are different; *verbose*: all that are not on the same node."""
        return [each for each in self.differences if verbose or each.kind == DIFFERENT]

    def as_json(self, *, verbose: bool = False) -> dict[str, Any]:
        """The numbers and differences as plain data; *verbose*: ties and other orders, too."""
        return {
            "apiVersion": API_VERSION,
            "kind": "Agreement",
            "pods": self.pods,
            "agreement": round(self.ratio, 6),
            **self.counts,
            **self.details,
            "undecided": self.undecided,
            "waiting": self.waiting,
            "missed": self.missed,
            "podGroups": [each.as_json() for each in self.groups],
            "differences": [each.as_json() for each in self.listed(verbose=verbose)],
        }


def agreement_text(found: Agreement, limit: int = 50, *, verbose: bool = False) -> str:
    """The numbers, and then at most *limit* differences with their reasons.

    *verbose*: the placements that are as good on another node are listed with them.
    """
    counts, details = found.counts, found.details
    agree = f", {_percent(found.ratio)} agree" if found.pods else ""
    lines = [
        f"{counted(found.pods, 'placement')} compared{agree}",
        f"  {counts[SAME]:>8}  same node",
        f"  {counts[AS_GOOD]:>8}  as good: another node with the same total",
        f"  {counts[LOOKED_AT]:>8}  best of the nodes looked at, which are a share of all",
        f"  {counts[OTHER_ORDER]:>8}  as good in another order of decisions that is possible",
        f"  {counts[DIFFERENT]:>8}  different",
    ]
    for detail, text in (
        (LOWER, "on a node that Podium scores lower"),
        (REJECTED, "on a node that Podium rejects, or did not examine"),
        (UNPLACED, "where Podium found no node"),
    ):
        if details[detail]:
            lines.append(f"  {details[detail]:>8}    {text}")
    if found.undecided:
        why = "seen too late, the history ends before, or extenders decide"
        lines.append(f"  {found.undecided:>8}  not compared: {why}")
    if found.missed:
        lines.append(f"  {found.missed:>8}  pods reported as unschedulable that Podium would place")
    if found.waiting:
        lines.append(f"  {found.waiting:>8}  pods not placed yet, or not judged yet")
    lines += map(str, found.groups[:limit])
    lines += [f"and {len(found.groups) - limit} more pod groups"] * (len(found.groups) > limit)
    listed = found.listed(verbose=verbose)
    if not listed:
        return "\n".join(lines) + "\n"
    what = "Placements on another node" if verbose else "Differences"
    lines += ["", f"{what}, the latest first:"]
    for each in listed[:limit]:
        lines.append(f"  {each.pod}: {each.ours or 'no node'}, actually on {each.theirs}")
        text = _TEXTS[each.detail or each.kind]
        lines += [f"      {text}: {sentence}" for sentence in each.why[:1]]
        lines += [f"      {sentence}" for sentence in each.why[1:]]
        if each.gaps:
            parts = (f"{sentences.short(gap.priority)} {gap.points:+d}" for gap in each.gaps)
            lines.append(f"      points for {each.ours}: {', '.join(parts)}")
    if len(listed) > limit:
        lines.append(f"  and {len(listed) - limit} more")
    return "\n".join(lines) + "\n"


def _percent(ratio: float) -> str:
    """A share with as many digits as it takes not to call it whole."""
    return f"{ratio:.1%}" if ratio in {0.0, 1.0} or f"{ratio:.1%}" != "100.0%" else f"{ratio:.3%}"


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
