"""A cluster of three nodes with all controllers."""

from __future__ import annotations

import pytest

from lab.controllers.managed_cluster import ManagedCluster


@pytest.fixture
def lab() -> ManagedCluster:
    return ManagedCluster()
