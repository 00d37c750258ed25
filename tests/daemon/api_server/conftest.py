"""A real API server without objects, and `podium run` for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path

import pytest

from control_plane.bulk import delete_all
from control_plane.harness import ADMIN, ControlPlane, Program

#: Each program has a log of its own.
_numbers = count()
Podium = Callable[..., AbstractContextManager[Program]]


@pytest.fixture
def plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane; what a test leaves behind is cleared away."""
    delete_all(control_plane)
    yield control_plane
    delete_all(control_plane)


@pytest.fixture
def podium(plane: ControlPlane) -> Podium:
    """Run `podium run` for pods of the scheduler `podium`, with further flags."""

    @contextmanager
    def running(
        *flags: str | Path,
        url: str = "",
        lease: bool = False,
        name: str = "podium",
        environment: Mapping[str, str] | None = None,
    ) -> Iterator[Program]:
        kubeconfig = plane.kubeconfig(ADMIN, url=url) if url else plane.kubeconfig(ADMIN)
        usual = [] if "--config" in flags else ["--scheduler-name", "podium"]
        if not any(str(flag).startswith("--port") for flag in flags):
            usual += ["--port", "0"]
        command = [
            *(sys.executable, "-m", "podium", "run", "--kubeconfig", kubeconfig),
            *usual,
            f"--leader-elect={'true' if lease else 'false'}",
            *flags,
        ]
        with plane.program(
            f"{name}-{next(_numbers)}", *command, environment=environment
        ) as program:
            yield program

    return running
