"""`podium history replay`: the decisions of a history, made again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

import click

from podium.cli.console import (
    note,
    output_width,
    tracked,
    write,
    write_data,
    write_lines,
    write_section,
)
from podium.cli.flags import namespace_flags, output_flag, profile_flags
from podium.cli.history import follows_history
from podium.cli.parsing import FlagsCommand
from podium.errors import InputError
from podium.library.profile_source import ProfileSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.past.format.reading import History
    from podium.past.format.records import Decided, GroupDecided
    from podium.past.replay.other_rules import ComparedMoment
    from podium.past.replay.past_decisions import Derived, DerivedGroup, Place
    from podium.past.replay.replay import ReplayDifference, RulesOf
    from podium.render.decision.story import StoryLine

#: The most differences that are printed.
_MOST: Final = 20
_COLUMNS: Final = (
    "TIME",
    "PLACED",
    "BY OTHER",
    "PENDING",
    "SAME",
    "DIFFERENT",
    "EVICTED",
    "BY OTHER",
)


@click.command(cls=FlagsCommand)
@click.argument("path", metavar="HISTORY", type=click.Path())
@click.option("--pod", metavar="POD", help="Explain the decision about this pod.")
@namespace_flags("The namespace of --pod")
@click.option(
    "--attempt",
    type=click.IntRange(1),
    metavar="N",
    help="Which attempt of the pod.  [default: the last]",
)
@click.option("--at", metavar="TIME", help="Explain the last decision up to this time.")
@click.option(
    "--plain", is_flag=True, help="Ask every rule about every node; keep nothing between decisions."
)
@output_flag("table", "json", "yaml", "html")
@profile_flags
@follows_history
def replay(
    *,
    path: str,
    pod: str | None,
    namespace: str,
    attempt: int | None,
    at: str | None,
    plain: bool,
    output: str,
    flags: ProfileSource,
) -> int:
    """Make the decisions of a HISTORY again, and compare each with what was recorded.

    HISTORY is a folder that `podium run --record` or `podium lab --record` wrote. Every decision is
    derived from what the scheduler knew at that moment, and must have the recorded digest. With
    --plain no answer is kept from one decision to the next, so that wrong kept answers are found.

    With --pod or --at one decision is explained as it was made, with the verdicts and scores of all
    nodes. TIME is 2026-01-31T12:00:00Z, or seconds since 1970.

    With --config, --policy, --provider or --profile the history goes on with these rules instead,
    from that decision or from the beginning. The differences over time are shown.

    Exit code: 0 all decisions are equal (with --pod and --at: the pod got a node), 1 some differ
    (the pod got none), 2 the history cannot be read.
    """
    from podium.past.format.reading import History  # noqa: PLC0415  not needed for the help

    if attempt is not None and pod is None:
        raise click.UsageError("--attempt says which attempt of --pod; give both")
    if pod is not None and at is not None:
        raise click.UsageError("--pod and --at exclude each other; give one of them")
    pod = None if pod is None else _key(pod, namespace)
    if plain and (pod is not None or at is not None or flags.named()):
        raise click.UsageError("--plain makes all decisions again; give it alone")
    history = History(path)
    if flags.named():
        start = 0.0 if at is None else _time(at)
        if pod is not None:
            start = _place_of_pod(history, pod, attempt).entry.time
        return _go_on(history, start, flags, output)
    if pod is None and at is None:
        if output == "html":
            raise click.UsageError("-o html shows one decision; give --pod or --at")
        return _replay_all(history, flags, output, plain=plain)
    place = _place_of_pod(history, pod, attempt) if pod is not None else _place_at(history, at)
    return _explain(history, place, flags, output)


# Other rules ----------------------------------------------------------------------------------


def _go_on(history: History, start: float, flags: ProfileSource, output: str) -> int:
    from podium.host.history_rules import recorded_rules, rules_of  # noqa: PLC0415
    from podium.past.format.records import Decided  # noqa: PLC0415
    from podium.past.replay.other_rules import Continuation  # noqa: PLC0415

    if output == "html":
        raise click.UsageError("-o html shows one decision, as it was made")
    options = replace(flags, policy=None, provider=None, config=None, profile=None)
    chosen = flags.choose()
    found = Continuation(recorded_rules(options), rules_of(chosen), start)
    total = 0
    schedulers: set[str] = set()
    for record in history.records():
        total += 1
        if isinstance(record, Decided):
            schedulers.add(record.scheduler)
    for name in sorted(schedulers - {profile.scheduler_name for profile in chosen.profiles}):
        note(f"no profile of these rules is for the scheduler {name}: its pods get no node")
    found.run(tracked(history.entries(), total, "following"))
    differences = found.differences()
    if output == "table":
        _print_moments(found.moments)
        write(f"\n{len(differences)} pods have another node, or none\n")
        for name, theirs, ours in differences[:_MOST]:
            write(f"  {name}: {ours or 'no node'} instead of {theirs or 'no node'}\n")
        if len(differences) > _MOST:
            write(f"  and {len(differences) - _MOST} more\n")
    else:
        data = {
            "apiVersion": "podium/v1",
            "kind": "Continuation",
            "moments": [each.as_json() for each in found.moments],
            "differences": [
                {"pod": name, "recorded": theirs, "other": ours}
                for name, theirs, ours in differences
            ],
        }
        write_data(data, output)
    return int(bool(differences))


def _print_moments(moments: Sequence[ComparedMoment]) -> None:
    from podium.render.columns import TextTable  # noqa: PLC0415

    table = TextTable(*_COLUMNS, right=_COLUMNS[1:])
    for each in moments:
        placed = (each.recorded[0], each.other[0], each.pending, each.same, each.different)
        numbers = (*placed, each.recorded[1], each.other[1])
        table.add(shown_time(each.time), *numbers)
    write_lines(table.lines())


# One decision ---------------------------------------------------------------------------------


def _key(pod: str, namespace: str) -> str:
    """Namespace and name of the pod that --pod and -n name."""
    from podium.library.lookup import pod_key  # noqa: PLC0415  brings the kinds

    key = pod_key(pod, namespace)
    if key is None:
        hint = "NAME or NAMESPACE/NAME would be one"
        raise InputError(f"--pod: {pod!r} is no pod, and a history is searched by pods", hint=hint)
    return "/".join(key)


def _place_of_pod(history: History, pod: str, attempt: int | None) -> Place:
    from podium.past.replay.past_decisions import decisions_about  # noqa: PLC0415

    found = decisions_about(history, pod, attempt)
    if not found:
        which = "" if attempt is None else f", attempt {attempt}"
        raise InputError(f"has no decision about pod {pod}{which}", where=str(history.path))
    return found[-1]


def _place_at(history: History, at: str | None) -> Place:
    from podium.past.replay.past_decisions import decision_at  # noqa: PLC0415

    assert at is not None
    found = decision_at(history, _time(at))
    if found is None:
        raise InputError(f"has no decision before {at}", where=str(history.path))
    return found


def _time(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        pass
    else:
        if isfinite(seconds):
            return seconds
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        hint = "2026-01-31T12:00:00Z would be one, or seconds since 1970"
        raise InputError(f"--at: {text!r} is no time", hint=hint) from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _explain(history: History, place: Place, flags: ProfileSource, output: str) -> int:
    from podium.host.history_rules import recorded_rules  # noqa: PLC0415
    from podium.library.explanation import Explanation  # noqa: PLC0415
    from podium.past.replay.past_decisions import derive  # noqa: PLC0415

    rules_of = recorded_rules(flags)
    found = derive(history, place, rules_of)
    rules = rules_of(history.header)
    profile = rules.profiles.get(found.entry.scheduler) or next(iter(rules.profiles.values()))
    explanation = Explanation(
        found.decision,
        None,
        ties=profile.ties,
        max_score=profile.max_score,
        group=found.group,
        trace=found.decision.trace if output == "html" else None,
    )
    told = [] if output == "html" else _story(history, found.entry.pod, rules_of)
    if found.difference is not None and not flags.named():
        note(f"the recorded decision was another one: {found.difference.what}")
    if output == "html":
        from podium.render.reports.explanation_page import explanation_page  # noqa: PLC0415

        write(explanation_page(explanation))
    elif output == "table":
        from podium.render.reports.explanation_tables import explanation_tables  # noqa: PLC0415

        entry = found.entry
        write(f"{shown_time(entry.time)}  attempt {entry.attempt}\n\n")
        write_lines(explanation_tables(explanation, output_width()))
        if told:
            write_section("Attempts", (text for each in told for text in each.lines()))
    else:
        attempts = {"story": [each.as_json() for each in told]} if told else {}
        write_data({**explanation.as_json(), **_about(found), **attempts}, output)
    return int(found.decision.node is None)


def _story(history: History, pod: str, rules_of: RulesOf) -> list[StoryLine]:
    """All attempts at the pod in the history; empty if there is no more than one of them."""
    from podium.past.replay.past_decisions import decisions_about, derive_about  # noqa: PLC0415
    from podium.render.decision.story import StoryAttempt, is_story, story  # noqa: PLC0415

    if len(decisions_about(history, pod)) < 2:
        return []
    made, gone = derive_about(history, pod, rules_of)
    attempts = [StoryAttempt(each.entry.attempt, each.entry.time, each.decision) for each in made]
    return story(attempts, gone) if is_story(attempts) else []


def _about(found: Derived) -> dict[str, Any]:
    entry = found.entry
    return {
        "attempt": entry.attempt,
        "time": shown_time(entry.time),
        "asRecorded": found.difference is None,
    }


def shown_time(seconds: float) -> str:
    """A time to the millisecond."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"


# All of them ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Result:
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
        from podium.render.decision.pod_group import cycle_lines  # noqa: PLC0415

        self.cycles += 1
        if found.difference:
            self.other_cycles.append(found)
        ended, last = self.groups.setdefault(found.entry.group, []), found.entry.attempt
        if ended and cycle_lines(ended[-1][0].decision) == cycle_lines(found.decision):
            found, _ = ended.pop()
        ended.append((found, last))

    def as_json(self) -> dict[str, Any]:
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
    from podium.render.decision import pod_group  # noqa: PLC0415

    return {
        **pod_group.as_json(found.decision),
        "attempt": found.entry.attempt,
        "time": shown_time(found.entry.time),
        "asRecorded": not found.difference,
        **({"what": found.difference} if found.difference else {}),
    }


def _replay_all(history: History, flags: ProfileSource, output: str, *, plain: bool) -> int:
    from podium.host.history_rules import recorded_rules  # noqa: PLC0415
    from podium.past.format.reading import Torn  # noqa: PLC0415
    from podium.past.replay.past_decisions import DerivedGroup, derive_all  # noqa: PLC0415

    total = sum(1 for _ in history.decisions())
    result = _Result()
    if not total:
        note(f"{history.path} has no decisions; `podium history judge` compares placements")
    try:
        made = derive_all(history, recorded_rules(flags), plain=plain)
        for found in tracked(made, total, "deciding again"):
            if isinstance(found, Torn):
                result.torn.append(str(found))
                result.damaged |= found.damaged
                continue
            if found is None:
                result.asked_extenders += 1
                continue
            if isinstance(found, DerivedGroup):
                result.note_group(found)
                continue
            result.corrected += bool(found.entry.differences)
            if found.difference is None:
                result.equal += 1
                result.placed += found.entry.node is not None
                result.matrices += found.entry.matrix is not None
            else:
                result.differences.append(found.difference)
    except KeyboardInterrupt:
        result.complete = False
    if output == "table":
        _print(result, total)
    else:
        write_data(result.as_json(), output)
    if result.damaged:
        return InputError.exit_code
    differs = bool(result.differences or result.other_cycles)
    return int(differs) if result.complete else 130


def _print(result: _Result, total: int) -> None:
    from podium.render.plain import counted  # noqa: PLC0415

    done = result.equal + len(result.differences)
    write(f"{counted(done, 'decision')} made again, {result.equal} equal\n")
    if result.cycles:
        equal = result.cycles - len(result.other_cycles)
        write(f"{counted(result.cycles, 'cycle')} of pod groups made again, {equal} equal\n")
    if result.matrices:
        write(f"  {result.matrices:>8}  with equal verdicts and scores of every node\n")
    if result.asked_extenders:
        write(f"  {result.asked_extenders:>8}  took answers of extenders (not compared)\n")
    if result.corrected:
        write(f"  {result.corrected:>8}  corrected when they were made: kept answers were wrong\n")
    if not result.complete:
        write(f"  {total - done:>8}  not compared: interrupted\n")
    for sentence in result.torn:
        note(sentence)
    _print_groups(result)
    _print_differences(result)


def _print_groups(result: _Result) -> None:
    """Each pod group as one thing: how its cycles ended."""
    from podium.render.decision.pod_group import cycle_lines  # noqa: PLC0415
    from podium.render.plain import printable  # noqa: PLC0415

    for ended in list(result.groups.values())[:_MOST]:
        for found, last in ended:
            first = found.entry.attempt
            which = f"attempt {first}" if first == last else f"attempts {first} to {last}"
            write(f"\n{shown_time(found.entry.time)}  {which}\n")
            head, *more = map(printable, cycle_lines(found.decision))
            write("\n  ".join((head, *more)) + "\n")
    if len(result.groups) > _MOST:
        write(f"\n{len(result.groups) - _MOST} more pod groups are in -o json\n")


def _print_differences(result: _Result) -> None:
    from podium.render.plain import printable  # noqa: PLC0415

    groups = [f"{_line(each.entry)}: {printable(each.difference)}" for each in result.other_cycles]
    pods = [f"{_line(each.entry)}: {printable(each.what)}" for each in result.differences]
    found = [*groups, *pods]
    if found:
        write("\nDifferences:\n")
    for text in found[:_MOST]:
        write(f"  {text}\n")
    if len(found) > _MOST:
        write(f"  and {len(found) - _MOST} more\n")


def _line(entry: Decided | GroupDecided) -> str:
    name = getattr(entry, "pod", None) or f"pod group {entry.group}"
    return f"{shown_time(entry.time)}  {name}, attempt {entry.attempt}"
