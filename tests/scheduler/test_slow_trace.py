"""Slow decisions are logged with the duration of their steps."""

from __future__ import annotations

import io

import pytest

from builders import node, pod, profile
from podium.cluster.simulation import Simulation
from podium.engine.framework.decision import Decision
from podium.scheduler.telemetry.logs import WARNINGS_ONLY, Log
from podium.scheduler.telemetry.timings import SlowTrace, Steps
from scheduler.attempts import Clock, attempted


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
    assert line.startswith("I")  # as in kube-scheduler
    assert '"Scheduling default/p took 200 ms"' in line
    SlowTrace(Log(stream=stream, v=WARNINGS_ONLY)).attempted(
        attempted(pod(), decision, profile(), seconds=0.2, steps=steps)
    )
    assert len(stream.getvalue().splitlines()) == 1
    assert (
        'steps="Basic checks done 1 ms; Computing predicates done 150 ms; the rest 49 ms"' in line
    )


@pytest.mark.parametrize("fast", [True, False], ids=["ranked", "plain"])
def test_the_engine_marks_the_end_of_each_step(fast: bool) -> None:
    clock = Clock()
    steps = Steps(clock)
    world = Simulation(profile(), fast=fast)
    for name in ("n1", "n2"):
        world.cache.put_node(node(name))
    for name in ("a", "b", "c"):
        steps = Steps(clock)
        world.attempt(pod(name), mark=steps.mark)

    assert [name for name, _ in steps.taken()] == [
        "Basic checks done",
        "Computing predicates done",
        "Prioritizing done",
        "Selecting host done",
    ]
