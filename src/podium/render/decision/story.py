"""The attempts at one pod in order, and what it waits for now.

What failed, who was evicted and why, and the end. Equal attempts that follow each other are one
line with a count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from podium.render.decision.analysis import NOMINATED, PLACED, outcome
from podium.render.decision.causes import victim_cause_text
from podium.render.decision.sentences import criterion_text
from podium.render.plain import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from podium.engine.framework.decision import Decision


@dataclass(frozen=True, slots=True)
class StoryAttempt:
    """One attempt: its number, when it began, in seconds since 1970, and what was decided."""

    number: int
    at: float
    decision: Decision
    #: Why the binding failed, if it did.
    failure: str = ""


@dataclass(frozen=True, slots=True)
class StoryVictim:
    """A pod that made room: what it was, why it had to be this one, and when it was gone."""

    pod: str
    priority: int
    workload: str = ""
    why: str = ""
    ended_at: float | None = None

    def text(self) -> str:
        """The victim in one sentence."""
        what = f"{self.workload}, " if self.workload else ""
        gone = "" if self.ended_at is None else f"; gone at {clock_time(self.ended_at)}"
        why = f": {self.why}" if self.why else ""
        return f"{self.pod} ({what}priority {self.priority}) is evicted{why}{gone}"


@dataclass(slots=True)
class StoryLine:
    """One attempt, or several equal ones in a row."""

    first: int
    last: int
    began: float
    ended: float
    text: str
    outcome: str
    count: int = 1
    victims: tuple[StoryVictim, ...] = ()
    #: What else belongs to it, such as how long the pod waited.
    more: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """The line as plain data."""
        return {
            "attempts": [self.first, self.last],
            "count": self.count,
            "from": _written(self.began),
            "to": _written(self.ended),
            "outcome": self.outcome,
            "text": self.text,
            "victims": [
                {
                    "pod": each.pod,
                    "priority": each.priority,
                    "workload": each.workload,
                    "why": each.why,
                    "endedAt": None if each.ended_at is None else _written(each.ended_at),
                }
                for each in self.victims
            ],
            "more": list(self.more),
        }

    def lines(self) -> Iterator[str]:
        """The line with its times, then what belongs to it."""
        when = clock_time(self.began)
        if self.count > 1:
            attempts = f"attempts {self.first} to {self.last} ({self.count} times)"
            when = f"{when} to {clock_time(self.ended)}"
        else:
            attempts = f"attempt {self.first}"
        yield f"{when}  {attempts}: {self.text}"
        yield from (f"  {each.text()}" for each in self.victims)
        yield from (f"  {each}" for each in self.more)


def clock_time(seconds: float) -> str:
    """The time of day to the tenth of a second, in UTC."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%H:%M:%S}.{moment.microsecond // 100_000}"


def _written(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def is_story(attempts: Iterable[StoryAttempt]) -> bool:
    """Whether there is more to tell than the last decision alone."""
    found = list(attempts)
    return len(found) > 1 or any(outcome(each.decision) == NOMINATED for each in found)


def story(
    attempts: Iterable[StoryAttempt], ended: Mapping[str, float] | None = None
) -> list[StoryLine]:
    """The attempts in the order of their times; *ended* says when evicted pods were gone."""
    found: list[StoryLine] = []
    nominated, first = "", None
    for each in sorted(attempts, key=lambda one: (one.at, one.number)):
        decision = each.decision
        first = each.at if first is None else first
        kind = "error" if each.failure else outcome(decision)
        text = _text(each, nominated)
        last = found[-1] if found else None
        if last is not None and (last.outcome, last.text) == (kind, text) and kind != NOMINATED:
            last.last, last.ended, last.count = each.number, each.at, last.count + 1
            continue
        line = StoryLine(each.number, each.number, each.at, each.at, text, kind)
        if kind == NOMINATED:
            assert decision.preemption is not None
            assert decision.preemption.node is not None
            nominated = decision.preemption.node
            line.victims = _victims(decision, ended or {})
            line.more.append(f"{nominated} is promised to it while they end (nominatedNodeName)")
        elif kind == PLACED and each.at > first:
            line.more.append(f"{each.at - first:.1f} s after the first attempt")
        found.append(line)
    return found


def _text(attempt: StoryAttempt, nominated: str) -> str:
    """What came of an attempt; *nominated* is the node that is promised to the pod."""
    decision = attempt.decision
    if attempt.failure:
        return f"binding to {decision.node} failed: {attempt.failure}"
    if decision.error:
        return f"failed: {decision.error}"
    if decision.node is not None:
        promised = ", which was promised to it" if decision.node == nominated else ""
        return f"placed on {decision.node}{promised}"
    preemption = decision.preemption
    if preemption is not None and preemption.node is not None:
        number = len(preemption.candidates[preemption.node].pods)
        evicted = f"{counted(number, 'pod')} {'makes' if number == 1 else 'make'} room"
        return (
            f"fits nowhere; {evicted} on {preemption.node}: {criterion_text(preemption)}; "
            f"{decision.message}"
        )
    if preemption is not None and not preemption.eligible and nominated:
        return f"waits for the pods that end on {nominated}; {decision.message}"
    return decision.message


def _victims(decision: Decision, ended: Mapping[str, float]) -> tuple[StoryVictim, ...]:
    preemption, causes = decision.preemption, decision.preemption_causes
    assert preemption is not None
    assert preemption.node is not None
    explained = {
        victim.pod: victim
        for each in (causes.candidates if causes is not None else ())
        if each.node == preemption.node
        for victim in each.victims
    }
    victims = preemption.candidates[preemption.node]
    found = []
    for pod, priority in zip(victims.pods, victims.priorities, strict=True):
        known = explained.get(pod)
        found.append(
            StoryVictim(
                pod,
                priority,
                known.workload if known is not None else "",
                victim_cause_text(known) if known is not None else "",
                ended.get(pod),
            )
        )
    return tuple(found)


_QUEUES: Final = {
    "active": "is in line and is tried as soon as it is its turn",
    "backoff": "waits for the end of its backoff",
    "unschedulable": "waits for a change of the cluster",
    "gated": "is held back and not tried at all",
}


def waiting_lines(waiting: Mapping[str, Any]) -> Iterator[str]:
    """One sentence per fact of what `/decisions` says about a waiting pod."""
    queue = str(waiting.get("queue", ""))
    since = f" since {waiting['since']}" if waiting.get("since") else ""
    yield f"It {_QUEUES.get(queue, 'waits')} (queue {queue}){since}."
    if waiting.get("gatedBy"):
        yield f"{waiting['gatedBy']} holds it back."
    if waiting.get("backoffUntil"):
        yield f"It is not tried before {waiting['backoffUntil']}, whatever happens."
    for each in waiting.get("waitsFor") or ():
        plugin = "Any rule" if each["plugin"] == "*" else each["plugin"]
        yield f"{plugin} waits for: {', '.join(each['events'])}."
    if waiting.get("retriedAt"):
        yield f"Without an event it is tried again at {waiting['retriedAt']} or soon after."
