"""A lab's API server on a loopback port, for every test that speaks HTTP to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.serving import LabServer


@pytest.fixture
def lab_server() -> Iterator[LabServer]:
    """An empty cluster that answers on a port of its own."""
    with LabServer() as server:
        yield server
