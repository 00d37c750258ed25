"""What came of deciding everything in a history again: the result of `podium history replay`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from podium.objects.times import shown_time
from podium.render.decision import pod_group

if TYPE_CHECKING:
    from podium.past.replay.past_decisions import DerivedGroup
    from podium.past.replay.replay import ReplayDifference


@dataclass(slots=True)
class ReplayResult:
    """What came of deciding everything in a history again."""

    equal: int = 0
    placed: int = 0
    #: Decisions whose verdicts and scores were recorded, too, and are equal.
    matrices: int = 0
    asked_extenders: int = 0
    #: Whether a part of the history could not be read.
    damaged: bool = False
    #: Decisions that the scheduler made twice, because kept answers were wrong.
    corrected: int = 0
    torn: list[str] = field(default_factory=list)
    differences: list[ReplayDifference] = field(default_factory=list)
    #: The cycles of pod groups, and those of them that differ.
    cycles: int = 0
    other_cycles: list[DerivedGroup] = field(default_factory=list)
    #: The cycles of each pod group that ended otherwise than the one before, each with the number
    #: of the last attempt that ended so.
    groups: dict[str, list[tuple[DerivedGroup, int]]] = field(default_factory=dict)
    complete: bool = True

    def note_group(self, found: DerivedGroup) -> None:
        """Count a cycle of a pod group."""
        self.cycles += 1
        if found.difference:
            self.other_cycles.append(found)
        ended, last = self.groups.setdefault(found.entry.group, []), found.entry.attempt
        if ended and pod_group.cycle_lines(ended[-1][0].decision) == pod_group.cycle_lines(
            found.decision
        ):
            found, _ = ended.pop()
        ended.append((found, last))

    def as_json(self) -> dict[str, Any]:
        """The result as plain data."""
        return {
            "apiVersion": "podium/v1",
            "kind": "Replay",
            "decisions": self.equal + len(self.differences),
            "equal": self.equal,
            "withMatrix": self.matrices,
            "placed": self.placed,
            "askedExtenders": self.asked_extenders,
            "corrected": self.corrected,
            "torn": self.torn,
            "complete": self.complete,
            "differences": [
                {
                    "pod": each.entry.pod,
                    "attempt": each.entry.attempt,
                    "time": shown_time(each.entry.time),
                    "recorded": each.entry.node,
                    "replayed": each.decision.node,
                    "what": each.what,
                }
                for each in self.differences
            ],
            "podGroups": [
                {**_group_data(each), "lastAttempt": last}
                for ended in self.groups.values()
                for each, last in ended
            ],
            "podGroupDifferences": [_group_data(each) for each in self.other_cycles],
        }


def _group_data(found: DerivedGroup) -> dict[str, Any]:
    """A cycle of a pod group, as plain data."""
    return {
        **pod_group.as_json(found.decision),
        "attempt": found.entry.attempt,
        "time": shown_time(found.entry.time),
        "asRecorded": not found.difference,
        **({"what": found.difference} if found.difference else {}),
    }
