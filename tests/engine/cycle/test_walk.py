"""How many modules a decision passes through: a reader who follows it opens as many files."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import podium
from builders import node, objects, pod
from builders_v1_36 import default_profile
from podium.cluster.simulation import Simulation
from podium.cluster.verification import Verification

PACKAGE = str(Path(podium.__file__).parent)
#: The most modules that the first decision about a class of pods passes, and the third one.
MOST_AT_FIRST, MOST_LATER = 50, 24


def passed(action: Callable[[], object]) -> set[str]:
    """The modules of the engine and below it in which some function runs meanwhile."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(PACKAGE):
            found.add(path.removeprefix(PACKAGE).lstrip("/"))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
    return found


def test_a_decision_passes_few_modules() -> None:
    simulation = Simulation(default_profile(), verification=Verification(every=0))
    simulation.load(objects(*(node(f"n{i}", cpu="4", memory="8Gi") for i in range(20))))

    def schedule(name: str) -> None:
        wanted = pod(name, requests={"cpu": "1", "memory": "1Gi"})
        simulation.place(wanted, simulation.attempt(wanted))

    first, _, third = [passed(partial(schedule, name)) for name in ("first", "second", "third")]
    assert len(first) <= MOST_AT_FIRST, sorted(first)
    assert len(third) <= MOST_LATER, sorted(third)
