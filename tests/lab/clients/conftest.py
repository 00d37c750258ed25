"""Each kubectl that there is, with a lab of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.clients.kubectl import PROGRAMS, Kubectl, available
from lab.command.lab_process import LabProcess


@pytest.fixture(params=available())
def kubectl(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kubectl]:
    program = PROGRAMS[request.param]()
    if not program:
        pytest.skip(f"there is no such kubectl here: {request.param}")
    lab = LabProcess(tmp_path, "--nodes=3")
    yield Kubectl(program, lab.kubeconfig, tmp_path / "home")
    assert lab.end() == (0, "")
