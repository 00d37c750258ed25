"""One control plane for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from control_plane.harness import ControlPlane, MissingError, assets


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A real etcd and kube-apiserver; without them the test is skipped, which CI does not allow."""
    try:
        programs = assets()
    except MissingError as error:
        pytest.skip(str(error))
    made = ControlPlane(programs, Path(tmp_path_factory.mktemp("control-plane")))
    try:
        made.start()
        yield made
    finally:
        made.stop()
