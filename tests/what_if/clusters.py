"""Small clusters as plain objects, for tests of plans."""

from __future__ import annotations

import copy
from typing import Any

import manifests
from manifests import Manifest, manifest
from podium.lab.contents.documents import Document
from podium.library.profile_choice import ChosenProfiles
from podium.library.profile_source import ProfileSource
from podium.what_if.plan.changes import Change, parse_change
from podium.what_if.plan.cluster_copy import CopyOptions
from podium.what_if.plan.plan import plan
from podium.what_if.plan.results import Plan

Item = Manifest


def node(name: str, zone: str = "a", cpu: str = "4", **labels: str) -> Item:
    known = {"topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": name}
    return manifests.node(name, cpu, "16Gi", labels=known | labels)


def pod_spec(cpu: str = "1", **more: Any) -> Item:
    resources = {"requests": {"cpu": cpu, "memory": "128Mi"}}
    return {"containers": [{"name": "main", "image": "app:1", "resources": resources}], **more}


def pod(name: str, cpu: str = "1", **more: Any) -> Item:
    return manifest("Pod", name, metadata={"labels": {"app": name}}, spec=pod_spec(cpu, **more))


def workload(kind: str, name: str, replicas: int | None = 2, cpu: str = "1", **more: Any) -> Item:
    made = manifests.workload(kind, name, replicas, pod_spec(cpu, **more))
    if kind == "StatefulSet":
        made["spec"]["serviceName"] = name
    return made


def owned(kind: str, owner: str, name: str, api: str = "apps/v1", **spec: Any) -> Item:
    """A running pod of a cluster whose owner is known by its reference only."""
    reference = {"apiVersion": api, "kind": kind, "name": owner, "uid": f"uid-{owner}"}
    metadata = {
        "labels": {"app": owner},
        "uid": f"uid-{name}",
        "ownerReferences": [{**reference, "controller": True}],
    }
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    own = pod_spec(**{"nodeName": "n1", **spec})
    return manifest("Pod", name, metadata=metadata, spec=own, status=status)


def with_claim(name: str) -> Item:
    """The volumes of a pod that has one claim."""
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}


def chosen(**more: Any) -> ChosenProfiles:
    return ProfileSource(environment={}, **more).choose()


def changes(*texts: str) -> list[Change]:
    """`drain n1` and so on, as the command line has them."""
    return [parse_change(*text.split(" ", 1)) for text in texts]


def planned(items: list[Item], *texts: str, **more: Any) -> Plan:
    return plan(documents(items), changes(*texts), chosen(), CopyOptions(**more))


def documents(items: list[Item]) -> list[Document]:
    """Copies of the objects: those that a plan is given belong to it."""
    return [Document("", copy.deepcopy(item)) for item in items]
