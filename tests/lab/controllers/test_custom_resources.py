"""Controllers and custom objects: owners, namespaces, definitions that are deleted, quotas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.controllers.managed_cluster import ManagedCluster, pod
from podium.lab.api.status import StatusError

CHART = Path(__file__).parents[1] / "clients" / "chart" / "crds.yaml"
WIDGETS = "widgets.factory.example.com"


@pytest.fixture
def factory(lab: ManagedCluster) -> ManagedCluster:
    for each in yaml.safe_load_all(CHART.read_text("utf-8")):
        lab.create("CustomResourceDefinition", each)
    return lab


def widget(name: str = "one", namespace: str = "default") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"color": "red"}}


def owned_by(owner: dict[str, Any]) -> dict[str, Any]:
    made = pod("owned")
    made["metadata"]["ownerReferences"] = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
        }
    ]
    return made


def test_what_a_custom_object_owns_goes_with_it(factory: ManagedCluster) -> None:
    owner = factory.create(WIDGETS, widget())
    factory.create("Pod", owned_by(owner))
    factory.settle()
    assert factory.names() == ["owned"]
    factory.registry.delete(WIDGETS, "one", "default")
    factory.settle()
    assert factory.names() == []


def test_custom_objects_go_with_their_owner_and_with_their_namespace(
    factory: ManagedCluster,
) -> None:
    factory.create("Namespace", {"metadata": {"name": "short"}})
    factory.create(WIDGETS, widget("two", "short"))
    owner = factory.create("ConfigMap", {"metadata": {"name": "owner", "namespace": "default"}})
    item = widget()
    item["metadata"]["ownerReferences"] = owned_by(owner)["metadata"]["ownerReferences"]
    factory.create(WIDGETS, item)
    factory.settle()
    factory.delete("ConfigMap", "owner")
    factory.registry.delete("Namespace", "short")
    factory.settle()
    assert factory.registry.list(WIDGETS) == []
    assert factory.registry.find("Namespace", "short") is None


def test_a_deleted_definition_takes_its_objects_along(factory: ManagedCluster) -> None:
    factory.create(WIDGETS, widget())
    kept = widget("kept")
    kept["metadata"]["finalizers"] = ["example.com/wait"]
    factory.create(WIDGETS, kept)
    factory.registry.delete("CustomResourceDefinition", WIDGETS)
    factory.settle()
    assert [each["metadata"]["name"] for each in factory.registry.list(WIDGETS)] == ["kept"]

    def let_go(item: dict[str, Any]) -> dict[str, Any]:
        del item["metadata"]["finalizers"]
        return item

    factory.registry.modify(WIDGETS, "kept", "default", change=let_go)
    factory.settle()
    assert factory.registry.find("CustomResourceDefinition", WIDGETS) is None
    with pytest.raises(KeyError):
        factory.registry.list(WIDGETS)


def test_a_quota_counts_custom_objects(factory: ManagedCluster) -> None:
    metadata = {"name": "quota", "namespace": "default"}
    spec = {"hard": {f"count/{WIDGETS}": "1"}}
    factory.create("ResourceQuota", {"metadata": metadata, "spec": spec})
    factory.create(WIDGETS, widget())
    with pytest.raises(StatusError, match="exceeded quota"):
        factory.create(WIDGETS, widget("two"))


def test_new_controllers_know_the_custom_objects_there_are(factory: ManagedCluster) -> None:
    owner = factory.create(WIDGETS, widget())
    factory.create("Pod", owned_by(owner))
    factory.settle()
    factory.restart()
    factory.settle()
    assert factory.names() == ["owned"]
