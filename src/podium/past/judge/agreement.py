"""The placements of another scheduler compared with Podium's decisions, and counted.

A `Judge` reports a `Judgement` for each placement, in hindsight; an `Agreement` counts them and
keeps the differences. `podium history judge` prints it, and `podium run --shadow` serves it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from podium.library.decision_json import API_VERSION
from podium.render.decision import sentences
from podium.render.decision.analysis import node_report, ranking, score_gaps
from podium.render.plain import counted
from podium.scheduler.telemetry.metric_types import Counters, gauges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from prometheus_client import Metric

    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.pod import Pod
    from podium.render.decision.analysis import ScoreGap


#: How the node of a pod compares with the decision: the same node; another one with the same total;
#: the best of the nodes looked at, which are a share of all; as good if other pods were decided
#: before or after it; different.
SAME, AS_GOOD, LOOKED_AT = "same", "asGood", "bestOfLookedAt"
OTHER_ORDER, DIFFERENT = "asGoodInAnotherOrder", "different"
#: What is different: the node has a lower total; it was rejected or not examined; none was found.
LOWER, REJECTED, UNPLACED = "lower", "rejected", "unplaced"
#: Each kind: its name as a label of the metric, beside a placement, and in the summary.
_KINDS: Final = {
    SAME: ("same", "", "same node"),
    AS_GOOD: ("as_good", "as good", "as good: another node with the same total"),
    LOOKED_AT: (
        "best_of_looked_at",
        "best of the nodes looked at",
        "best of the nodes looked at, which are a share of all",
    ),
    OTHER_ORDER: (
        "as_good_in_another_order",
        "as good in another order",
        "as good in another order of decisions that is possible",
    ),
    DIFFERENT: ("different", "different", "different"),
}
#: Each detail of what is different: beside a placement, and in the summary.
_DETAILS: Final = {
    LOWER: ("scored lower", "  on a node that Podium scores lower"),
    REJECTED: ("rejected", "  on a node that Podium rejects, or did not examine"),
    UNPLACED: ("no node found", "  where Podium found no node"),
}
#: The most differences that are kept with their explanation, and the most pod groups: the latest.
MOST_DIFFERENCES: Final = 1_000
MOST_GROUPS: Final = 1_000


@dataclass(frozen=True, slots=True)
class PlacementComparison:
    """The node that was decided on for a pod, and the one that it was placed on."""

    pod: str
    ours: str | None
    theirs: str
    #: `SAME` and so on, and for one that is different what is different: `LOWER` and so on.
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
    #: How many pods of its pod group must have a node; None where the group is not known.
    min_count: int | None = None


@dataclass(slots=True)
class JudgedGroup:
    """The placements of the pods of one pod group."""

    #: namespace/name.
    name: str
    #: How many pods must have a node; None where the group itself is not known.
    min_count: int | None = None
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_KINDS, 0))

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


class Agreement:
    """Counts how many placements agree with Podium's decisions, and how the others differ."""

    def __init__(self, most_differences: int | None = MOST_DIFFERENCES) -> None:
        """Keep so many differences, the latest ones; None for all."""
        self.counts = dict.fromkeys(_KINDS, 0)
        #: What is different about those that are.
        self.details = dict.fromkeys(_DETAILS, 0)
        #: Placements that could not be judged: nothing is known of the pod before it had a node, or
        #: extenders would have to be asked.
        self.undecided = 0
        #: Set by the judge. How many pods wait for a node, or for the placement of pods decided
        #: before; and for how many Podium finds a node where the other scheduler reported none.
        self.waiting: Callable[[], int] = lambda: 0
        self.missed: Callable[[], int] = lambda: 0
        #: The latest first.
        self.differences: deque[PlacementComparison] = deque(maxlen=most_differences)
        #: The pod groups of the pods, by `namespace/name`.
        self.groups: dict[str, JudgedGroup] = {}

    def judged(self, judgement: Judgement) -> None:
        """Count a judgement."""
        found = judgement.comparison
        if found is None:
            self.undecided += 1
            return
        self.counts[found.kind] += 1
        if name := judgement.pod.group:
            group = self.groups.setdefault(name, JudgedGroup(name))
            group.counts[found.kind] += 1
            group.min_count = judgement.min_count or group.min_count
            if len(self.groups) > MOST_GROUPS:
                del self.groups[next(iter(self.groups))]
        if found.detail:
            self.details[found.detail] += 1
        if found.kind != SAME:
            self.differences.appendleft(found)

    @property
    def pods(self) -> int:
        """The number of placements that were compared."""
        return sum(self.counts.values())

    @property
    def ratio(self) -> float:
        """The share of placements on the same node, or on one that is as good."""
        return 1 - self.counts[DIFFERENT] / self.pods if self.pods else 1.0

    def _listed(self, *, verbose: bool) -> Sequence[PlacementComparison]:
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
            "waiting": self.waiting(),
            "missed": self.missed(),
            "podGroups": [each.as_json() for each in self.groups.values()],
            "differences": [each.as_json() for each in self._listed(verbose=verbose)],
        }

    def table(self, limit: int = 50, *, verbose: bool = False) -> str:
        """The numbers, and then at most *limit* differences with their reasons.

        *verbose*: the placements that are as good on another node are listed with them.
        """
        agree = f", {_percent(self.ratio)} agree" if self.pods else ""
        lines = [f"{counted(self.pods, 'placement')} compared{agree}"]
        numbers = [
            *((self.counts[kind], text) for kind, (_, _, text) in _KINDS.items()),
            *((self.details[each], text) for each, (_, text) in _DETAILS.items()),
            (
                self.undecided,
                "not compared: seen too late, the history ends before, or extenders decide",
            ),
            (self.missed(), "pods reported as unschedulable that Podium would place"),
            (self.waiting(), "pods not placed yet, or not judged yet"),
        ]
        shown = [each for at, each in enumerate(numbers) if at < len(_KINDS) or each[0]]
        lines += [f"  {count:>8}  {text}" for count, text in shown]
        lines += map(str, list(self.groups.values())[:limit])
        lines += [f"and {len(self.groups) - limit} more pod groups"] * (len(self.groups) > limit)
        listed = self._listed(verbose=verbose)
        if listed:
            what = "Placements on another node" if verbose else "Differences"
            lines += ["", f"{what}, the latest first:"]
            lines += [line for each in listed[:limit] for line in _placement_lines(each)]
            lines += [f"  and {len(listed) - limit} more"] * (len(listed) > limit)
        return "\n".join(lines) + "\n"

    def families(self) -> Iterator[Metric]:
        """The comparison so far, as metrics for `Metrics.more`."""
        counters = Counters(
            "podium_shadow_placements",
            "Placements of the other scheduler, by how they compare with what Podium decides.",
            ("result",),
        )
        for kind, (label, _, _) in _KINDS.items():
            counters.add(label, count=self.counts[kind])
        counters.add("undecided", count=self.undecided)
        yield counters.family()
        yield gauges(
            "podium_shadow_agreement_ratio",
            "Share of the placements that are on Podium's node or on one that it finds as good.",
            (),
            {(): self.ratio},
        )


def _placement_lines(found: PlacementComparison) -> Iterator[str]:
    yield f"  {found.pod}: {found.ours or 'no node'}, actually on {found.theirs}"
    text = _DETAILS[found.detail][0] if found.detail else _KINDS[found.kind][1]
    for number, sentence in enumerate(found.why):
        yield f"      {sentence}" if number else f"      {text}: {sentence}"
    if found.gaps:
        parts = (f"{sentences.short(gap.priority)} {gap.points:+d}" for gap in found.gaps)
        yield f"      points for {found.ours}: {', '.join(parts)}"


def _percent(ratio: float) -> str:
    """A share with as many digits as it takes not to call it whole."""
    return f"{ratio:.1%}" if ratio in {0.0, 1.0} or f"{ratio:.1%}" != "100.0%" else f"{ratio:.3%}"
