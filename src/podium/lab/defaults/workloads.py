"""Defaults of everything that makes pods.

Upstream: pkg/apis/apps/v1/defaults.go, pkg/apis/batch/v1/defaults.go, pkg/registry/batch/job.
"""

from __future__ import annotations

from podium.lab.api.status import JsonDict
from podium.lab.defaults.pods import template

_HISTORY = 10
_GENERATION = "deprecated.daemonset.template.generation"
CONTROLLER, _NAME = "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"
_OLD_CONTROLLER, _OLD_NAME = "controller-uid", "job-name"


def _spec(item: JsonDict) -> JsonDict:
    spec: JsonDict = item.setdefault("spec", {})
    template(spec.setdefault("template", {}))
    return spec


def no_replicas(_item: JsonDict) -> JsonDict:
    """The status of something that has made no pod yet."""
    return {"replicas": 0}


def no_daemons(_item: JsonDict) -> JsonDict:
    """The status of a daemon set that nobody has looked at."""
    fields = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled")
    return dict.fromkeys((*fields, "numberReady"), 0)


def first_template(item: JsonDict) -> None:
    """A new daemon set counts its templates in a place of its own, out of habit."""
    about = item["metadata"]
    about["annotations"] = {**(about.get("annotations") or {}), _GENERATION: "1"}


def _labels(item: JsonDict) -> JsonDict:
    labels: JsonDict = item["spec"]["template"]["metadata"].get("labels") or {}
    return labels


def deployment(item: JsonDict) -> None:
    """Complete a deployment."""
    spec = _spec(item)
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", _HISTORY)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = spec.setdefault("strategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")


def replica_set(item: JsonDict) -> None:
    """Complete a replica set."""
    _spec(item).setdefault("replicas", 1)


def stateful_set(item: JsonDict) -> None:
    """Complete a stateful set."""
    spec = _spec(item)
    spec.setdefault("replicas", 1)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    spec.setdefault("revisionHistoryLimit", _HISTORY)
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    keep = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    keep.setdefault("whenDeleted", "Retain")
    keep.setdefault("whenScaled", "Retain")
    for claim in spec.get("volumeClaimTemplates") or ():
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("kind", "PersistentVolumeClaim")
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
        claim.setdefault("status", {}).setdefault("phase", "Pending")


def daemon_set(item: JsonDict) -> None:
    """Complete a daemon set."""
    spec = _spec(item)
    spec.setdefault("revisionHistoryLimit", _HISTORY)
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)


def replication_controller(item: JsonDict) -> None:
    """Complete a replication controller: selector and labels come from the template."""
    spec = _spec(item)
    spec.setdefault("replicas", 1)
    labels = _labels(item)
    if labels:
        spec.setdefault("selector", dict(labels))
        item.setdefault("metadata", {}).setdefault("labels", dict(labels))


def job(item: JsonDict) -> None:
    """Complete a job."""
    spec = _spec(item)
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)


def job_selector(item: JsonDict) -> None:
    """A new job selects its own pods by its uid, unless it brings a selector on purpose."""
    spec, about = item["spec"], item["metadata"]
    if spec.get("manualSelector"):
        return
    labels = spec["template"]["metadata"].setdefault("labels", {})
    for key in (CONTROLLER, _OLD_CONTROLLER):
        labels[key] = about["uid"]
    for key in (_NAME, _OLD_NAME):
        labels[key] = about.get("name", "")
    if not about.get("labels"):
        about["labels"] = dict(labels)
    own = spec.setdefault("selector", {}).setdefault("matchLabels", {})
    own[CONTROLLER] = about["uid"]


def cron_job(item: JsonDict) -> None:
    """Complete a cron job."""
    spec = item.setdefault("spec", {})
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    made = spec.setdefault("jobTemplate", {})
    made.setdefault("metadata", {})
    inner = made.setdefault("spec", {})
    template(inner.setdefault("template", {}))
