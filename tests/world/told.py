"""Failures that are told: every one, and none of them twice.

What a replica writes to its log is kept line by line. A line that repeats an earlier one must
follow a success in between or, for a pod, another attempt. A request that failed for good must have
a line.
"""

from __future__ import annotations

import io
import logging
import math
import re
from bisect import bisect_left, bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podium.scheduler.telemetry.logs import INFO, WARNINGS_ONLY, Log
from world.invariants import is_binding

if TYPE_CHECKING:
    from world.network import Sent
    from world.run import World

#: The replica that runs right now: tasks inherit it.
REPLICA: ContextVar[str] = ContextVar("replica", default="")
#: A failure may be told a little later than the request ended, when a task is woken in between.
MARGIN_SECONDS = 1.0
#: Within this time a request has ended that was sent again: with renewed credentials, or after the
#: pause that the API server has asked for.
SENT_AGAIN_SECONDS = 15.0
#: The faults after which the client sends a request again by itself.
SENT_AGAIN = ("401", "429-after", "503-after")
#: What a replica tells that loses the lease, and ends.
LEASE_LOST = "leader election lost"
#: What a replica that ends tells of all writes together for which it has no answer.
UNANSWERED_AT_END = re.compile(r"^(\d+) (bindings|other writes) were not answered in time$")
#: Events that failed are told again after so many seconds.
EVENTS_AGAIN_SECONDS = 300.0
#: So are pauses that are longer than any that is kept, and how such a line begins.
PAUSES_AGAIN_SECONDS, ASKED_PAUSE = 60.0, " and Retry-After "
#: How lines about a full disk begin: once each time that it is full, and once when it is not.
DISK = ("nothing is recorded in ", "recording in ")


@dataclass(frozen=True, slots=True)
class Line:
    """A warning or an error that a replica has told."""

    time: float
    replica: str
    text: str


class ReplicaLog(Log):
    """The log of a replica, kept as lines."""

    def __init__(self, replica: str, lines: list[Line], clock: Callable[[], float]) -> None:
        super().__init__(v=WARNINGS_ONLY, stream=io.StringIO())
        self._replica, self._lines, self._time = replica, lines, clock

    def _write(self, level: str, sentence: str, fields: dict[str, Any], v: int = 0) -> None:
        if level != INFO:
            parts = [sentence, *(f"{name}={value}" for name, value in fields.items())]
            self._lines.append(Line(self._time(), self._replica, " ".join(parts)))


class LineHandler(logging.Handler):
    """Keeps the warnings of Python's logging as lines of the replica that runs."""

    def __init__(self, lines: list[Line], clock: Callable[[], float]) -> None:
        super().__init__(logging.WARNING)
        self._lines, self._time = lines, clock

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno == logging.WARNING:
            self._lines.append(Line(self._time(), REPLICA.get(), record.getMessage()))


# --- the check ----------------------------------------------------------------------------------

_PATH = re.compile(r"^(/\S+): ")
_POD = re.compile(r"^(?:claims of )?pod (\S+): ")
_GROUP = re.compile(r"^pod (group \S+): ")
_NOT_BOUND = re.compile(r"^pod was not bound pod=(\S+) ")


def told_findings(world: World) -> Iterator[str]:
    """Failures that were told more than once, and those that were not told."""
    successes = _successes(world)
    yield from _untold(world, successes)
    yield from _repeated(world, successes)
    yield from _sent_after_the_end(world)


def _successes(world: World) -> dict[tuple[str, str], list[float]]:
    """When requests of a replica succeeded, by what a line may be about.

    For pods it is when they were attempted: every attempt may fail, and tell so.
    """
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    reads, _ = _written_leases(world)
    for sent in world.network.sent:
        is_read = sent.fault != "garbage" and not sent.is_part
        if 0 < sent.answered < 300 and is_read and id(sent) not in reads:
            found[sent.replica, _subject(sent)].append(sent.ended)
        found[sent.replica, _subject(sent)] += sent.heard
    for time, replica in world.network.extended:
        found[replica, "extender"].append(time)
    for pod in [subject for subject in found if subject[1].startswith("pod ")]:
        del found[pod]
    for time, replica, key in world.tries:
        found[replica, f"pod {key}"].append(time)
    return {subject: sorted(times) for subject, times in found.items()}


def _written_leases(world: World) -> tuple[set[int], set[int]]:
    """The reads of a lease that a write follows at once, and these writes.

    Such a read is no success by itself, and such a write is the last request of a try. After a read
    that failed, the write is the first request of the next try.
    """
    reads: set[int] = set()
    writes: set[int] = set()
    last: dict[str, Sent] = {}
    for sent in world.network.sent:
        if sent.verb != "lease":
            continue
        before = last.get(sent.replica)
        follows = before is not None and before.answered in {200, 404} and before.fault != "garbage"
        if before is not None and follows and before.method == "GET" != sent.method:
            reads.add(id(before))
            writes.add(id(sent))
        last[sent.replica] = sent
    return reads, writes


def _repeated_bindings(world: World) -> set[int]:
    """The bindings that were sent again for the same decision: the last one counts."""
    found: set[int] = set()
    last: dict[tuple[str, str], Sent] = {}
    decided: dict[tuple[str, str], list[float]] = defaultdict(list)
    for time, replica, decision in world.decisions:
        decided[replica, decision.uid].append(time)
    for sent in world.network.sent:
        if sent.verb != "bind":
            continue
        binding = (sent.replica, _uid_of(sent))
        before = last.get(binding)
        if before is not None and not _between(decided[binding], before.ended, sent.time):
            found.add(id(before))
        last[binding] = sent
    return found


def _subject(sent: Sent) -> str:
    """What a request is about, in the words that lines are sorted by."""
    if sent.verb in {"list", "watch"}:
        return f"{sent.verb} {sent.path}"
    if sent.verb in {"lease", "event", "extender"}:
        return sent.verb
    parts = sent.path.split("/")
    if "pods" in parts and "namespaces" in parts:
        return f"pod {parts[parts.index('namespaces') + 1]}/{parts[parts.index('pods') + 1]}"
    return sent.path


def _about(text: str) -> tuple[str, ...]:
    """What a line is about: a success of one of these explains that it is told again."""
    if path := _PATH.match(text):
        return (f"list {path[1]}", f"watch {path[1]}")
    if pod := (_GROUP.match(text) or _POD.match(text) or _NOT_BOUND.match(text)):
        return (f"pod {pod[1]}",)
    if text.startswith("leader election: lease "):
        return ("lease",)
    if text.startswith(("an event could not be written", "events are dropped")):
        return ("event",)
    if text.startswith("extender "):
        return ("extender",)
    return ()


def _repeated(world: World, successes: dict[tuple[str, str], list[float]]) -> Iterator[str]:
    last: dict[tuple[str, str], float] = {}
    count: Counter[tuple[str, str]] = Counter()
    for sent in world.network.sent:
        if sent.opened:
            insort(successes.setdefault((sent.replica, _subject(sent)), []), sent.opened)
    for line in world.lines:
        key = (line.replica, line.text)
        before = last.get(key)
        last[key] = line.time
        count[key] += 1
        if before is None:
            continue
        about = _about(line.text)
        if _may_be_repeated(world, line, line.time - before, count[key]):
            continue
        times = [successes.get((line.replica, each), []) for each in about]
        if about[:1] and about[0].startswith("pod "):
            # Several attempts may be over before the first of their writes fails.
            explained = bisect_right(times[0], line.time) >= count[key]
        else:
            explained = any(_between(each, before, line.time) for each in times)
        if not explained:
            yield (
                f"{line.replica} tells at {before:.3f} s and again at {line.time:.3f} s: "
                f"{line.text}"
            )
    lost = Counter(line.replica for line in world.lines if line.text == LEASE_LOST)
    for replica, total in lost.items():
        if total > 1:
            yield f"{replica} tells {total} times that it lost the lease"


def _may_be_repeated(world: World, line: Line, seconds: float, count: int) -> bool:
    """Whether a line may be told again so many seconds later, whatever has succeeded meanwhile."""
    if "event" in _about(line.text):
        return seconds > EVENTS_AGAIN_SECONDS
    if ASKED_PAUSE in line.text:
        return seconds >= PAUSES_AGAIN_SECONDS
    return line.text.startswith(DISK) and count <= world.network.injected["fill-disk"]


def _between(times: list[float], start: float, end: float) -> bool:
    return bisect_left(times, start) < bisect_right(times, end)


def _untold(world: World, successes: dict[tuple[str, str], list[float]]) -> Iterator[str]:
    lines: dict[str, list[Line]] = defaultdict(list)
    for line in world.lines:
        lines[line.replica].append(line)
    bindings = _known_bindings(world)
    # Each line at the end stands for as many writes as it says.
    together = Counter(
        {
            line: int(found[1])
            for line in world.lines
            if (found := UNANSWERED_AT_END.match(line.text))
        }
    )
    _, last_writes = _written_leases(world)
    repeated = _repeated_bindings(world)
    for sent in world.network.sent:
        said = "" if id(sent) in repeated else _must_be_said(sent, is_last=id(sent) in last_writes)
        known_at = bindings[id(sent)] if sent.verb == "bind" else sent.ended
        if not said or sent.replica == "fresh" or known_at is None:
            continue
        pause = SENT_AGAIN_SECONDS if sent.fault in SENT_AGAIN else 0.0
        if _has_ended(world, sent, known_at + pause):
            continue
        since = _told_since(sent, successes)
        end = _latest(world, known_at + pause)
        if sent.verb == "bind" and _between(world.network.downs, known_at, end):
            end = math.inf  # it is sent again, over connections that are refused
        timely = [line for line in lines[sent.replica] if since <= line.time <= end]
        if any(re.search(said, line.text) for line in timely):
            continue
        if pause and _is_repeated(world, sent, end):
            continue
        is_bind, is_other = sent.verb == "bind", sent.verb in {"status", "delete"}
        ends = "bindings were" if is_bind else "other writes were"
        last = next((line for line in timely if together[line] > 0 and ends in line.text), None)
        if last is not None and (is_bind or (is_other and not sent.answered)):
            together[last] -= 1
        else:
            yield (
                f"{sent.replica} tells nothing of {sent.method} {sent.path}, which failed at "
                f"{sent.ended:.3f} s with {sent.answered or 'no answer'}"
            )
            return


def _latest(world: World, known_at: float) -> float:
    """Until when a failure is told that was known then: after a decision that takes long."""
    end = known_at + MARGIN_SECONDS
    for start, seconds in world.stalls:
        end += seconds if known_at <= start + seconds and start <= end else 0.0
    return end


def _told_since(sent: Sent, successes: dict[tuple[str, str], list[float]]) -> float:
    """From when on a line tells of this failure: what goes on failing is told once."""
    if sent.verb in {"bind", "status", "delete"}:
        return sent.time
    if sent.verb == "event":
        return sent.time - EVENTS_AGAIN_SECONDS
    before = successes.get((sent.replica, _subject(sent)), [])
    place = bisect_left(before, sent.ended)
    return before[place - 1] if place else 0.0


def _known_bindings(world: World) -> dict[int, float | None]:
    """When a replica knew what each binding has come to, by the identity of the request.

    None if it is no failure: it had been carried out without an answer, by the API server or by an
    extender, or the leader before had chosen the same node, which the replica finds out.
    """
    known: dict[int, float | None] = {}
    chosen = {
        (entry.after["metadata"]["uid"], entry.after["spec"]["nodeName"]): entry.time
        for entry in world.history
        if is_binding(entry) and entry.after is not None
    }
    bound: set[tuple[str, str]] = set()
    by_extender = {(sent.replica, sent.body): sent.time for sent in world.network.extenders_bound}
    for sent in world.network.sent:
        if sent.verb != "bind":
            continue
        binding = (sent.replica, _uid_of(sent))
        if sent.done:
            bound.add(binding)
            known[id(sent)] = None
        elif binding in bound or by_extender.get(binding, math.inf) <= sent.time:
            known[id(sent)] = None
        else:
            settled = _settled_at(world, sent)
            there = chosen.get((binding[1], sent.body["target"]["name"]), math.inf)
            known[id(sent)] = settled if there > settled else None
    return known


def _uid_of(binding: Sent) -> str:
    """The uid of the pod that a request binds."""
    uid: str = binding.body["metadata"].get("uid", "")
    return uid


def _settled_at(world: World, refused: Sent) -> float:
    """When a replica knew what a refused binding means.

    The refusal says nothing of a binding before it that had no answer, so the replica asks where
    the pod is, until it is told. One that asks nothing before it sends another binding knew no more
    than the refusal; one that cannot ask does not know what has come of an unclear answer.
    """
    path, uid = refused.path.removesuffix("/binding"), _uid_of(refused)
    asked = False
    for each in world.network.sent:
        if each.replica != refused.replica or each.time < refused.ended or each is refused:
            continue
        if each.verb == "bind" and each.path == refused.path and _uid_of(each) == uid:
            break
        if each.verb == "get" and each.path == path:
            asked = True
            if each.answered in {200, 404} and each.fault != "garbage":
                return each.ended
    return math.inf if asked or refused.answered not in {403, 404, 410} else refused.ended


def _must_be_said(sent: Sent, *, is_last: bool) -> str:
    """The pattern of the line that a failed request must have; "" where it is no failure by itself.

    A request over a connection that was closed meanwhile is sent again by the client, an event by
    the recorder, and a lease is read after it could not be written, then written again (*is_last*).
    What is not found was deleted, most likely; what has changed is read again.
    """
    if not sent.ended or 0 < sent.answered < 300:
        return ""
    if sent.is_sent_again or sent.opened:
        return ""
    code, said = sent.answered, ""
    match sent.verb:
        case "status" if code != 404 and "extendedResourceClaimStatus" in _status(sent):
            # A step on the way to the binding, which fails with it.
            said = f"^pod was not bound pod={_key(sent)} "
        case "list" | "watch" if code != 410:
            # A shadow asks for the pods without a node besides.
            besides = "|pods without a node" if sent.path == "/api/v1/pods" else ""
            said = f"^({re.escape(sent.path)}{besides}): "
        case "lease" if code != 409 and (is_last or (sent.method == "GET" and code != 404)):
            said = "^leader election: "
        case "status" | "delete" if code != 404 and _subject(sent).startswith("pod "):
            # Writes about a victim are told with the pod that it makes room for, and with its own.
            said = rf"^pod (group )?(\S+: (\w+ )+of )?{_key(sent)}: "
        case "bind":
            said = f"^pod was not bound pod={_key(sent)} "
        case "event" if code in {403, 409, 410}:
            said = "^an event "
    return said


def _status(sent: Sent) -> Any:
    """What a request writes of a status."""
    return (sent.body or {}).get("status") or {}


def _is_repeated(world: World, refused: Sent, end: float) -> bool:
    """Whether a replica has sent the same request again by then."""
    about = (refused.replica, refused.method, refused.path, refused.body)
    return any(
        each is not refused
        and refused.time < each.time <= end
        and (each.replica, each.method, each.path, each.body) == about
        for each in world.network.sent
    )


def _sent_after_the_end(world: World) -> Iterator[str]:
    """A replica that has lost the lease asks for nothing any more, and gives the lease back."""
    lost = {line.replica: line.time for line in world.lines if line.text == LEASE_LOST}
    for sent in world.network.sent:
        if sent.verb != "lease" and sent.time > lost.get(sent.replica, math.inf) + MARGIN_SECONDS:
            yield f"{sent.replica} sends {sent.method} {sent.path} after it has lost the lease"
            return


def _key(sent: Sent) -> str:
    """The pod that a request is about, for a pattern."""
    return re.escape(_subject(sent).removeprefix("pod "))


def _has_ended(world: World, sent: Sent, time: float) -> bool:
    """Whether the replica was ended by about then: it has nothing to tell any more.

    One that loses the lease ends its requests then; giving the lease back may take longer. One that
    is told to stop waits for its writes, and tells of those that it gives up.
    """
    replica = sent.replica
    told = (line for line in world.lines if (line.replica, line.text) == (replica, LEASE_LOST))
    lost = min((line.time for line in told), default=math.inf)
    end = world.ends.get(replica, math.inf)
    if sent.verb in {"status", "delete"} and replica in world.last_writes:
        end = world.last_writes[replica] + 2 * MARGIN_SECONDS
    return min(end, lost) <= time + MARGIN_SECONDS
