"""Evicting pods within their disruption budgets."""

from __future__ import annotations

import pytest

from lab.serving import pod
from podium.lab.api.status import StatusError
from podium.lab.registry.registry import Registry
from podium.objects.kinds.meta import JsonObject


@pytest.fixture
def registry() -> Registry:
    return Registry()


def running(registry: Registry, name: str) -> None:
    def change(found: JsonObject) -> JsonObject:
        ready = {"type": "Ready", "status": "True"}
        return found | {"status": {"phase": "Running", "conditions": [ready]}}

    registry.modify("pods", name, "default", change=change, subresource="status")


def test_evictions_stop_when_the_budget_is_spent(registry: Registry) -> None:
    for name in ("a", "b"):
        item = pod(name)
        item["metadata"]["labels"] = {"app": "web"}
        registry.create("pods", item)
        registry.bind(name, "default", "n1")
        running(registry, name)
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    registry.create("poddisruptionbudgets", {"metadata": {"name": "b"}, "spec": spec})
    status = {"disruptionsAllowed": 1, "observedGeneration": 1, "desiredHealthy": 1,
              "currentHealthy": 2, "expectedPods": 2}  # fmt: skip
    registry.modify(
        "poddisruptionbudgets", "b", "default",
        change=lambda found: found | {"status": status}, subresource="status",
    )  # fmt: skip

    registry.evict("a", "default")
    with pytest.raises(StatusError, match="would violate the pod's disruption budget") as error:
        registry.evict("b", "default")

    assert error.value.code == 429
    assert registry.get("pods", "a", "default")["metadata"]["deletionTimestamp"]
    assert "deletionTimestamp" not in registry.get("pods", "b", "default")["metadata"]
