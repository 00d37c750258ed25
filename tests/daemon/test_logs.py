"""Lines that a scheduler writes about what it does."""

from __future__ import annotations

import io
import json

import pytest

from builders import node, pod, profile, simulation
from daemon.attempts import NOON, Clock, attempted, tried
from podium.daemon.logs import JSON, TEXT, DecisionLines, Log
from podium.daemon.slow_trace import SlowTrace, Steps
from podium.engine.cycle.attempt import Attempt
from podium.engine.cycle.cycle import decide
from podium.engine.cycle.ties import First
from podium.engine.framework.decision import Decision


def a_log(fmt: str = TEXT, v: int = 2) -> tuple[Log, io.StringIO]:
    stream = io.StringIO()
    return Log(fmt, v, stream, clock=lambda: NOON), stream


def test_a_decision_is_one_line() -> None:
    log, stream = a_log()
    world = simulation(node("n1", cpu="2"), node("n2", cpu="4"))
    DecisionLines(log).attempted(tried(world, pod("web", requests={"cpu": "3"})))
    DecisionLines(log).attempted(tried(world, pod("big", requests={"cpu": "8"})))

    first, second = stream.getvalue().splitlines()

    assert first == (
        'I0115 08:00:00.000000 podium "pod decided" pod="default/web" outcome="placed" '
        'profile="default-scheduler" attempt=1 node="n2" nodes=2 feasible=1 seconds=0.002'
    )
    assert 'message="0/2 nodes are available: 2 Insufficient cpu."' in second


def test_json_lines_have_the_same_fields() -> None:
    log, stream = a_log(JSON)
    told = tried(simulation(node("n1")), pod("web"))
    lines = DecisionLines(log)
    lines.attempted(told)
    lines.bound(told, "n1", 0.25)
    lines.bind_failed(told, "n1", 'it says "no"')

    decided, bound, failed = map(json.loads, stream.getvalue().splitlines())

    assert decided.items() >= {"msg": "pod decided", "node": "n1", "v": 2}.items()
    assert bound.items() >= {"msg": "pod bound", "seconds": 0.25}.items()
    assert failed.items() >= {"level": "error", "error": 'it says "no"'}.items()


def test_less_detail_leaves_decisions_out_but_not_failures() -> None:
    log, stream = a_log(v=0)
    told = tried(simulation(node("n1")), pod("web"))
    DecisionLines(log).attempted(told)
    DecisionLines(log).bind_failed(told, "n1", "conflict")

    [line] = stream.getvalue().splitlines()

    assert line.startswith("E0115")


def test_what_others_wrote_cannot_break_a_line() -> None:
    log, stream = a_log()
    log.info('two\nlines, "quoted" \x1b[31m', path="a\\b")

    [line] = stream.getvalue().splitlines()

    assert line.endswith(r'"two\nlines, \"quoted\" \x1b[31m" path="a\\b"')


def test_a_log_that_nobody_reads_stops_nothing() -> None:
    stream = io.StringIO()
    stream.close()

    Log(stream=stream).error("gone")


def test_a_slow_decision_is_told_with_its_steps() -> None:
    log, stream = a_log(v=0)
    trace = SlowTrace(log)
    decision = Decision("default/p", "p", "v1.36", nodes=5000, node="n1")
    steps = (("Basic checks done", 0.001), ("Computing predicates done", 0.15))
    trace.attempted(attempted(pod(), decision, profile(), seconds=0.099, steps=steps))
    assert stream.getvalue() == ""

    trace.attempted(attempted(pod(), decision, profile(), seconds=0.2, steps=steps))

    [line] = stream.getvalue().splitlines()
    assert line.startswith("W")
    assert '"Scheduling default/p took 200 ms"' in line
    assert (
        'steps="Basic checks done 1 ms; Computing predicates done 150 ms; the rest 49 ms"' in line
    )


@pytest.mark.parametrize("fast", [True, False], ids=["ranked", "plain"])
def test_the_engine_tells_its_steps_to_whoever_has_a_clock(fast: bool) -> None:
    clock = Clock()
    steps = Steps(clock)
    world = simulation(node("n1"), node("n2"))
    columns, rankings = world.cache.columns, world._answers["default-scheduler"]
    for name in ("a", "b", "c"):
        steps = Steps(clock)
        attempt = Attempt(
            columns.incoming(pod(name)),
            world.profile,
            world.cache.order(),
            First(),
            answers=rankings if fast else None,
            mark=steps.mark,
        )
        decide(columns, attempt)

    assert [name for name, _ in steps.taken()] == [
        "Basic checks done",
        "Computing predicates done",
        "Prioritizing done",
    ]
