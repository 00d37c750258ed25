"""Slow decisions are logged with the duration of their steps."""

from __future__ import annotations

import io

import pytest

from builders import node, pod, profile, simulation
from daemon.attempts import Clock, attempted
from podium.daemon.logs import Log
from podium.daemon.slow_trace import SlowTrace, Steps
from podium.engine.cycle.attempt import Attempt
from podium.engine.cycle.cycle import decide
from podium.engine.cycle.ties import First
from podium.engine.framework.decision import Decision


def test_a_slow_decision_is_told_with_its_steps() -> None:
    stream = io.StringIO()
    log = Log(stream=stream)
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
def test_the_engine_marks_the_end_of_each_step(fast: bool) -> None:
    clock = Clock()
    steps = Steps(clock)
    world = simulation(node("n1"), node("n2"))
    columns, rankings = world.cache.columns, world._answers["default-scheduler"]
    for name in ("a", "b", "c"):
        steps = Steps(clock)
        attempt = Attempt(
            columns.pods.incoming(pod(name)),
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
        "Selecting host done",
    ]
