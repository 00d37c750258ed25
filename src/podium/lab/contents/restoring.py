"""Objects of another cluster, as they were there: uid, times and status included.

A snapshot tells only what scheduling reads. What controllers need besides is made up as harmlessly
as possible: the template of a workload from one of its pods, the state of containers from their
pod.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from podium.errors import InputError
from podium.lab.api.resources import Resource
from podium.lab.api.status import invalid
from podium.lab.controllers.framework.object_fields import condition, controller_of, uid_of
from podium.lab.registry import strategies
from podium.lab.store.store import Key
from podium.lab.validation import metadata as metadata_rules
from podium.objects.kinds.meta import JsonObject

if TYPE_CHECKING:
    from podium.lab.registry.registry import Registry

_WORKLOADS: Final = frozenset(
    {"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job"}
)
#: What controllers give each pod, and templates do not have.
_OWN_LABELS: Final = frozenset(
    {
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-completion-index",
        "batch.kubernetes.io/job-name",
        "controller-revision-hash",
        "controller-uid",
        "job-name",
        "statefulset.kubernetes.io/pod-name",
    }
)
_OWN_FIELDS: Final = frozenset({"nodeName", "hostname", "priority", "preemptionPolicy"})
_UNKNOWN: Final = {"name": "unknown", "image": "unknown"}


class Restorer:
    """Puts objects back."""

    def __init__(self, registry: Registry, items: Iterable[JsonObject]) -> None:
        """Into *registry*; *items* are all that there are."""
        self._registry = registry
        self._pods: dict[str, JsonObject] = {}
        sets: list[tuple[str, str]] = []
        for item in items:
            owner = controller_of(item) if item.get("kind") in {"Pod", "ReplicaSet"} else None
            if owner is not None and item["kind"] == "Pod":
                self._pods.setdefault(str(owner.get("uid")), item)
            elif owner is not None and (item.get("spec") or {}).get("replicas"):
                sets.append((str(owner.get("uid")), uid_of(item)))
        for deployment, made in sets:
            if made in self._pods:
                self._pods.setdefault(deployment, self._pods[made])

    def put(self, row: Resource, item: JsonObject) -> None:
        """Store one object."""
        metadata = item["metadata"]
        item["apiVersion"], item["kind"] = row.group_version, row.kind
        if row.namespaced:
            metadata.setdefault("namespace", "default")
        metadata.setdefault("creationTimestamp", self._registry.now())
        strategy = strategies.of(row)
        problems = list(metadata_rules.problems(metadata, strategy.names))
        if problems:
            raise invalid(row.kind, row.group, str(metadata.get("name", "")), problems)
        if row.kind in _WORKLOADS:
            self._complete_workload(item)
        strategy.prepare(item)
        if row.kind == "Namespace":
            strategy.begin(row, item)
        elif row.kind == "Pod":
            _complete_pod(item)
        key = Key(metadata.get("namespace", "") if row.namespaced else "", metadata["name"])
        present = self._registry.store.get(row.storage, key)
        old = None if present is None else present.object()
        if old is not None and old["metadata"]["uid"] == metadata["uid"]:
            raise InputError("is there twice")
        self._registry.write(row, item, old)

    def _complete_workload(self, item: JsonObject) -> None:
        spec = item.setdefault("spec", {})
        if spec.get("template"):
            return
        pod = self._pods.get(uid_of(item))
        if pod is not None:
            spec["template"] = _template(pod, item["kind"])
            return
        selector = spec.get("selector") or {}
        labels = selector.get("matchLabels", {} if "matchExpressions" in selector else selector)
        spec["template"] = {"metadata": {"labels": labels}, "spec": {"containers": [_UNKNOWN]}}


def _template(pod: JsonObject, kind: str) -> JsonObject:
    """What a pod may have been made from."""
    name = pod["metadata"]["name"]
    labels = pod["metadata"].get("labels") or {}
    spec = {part: value for part, value in pod["spec"].items() if part not in _OWN_FIELDS}
    spec["volumes"] = [
        each
        for each in spec.get("volumes") or ()
        if not (each.get("persistentVolumeClaim") or {}).get("claimName", "").endswith(name)
    ]
    if kind == "DaemonSet":
        _unbind(spec)
    own = _OWN_LABELS | {"pod-template-hash"} if kind == "Deployment" else _OWN_LABELS
    kept = {key: text for key, text in labels.items() if key not in own}
    return {"metadata": {"labels": kept}, "spec": spec}


def _unbind(spec: JsonObject) -> None:
    """Take away what binds a daemon to its node."""
    affinity = dict(spec.get("affinity") or {})
    affinity.pop("nodeAffinity", None)
    spec["affinity"] = affinity


def _complete_pod(pod: JsonObject) -> None:
    """Say of the containers of a running pod that they run."""
    status = pod.setdefault("status", {})
    if status.get("phase") != "Running" or status.get("containerStatuses"):
        return
    ready = condition(pod, "Ready").get("status") == "True"
    since = status.get("startTime") or pod["metadata"]["creationTimestamp"]
    status["containerStatuses"] = [
        {
            "name": each["name"],
            "image": each.get("image", ""),
            "imageID": "",
            "lastState": {},
            "ready": ready,
            "started": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": since}},
        }
        for each in pod["spec"].get("containers") or ()
    ]
