"""Defaults of workloads: deployments, replica sets, stateful sets, daemon sets and jobs.

Upstream: pkg/apis/apps/v1/defaults.go, pkg/apis/batch/v1/defaults.go, pkg/registry/batch/job.
"""

from __future__ import annotations

from podium.lab.defaults.pods import set_template_defaults
from podium.objects.kinds.meta import JsonObject

_HISTORY_LIMIT = 10
MAX_INT32 = 2**31 - 1
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
CONTROLLER_UID_LABEL = "batch.kubernetes.io/controller-uid"
_CONTROLLER_UID_LABELS = (CONTROLLER_UID_LABEL, "controller-uid")
_JOB_NAME_LABELS = ("batch.kubernetes.io/job-name", "job-name")


def _spec_with_template(item: JsonObject) -> JsonObject:
    spec: JsonObject = item.setdefault("spec", {})
    set_template_defaults(spec.setdefault("template", {}))
    return spec


def new_replica_status(_item: JsonObject) -> JsonObject:
    """The status of a new workload that counts its replicas."""
    return {"replicas": 0}


def new_daemon_set_status(_item: JsonObject) -> JsonObject:
    """The status of a new daemon set."""
    fields = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled")
    return dict.fromkeys((*fields, "numberReady"), 0)


def set_template_generation(item: JsonObject) -> None:
    """Set the deprecated annotation that counts the templates of a daemon set."""
    about = item["metadata"]
    about["annotations"] = {**(about.get("annotations") or {}), _TEMPLATE_GENERATION: "1"}


def _template_labels(item: JsonObject) -> JsonObject:
    labels: JsonObject = item["spec"]["template"]["metadata"].get("labels") or {}
    return labels


def set_deployment_defaults(item: JsonObject) -> None:
    """Set the defaults of a deployment."""
    spec = _spec_with_template(item)
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", _HISTORY_LIMIT)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = spec.setdefault("strategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")


def set_replica_set_defaults(item: JsonObject) -> None:
    """Set the defaults of a replica set."""
    _spec_with_template(item).setdefault("replicas", 1)


def set_stateful_set_defaults(item: JsonObject) -> None:
    """Set the defaults of a stateful set."""
    spec = _spec_with_template(item)
    spec.setdefault("replicas", 1)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    spec.setdefault("revisionHistoryLimit", _HISTORY_LIMIT)
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


def set_daemon_set_defaults(item: JsonObject) -> None:
    """Set the defaults of a daemon set."""
    spec = _spec_with_template(item)
    spec.setdefault("revisionHistoryLimit", _HISTORY_LIMIT)
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)


def set_replication_controller_defaults(item: JsonObject) -> None:
    """Set the defaults of a replication controller: the template gives selector and labels."""
    spec = _spec_with_template(item)
    spec.setdefault("replicas", 1)
    labels = _template_labels(item)
    if labels:
        spec.setdefault("selector", dict(labels))
        item.setdefault("metadata", {}).setdefault("labels", dict(labels))


def set_job_defaults(item: JsonObject) -> None:
    """Set the defaults of a job."""
    spec = _spec_with_template(item)
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else MAX_INT32)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    replaced = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    spec.setdefault("podReplacementPolicy", replaced)


def set_job_selector(item: JsonObject) -> None:
    """Make a new job select its pods by its uid, unless its selector is set manually."""
    spec, about = item["spec"], item["metadata"]
    if spec.get("manualSelector"):
        return
    labels = spec["template"]["metadata"].setdefault("labels", {})
    for key in _CONTROLLER_UID_LABELS:
        labels[key] = about["uid"]
    for key in _JOB_NAME_LABELS:
        labels[key] = about.get("name", "")
    if not about.get("labels"):
        about["labels"] = dict(labels)
    own = spec.setdefault("selector", {}).setdefault("matchLabels", {})
    own[CONTROLLER_UID_LABEL] = about["uid"]


def set_cron_job_defaults(item: JsonObject) -> None:
    """Set the defaults of a cron job."""
    spec = item.setdefault("spec", {})
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    made = spec.setdefault("jobTemplate", {})
    made.setdefault("metadata", {})
    inner = made.setdefault("spec", {})
    set_template_defaults(inner.setdefault("template", {}))


def set_autoscaler_defaults(item: JsonObject) -> None:
    """Set the defaults of an autoscaler: one replica at least, 80 % of the requested CPU."""
    spec = item.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def new_autoscaler_status(_item: JsonObject) -> JsonObject:
    """The status of a new autoscaler."""
    return {"currentReplicas": 0, "desiredReplicas": 0}
