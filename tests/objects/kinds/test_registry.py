"""The declarations of kinds: complete, unique, and consistent with each other."""

from __future__ import annotations

import pytest

from podium.engine.state.catalog import Catalog, Selecting
from podium.objects.kinds import devices, node, pod, pod_group, registry, storage, workloads
from podium.objects.kinds.kind import Kind
from podium.objects.kinds.meta import Object
from podium.objects.kinds.registry import KINDS, api_groups, kind_of

DECLARED = [each for each in vars(registry).values() if isinstance(each, Kind)]
VALUE_CLASSES = {
    each
    for module in (devices, node, pod, pod_group, storage, workloads)
    for name, each in vars(module).items()
    if isinstance(each, type) and issubclass(each, Object) and each is not Object
    if not name.startswith("_")  # such as what is decoded of a node's report
}


def test_every_declaration_is_listed_under_its_name() -> None:
    assert {kind.name: kind for kind in DECLARED} == KINDS


def test_every_value_class_is_that_of_one_kind() -> None:
    assert {kind.type for kind in KINDS.values()} == VALUE_CLASSES
    assert len(KINDS) == len(VALUE_CLASSES)


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_a_kind_is_found_by_its_class(kind: Kind[Object]) -> None:
    assert kind_of(kind.type) is kind


def test_the_groups_of_manifests() -> None:
    assert api_groups() == {
        *("", "apps", "autoscaling", "extensions", "batch", "policy"),
        *("node.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io"),
    }


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_the_catalogue_has_a_shelf_for_what_rules_look_up(kind: Kind[Object]) -> None:
    shelves = dict(Catalog().shelves())

    assert (kind.name in shelves) == kind.looked_up
    if kind.looked_up:
        assert isinstance(shelves[kind.name], Selecting) == (kind.pod_selector is not None)


def test_workloads_have_templates() -> None:
    assert {kind.name for kind in KINDS.values() if kind.template is not None} == {
        *("ReplicationController", "ReplicaSet", "StatefulSet"),
        *("Deployment", "DaemonSet", "Job"),
    }
