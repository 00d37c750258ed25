"""Objects without what neither decisions nor plans depend on.

Controllers read them: grace periods, strategies, deadlines, states of jobs. They are numbers, times
and words of the API, so that an anonymized snapshot keeps them as they are.

Value classes have only the fields that scheduling reads, so environment variables, commands, names
of secrets and managed fields are gone once an object is decoded. What is taken out here are
annotations that nothing reads, what an API server alone needs, and what the declaration of a kind
takes out (`Kind.trim`). `plan_fields` puts back what controllers read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from podium.objects.kinds.kind import Kind
from podium.objects.kinds.meta import JsonObject, Object, ObjectMeta
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.registry import KINDS

if TYPE_CHECKING:
    from podium.objects.kinds.meta import JsonObject

#: Annotations that plans read.
PLAN_ANNOTATIONS: Final = frozenset(
    {
        "batch.kubernetes.io/job-completion-index",
        "deployment.kubernetes.io/desired-replicas",
        "deployment.kubernetes.io/max-replicas",
        "deployment.kubernetes.io/revision",
        "kubernetes.io/config.mirror",
        "lab.podium/run-seconds",
    }
)


class _Tree(dict[str, "_Tree"]):
    """Fields by name, with the fields in each; one without any is kept whole."""

    def __init__(self, *paths: str) -> None:
        for path in paths:
            at = self
            for step in path.split("."):
                at = at.setdefault(step, _Tree())


def _under(prefix: str, paths: Iterable[str]) -> list[str]:
    return [f"{prefix}.{path}" for path in paths]


_POD_SPEC: Final = (
    *("activeDeadlineSeconds", "restartPolicy", "runtimeClassName"),
    *("terminationGracePeriodSeconds", "tolerations.tolerationSeconds", "volumes.emptyDir"),
)
_TEMPLATE: Final = _under("spec.template.spec", _POD_SPEC)
_JOB_SPEC: Final = (
    *("activeDeadlineSeconds", "backoffLimit", "backoffLimitPerIndex", "completionMode"),
    *("maxFailedIndexes", "podReplacementPolicy", "ttlSecondsAfterFinished"),
    *("podFailurePolicy.rules.action", "podFailurePolicy.rules.onPodConditions"),
    *("podFailurePolicy.rules.onExitCodes.operator", "podFailurePolicy.rules.onExitCodes.values"),
    *_under("template.spec", _POD_SPEC),
)
_ROLLING: Final = ("spec.minReadySeconds", "spec.revisionHistoryLimit", "spec.updateStrategy")
_METRIC: Final = ("name", "target.averageUtilization", "target.averageValue", "target.type")

_FIELDS: Final[Mapping[str, _Tree]] = {
    "Node": _Tree("spec.taints.timeAdded", "status.conditions.lastHeartbeatTime"),
    "Pod": _Tree(
        *("metadata.deletionGracePeriodSeconds", "metadata.generateName"),
        *_under("spec", _POD_SPEC),
        *_under("status.containerStatuses", ("ready", "restartCount", "started")),
    ),
    "ReplicationController": _Tree("spec.minReadySeconds", *_TEMPLATE),
    "ReplicaSet": _Tree("spec.minReadySeconds", *_TEMPLATE),
    "Deployment": _Tree(
        *("spec.minReadySeconds", "spec.paused", "spec.progressDeadlineSeconds"),
        *("spec.revisionHistoryLimit", "spec.strategy", *_TEMPLATE),
    ),
    "StatefulSet": _Tree(
        *_ROLLING,
        *("spec.persistentVolumeClaimRetentionPolicy", "spec.podManagementPolicy"),
        *_TEMPLATE,
    ),
    "DaemonSet": _Tree(*_ROLLING, *_TEMPLATE),
    "Job": _Tree(
        *_under("spec", _JOB_SPEC),
        *_under("status", ("active", "completedIndexes", "completionTime", "failed")),
        *_under("status", ("failedIndexes", "ready", "startTime", "succeeded")),
        *_under("status.conditions", ("lastTransitionTime", "reason", "status", "type")),
    ),
    "CronJob": _Tree(
        *("spec.concurrencyPolicy", "spec.failedJobsHistoryLimit", "spec.schedule"),
        *("spec.startingDeadlineSeconds", "spec.successfulJobsHistoryLimit", "spec.suspend"),
        *("spec.timeZone", "status.lastScheduleTime", "status.lastSuccessfulTime"),
        *_under("spec.jobTemplate.spec", _JOB_SPEC),
    ),
    "HorizontalPodAutoscaler": _Tree(
        *("spec.behavior", "spec.maxReplicas", "spec.metrics.type", "spec.minReplicas"),
        *_under("spec.metrics.resource", _METRIC),
        *("status.currentReplicas", "status.desiredReplicas", "status.lastScaleTime"),
        *("spec.targetCPUUtilizationPercentage",),  # autoscaling/v1
    ),
    "LimitRange": _Tree("spec.limits"),
    "ResourceQuota": _Tree("spec.hard", "spec.scopes", "status"),
    "RuntimeClass": _Tree("overhead"),
    "PodDisruptionBudget": _Tree("spec.unhealthyPodEvictionPolicy"),
    "PersistentVolume": _Tree("spec.persistentVolumeReclaimPolicy"),
    "StorageClass": _Tree("reclaimPolicy"),
}
#: Where the volumes of pods are.
_VOLUMES: Final = ("spec", "spec.template.spec", "spec.jobTemplate.spec.template.spec")


def with_plan_fields(kind: str, kept: JsonObject, whole: JsonObject) -> JsonObject:
    """An object with the fields that plans read, taken from the *whole* one."""
    fields = _FIELDS.get(kind)
    if fields is not None:
        _add(kept, whole, fields)
        for holder in _VOLUMES:
            _remove_unread_volumes(kept, holder.split("."))
    return kept


def _add(kept: JsonObject, whole: Mapping[str, Any], fields: _Tree) -> None:
    for name, below in fields.items():
        value = whole.get(name)
        if value is None:
            continue
        if not below:
            kept[name] = value
        elif isinstance(value, list):
            for inner, each in zip(kept.setdefault(name, [{} for _ in value]), value, strict=True):
                _add(inner, each, below)
        else:
            _add(kept.setdefault(name, {}), value, below)


def _remove_unread_volumes(kept: JsonObject, steps: Iterable[str]) -> None:
    """Remove volumes of which only the name is left; they would count as local storage."""
    for step in steps:
        kept = kept.get(step) or {}
    if "volumes" in kept:
        kept["volumes"] = [each for each in kept["volumes"] if each.keys() - {"name"}]


#: Annotations that rules read.
ANNOTATIONS: Final = frozenset(
    {
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "volume.beta.kubernetes.io/storage-class",
        "volume.kubernetes.io/selected-node",
        "pv.kubernetes.io/bind-completed",
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
        "resource.kubernetes.io/extended-resource-claim",
    }
)
#: Where a workload has templates, and what is kept of their metadata.
_TEMPLATES: Final = {
    "template": ("labels",),
    "jobTemplate": ("labels",),
    "volumeClaimTemplates": ("name", "labels"),
}


def trimmed(kind: str, version: str, data: msgspec.Raw | bytes) -> bytes | None:
    """The object as JSON of what is read of it; None for a pod that has finished."""
    item = KINDS[kind].decoder.decode(data)
    if isinstance(item, Pod) and item.finished:
        return None
    kept: JsonObject = msgspec.to_builtins(_trim(item, KINDS[kind], version))
    _trim_templates(kept.get("spec", {}))
    return msgspec.json.encode(with_plan_fields(kind, kept, msgspec.json.decode(data)))


def _trim(item: Object, kind: Kind[Any], version: str) -> Object:
    item = replace(item, api_version=version, kind=kind.name, metadata=_metadata(item.metadata))
    return item if kind.trim is None else kind.trim(item)


def _metadata(about: ObjectMeta) -> ObjectMeta:
    read = ANNOTATIONS | PLAN_ANNOTATIONS
    kept = {key: text for key, text in (about.annotations or {}).items() if key in read}
    return replace(about, generate_name=None, resource_version="", annotations=kept or None)


def _trim_templates(spec: JsonObject) -> None:
    """Leave labels in the metadata of templates, and the names of those of claims."""
    for name, kept in _TEMPLATES.items():
        found = spec.get(name, ())
        for each in [found] if isinstance(found, dict) else found:
            about = each.get("metadata", {})
            each["metadata"] = {part: about[part] for part in kept if part in about}
            _trim_templates(each.get("spec", {}))
