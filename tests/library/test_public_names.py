"""`import podium`: complete, typed, documented, and without effects on the process."""

from __future__ import annotations

import gc
import inspect
import logging
import signal
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import podium

ROOT = Path(__file__).parents[2]
CLUSTER = str(ROOT / "examples" / "cluster")
FUNCTIONS = [name for name in podium.__all__ if inspect.isfunction(getattr(podium, name))]


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys, podium; print(*(m for m in sys.modules if m.startswith('podium')))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.split() == ["podium"]


def test_every_public_name_is_there() -> None:
    assert list(podium.__all__) == sorted(podium.__all__)
    assert all(getattr(podium, name) is not None for name in podium.__all__)
    assert set(podium.__all__) <= set(dir(podium))
    assert {*podium._MODULE_OF, "__version__"} == set(podium.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        podium.nothing  # noqa: B018


@pytest.mark.parametrize("name", sorted({*podium.__all__} - {"__version__"}))
def test_every_public_name_says_what_it_is(name: str) -> None:
    assert inspect.getdoc(getattr(podium, name))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_public_function_is_typed(name: str) -> None:
    signature = inspect.signature(getattr(podium, name))

    assert signature.return_annotation is not inspect.Signature.empty
    assert all(p.annotation is not p.empty for p in signature.parameters.values())


def state_of_the_process() -> list[typing.Any]:
    root = logging.getLogger()
    return [
        gc.get_freeze_count(),
        gc.get_threshold(),
        gc.isenabled(),
        [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)],
        (root.level, list(root.handlers)),
        sys.getrecursionlimit(),
        sys.getswitchinterval(),
    ]


def test_nothing_changes_the_process() -> None:
    before = state_of_the_process()

    objects = podium.read([CLUSTER])
    profile = podium.default_profile()
    steps = list(podium.simulate(objects, profile))
    podium.explain(objects, "checkout", profile)
    recording = podium.record(objects, podium.ProfileSource(profile="v1.13").choose())
    podium.replay(recording.scenario)

    assert steps
    assert state_of_the_process() == before
