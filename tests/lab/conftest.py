"""An empty cluster, and a lab's API server on a loopback port for tests that speak HTTP to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.serving import LabServer
from podium.lab.registry.registry import Registry


@pytest.fixture
def lab_server() -> Iterator[LabServer]:
    """An empty cluster that answers on a port of its own."""
    with LabServer() as server:
        yield server


@pytest.fixture
def registry() -> Registry:
    """An empty cluster."""
    return Registry()
