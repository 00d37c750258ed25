"""`podium history replay`: the decisions of a history, made again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from podium.cli.console import (
    note,
    notes,
    output_width,
    tracked,
    write,
    write_answer,
    write_data,
    write_lines,
    write_section,
)
from podium.cli.flags import namespace_flags, output_flag, profile_flags
from podium.cli.history import follows_history
from podium.cli.parsing import FlagsCommand
from podium.errors import InputError
from podium.library.profile_source import ProfileSource
from podium.objects.times import shown_time

if TYPE_CHECKING:
    from podium.past.format.reading import History
    from podium.past.replay.past_decisions import Derived, Place
    from podium.past.replay.replay import RulesOf
    from podium.render.decision.story import StoryLine


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
    from podium.render.reports.replay import continuation_lines  # noqa: PLC0415

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
    data = {
        "apiVersion": "podium/v1",
        "kind": "Continuation",
        "moments": [each.as_json() for each in found.moments],
        "differences": [
            {"pod": name, "recorded": theirs, "other": ours} for name, theirs, ours in differences
        ],
    }
    write_answer(output, lambda: continuation_lines(found.moments, differences), lambda: data)
    return int(bool(differences))


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
    attempts = [] if output == "html" else _story(history, found.entry.pod, rules_of)
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
        if attempts:
            write_section("Attempts", (text for each in attempts for text in each.lines()))
    else:
        listed = {"story": [each.as_json() for each in attempts]} if attempts else {}
        write_data({**explanation.as_json(), **_about(found), **listed}, output)
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


# All of them ----------------------------------------------------------------------------------


def _replay_all(history: History, flags: ProfileSource, output: str, *, plain: bool) -> int:
    from podium.host.history_rules import recorded_rules  # noqa: PLC0415
    from podium.past.format.reading import Torn  # noqa: PLC0415
    from podium.past.replay.past_decisions import DerivedGroup, derive_all  # noqa: PLC0415
    from podium.past.replay.results import ReplayResult  # noqa: PLC0415
    from podium.render.reports.replay import replay_lines  # noqa: PLC0415

    total = sum(1 for _ in history.decisions())
    result = ReplayResult()
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
    notes(result.torn if output == "table" else ())
    write_answer(output, lambda: replay_lines(result, total), result.as_json)
    if result.damaged:
        return InputError.exit_code
    differs = bool(result.differences or result.other_cycles)
    return int(differs) if result.complete else 130
