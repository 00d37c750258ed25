"""Finds a decision in a history, and makes it again from the state at that moment.

Deciding everything before it is not necessary: the replay begins with the checkpoint of the
segment, and passes by decisions as they were written.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeGuard

from podium.errors import InputError
from podium.library.decision_json import to_json
from podium.objects.reading.garbage import without_gc
from podium.past.format.reading import History, SegmentStart, Torn
from podium.past.format.records import Decided, Dropped, GroupDecided
from podium.past.replay.replay import HistoryReplay, compare, compare_group

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.engine.framework.decision import Decision
    from podium.engine.framework.group_decision import GroupDecision
    from podium.past.format.reading import Entry
    from podium.past.replay.replay import ReplayDifference, RulesOf


@dataclass(frozen=True, slots=True)
class Place:
    """Where a decision is written: the number of its segment, and of the decision in it."""

    segment: int
    number: int
    entry: Decided


@dataclass(frozen=True, slots=True)
class Derived:
    """A decision that was made again, and how it differs from what was written."""

    entry: Decided
    decision: Decision
    difference: ReplayDifference | None
    #: The cycle of its pod group that it is part of.
    group: GroupDecision | None = None

    def as_json(self) -> dict[str, Any]:
        """The decision as plain data, with the time and the number of the attempt."""
        entry = self.entry
        moment = datetime.fromtimestamp(entry.time, UTC)
        return {
            **to_json(self.decision, attempt=entry.attempt, group=self.group),
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "seconds": round(entry.seconds, 6),
            "fromHistory": True,
        }


@dataclass(frozen=True, slots=True)
class DerivedGroup:
    """A cycle of a pod group that was made again; the decisions about its pods follow it."""

    entry: GroupDecided
    decision: GroupDecision
    #: How it differs from what was written; empty if it does not.
    difference: str


def places(history: History) -> Iterator[Place]:
    """Every decision of a history, in order, without making any of them again."""
    segment, number = -1, 0
    for record in history.records():
        if isinstance(record, SegmentStart):
            segment, number = history.segments.index(record.path), 0
        elif isinstance(record, Decided):
            yield Place(segment, number, record)
            number += 1


def decisions_about(history: History, pod: str, attempt: int | None = None) -> list[Place]:
    """The decisions about a pod (`namespace/name`), or one attempt of it, in order."""
    return [
        place
        for place in places(history)
        if place.entry.pod == pod and attempt in (None, place.entry.attempt)
    ]


def decision_at(history: History, time: float) -> Place | None:
    """The last decision up to a time."""
    found = None
    for place in places(history):
        if place.entry.time > time:
            break
        found = place
    return found


def travel(history: History, place: Place, rules_of: RulesOf) -> tuple[HistoryReplay, Decided]:
    """The state in which a decision was made: everything before it has happened.

    The cycle of a pod group that it is part of is made again, with what led to its decisions.
    """
    replay = HistoryReplay(rules_of)
    number = 0
    with without_gc():
        for entry in history.entries(place.segment):
            if isinstance(entry, Decided):
                if number == place.number:
                    return replay, entry
                number += 1
            ahead = place.number - number
            if _has_member(entry, place.entry.pod) and ahead < len(entry.members):
                replay.derive_group(entry, causes=True)
            else:
                replay.apply(entry)
    raise InputError("the decision is not readable any more", where=str(history.path))


def _has_member(entry: Entry, pod: str) -> TypeGuard[GroupDecided]:
    """Whether an entry is a cycle of the pod's group that can be made again."""
    if not isinstance(entry, GroupDecided) or entry.extenders:
        return False
    return any(each.pod == pod for each in entry.members)


def derive(history: History, place: Place, rules_of: RulesOf) -> Derived:
    """One decision made again, with every verdict and score and what led to them."""
    replay, entry = travel(history, place, rules_of)
    if entry.extenders:
        raise InputError(
            f"the decision about pod {entry.pod} took answers of extenders",
            where=str(history.path),
            hint="these are not in a history, so that it cannot be made again",
        )
    return _derived(replay, entry, causes=True)


def _derived(
    replay: HistoryReplay, entry: Decided, *, recording: bool = False, causes: bool = False
) -> Derived:
    decision = replay.derive(entry, recording=recording, causes=causes)
    group = replay.group if entry.group else None
    return Derived(entry, decision, compare(entry, decision), group)


def derive_about(
    history: History, pod: str, rules_of: RulesOf
) -> tuple[list[Derived], dict[str, float]]:
    """Every decision about a pod made again, in one pass, and when its victims were gone.

    Decisions that took answers of extenders, or follow otherwise now, are left out.
    """
    replay, found = HistoryReplay(rules_of), list[Derived]()
    victims, gone = set[str](), dict[str, float]()
    with without_gc():
        for entry in history.entries():
            if isinstance(entry, Decided) and entry.pod == pod and not entry.extenders:
                derived = _derived(replay, entry, causes=True)
                if derived.difference is None:
                    found.append(derived)
                victims.update(entry.victims)
            elif not isinstance(entry, Torn):
                if isinstance(entry, Dropped) and entry.kind == "Pod" and entry.key in victims:
                    gone.setdefault(entry.key, entry.time)
                if _has_member(entry, pod):
                    replay.derive_group(entry, causes=True)
                else:
                    replay.apply(entry)
    return found, gone


def derive_all(
    history: History, rules_of: RulesOf, *, plain: bool = False
) -> Iterator[Derived | DerivedGroup | Torn | None]:
    """Every decision made again, and every cycle of a pod group before the decisions of its pods.

    None stands for a decision that cannot be made again: it took answers of extenders.

    With *plain*, no answer is kept from one decision to the next.
    """
    replay = HistoryReplay(rules_of, plain=plain)
    for entry in history.entries():
        if isinstance(entry, Torn):
            yield entry
        elif isinstance(entry, Decided) and not entry.extenders:
            yield _derived(replay, entry, recording=entry.matrix is not None)
        elif isinstance(entry, GroupDecided) and not entry.extenders:
            recording = any(each.matrix is not None for each in entry.members)
            found = replay.derive_group(entry, recording=recording)
            yield DerivedGroup(entry, found, compare_group(entry, found))
        else:
            replay.apply(entry)
            if isinstance(entry, Decided):
                yield None
