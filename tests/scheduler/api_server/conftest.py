"""A real API server without objects, and `podium run` for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path

import pytest

from control_plane.bulk import delete_all
from control_plane.harness import ADMIN, ControlPlane, Program, further_assets

#: Each program has a log of its own.
_numbers = count()
Podium = Callable[..., AbstractContextManager[Program]]


@pytest.fixture(
    scope="session",
    params=[None, *further_assets()],
    ids=["", "older"][: 1 + len(further_assets())],
)
def every_plane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """The control plane of all tests, and one of each further folder with programs."""
    if request.param is None:
        yield request.getfixturevalue("control_plane")
        return
    folder = Path(tmp_path_factory.mktemp("further-control-plane"))
    made = ControlPlane(request.param, folder, readable=True)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def plane(every_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A control plane; what a test leaves behind is cleared away."""
    delete_all(every_plane)
    yield every_plane
    delete_all(every_plane)


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
