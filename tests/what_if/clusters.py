"""Small clusters as plain objects, for tests of plans."""

from __future__ import annotations

import copy
from typing import Any

from podium.lab.contents.documents import Document
from podium.library.profile_choice import ChosenProfiles
from podium.library.profile_source import ProfileSource
from podium.what_if.plan.changes import Change, parse_change
from podium.what_if.plan.plan import plan
from podium.what_if.plan.results import Plan

Item = dict[str, Any]


def node(name: str, zone: str = "a", cpu: str = "4", **labels: str) -> Item:
    resources = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": name}
            | labels,
        },
        "status": {"capacity": resources, "allocatable": dict(resources)},
    }


def pod_spec(cpu: str = "1", **more: Any) -> Item:
    resources = {"requests": {"cpu": cpu, "memory": "128Mi"}}
    return {"containers": [{"name": "main", "image": "app:1", "resources": resources}], **more}


def pod(name: str, cpu: str = "1", **more: Any) -> Item:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "spec": pod_spec(cpu, **more),
    }


def workload(kind: str, name: str, replicas: int | None = 2, cpu: str = "1", **more: Any) -> Item:
    labels = {"app": name}
    spec: Item = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod_spec(cpu, **more)},
    }
    if replicas is not None:
        spec["replicas"] = replicas
    if kind == "StatefulSet":
        spec["serviceName"] = name
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def budget(name: str, app: str, **spec: Any) -> Item:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


def chosen(**more: Any) -> ChosenProfiles:
    return ProfileSource(environment={}, **more).choose()


def changes(*texts: str) -> list[Change]:
    """`drain n1` and so on, as the command line has them."""
    return [parse_change(*text.split(" ", 1)) for text in texts]


def planned(items: list[Item], *texts: str, **more: Any) -> Plan:
    return plan(documents(items), changes(*texts), chosen(), **more)


def documents(items: list[Item]) -> list[Document]:
    """Copies of the objects: those that a plan is given belong to it."""
    return [Document("", copy.deepcopy(item)) for item in items]
