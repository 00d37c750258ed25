"""Tables of workloads, and of their revisions, templates, budgets and scales."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.lab.tables.formats import (
    NONE,
    UNSET,
    age,
    container_cells,
    duration,
    labels_text,
    parse_time,
    selector_text,
    time_since,
)
from podium.lab.tables.object_fields import (
    condition_status,
    list_at,
    metadata_of,
    name_of,
    number_at,
    object_at,
    text_at,
)
from podium.lab.tables.printer import Printer
from podium.objects.kinds.meta import JsonObject

_JOB_ENDS = (("Complete", "Complete"), ("Failed", "Failed"))
_JOB_STATES = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def _template(object_: JsonObject) -> tuple[str, str]:
    return container_cells(object_at(object_, "spec", "template"))


def _selected(object_: JsonObject) -> str:
    return selector_text(object_at(object_, "spec", "selector"))


def _replicas(object_: JsonObject) -> int:
    return number_at(object_, "spec", "replicas")


def _replicated(object_: JsonObject, now: float) -> list[Any]:
    return [
        name_of(object_),
        _replicas(object_),
        number_at(object_, "status", "replicas"),
        number_at(object_, "status", "readyReplicas"),
        age(object_, now),
        *_template(object_),
    ]


def _deployment_cells(deployment: JsonObject, now: float) -> list[Any]:
    ready, desired = number_at(deployment, "status", "readyReplicas"), _replicas(deployment)
    return [
        name_of(deployment),
        f"{ready}/{desired}",
        number_at(deployment, "status", "updatedReplicas"),
        number_at(deployment, "status", "availableReplicas"),
        age(deployment, now),
        *_template(deployment),
        _selected(deployment),
    ]


def _replica_set_cells(replica_set: JsonObject, now: float) -> list[Any]:
    return [*_replicated(replica_set, now), _selected(replica_set) or NONE]


def _replication_controller_cells(controller: JsonObject, now: float) -> list[Any]:
    return [*_replicated(controller, now), labels_text(object_at(controller, "spec", "selector"))]


def _stateful_set_cells(stateful_set: JsonObject, now: float) -> list[Any]:
    ready = number_at(stateful_set, "status", "readyReplicas")
    return [
        name_of(stateful_set),
        f"{ready}/{_replicas(stateful_set)}",
        age(stateful_set, now),
        *_template(stateful_set),
    ]


def _daemon_set_cells(daemon_set: JsonObject, now: float) -> list[Any]:
    status = object_at(daemon_set, "status")
    return [
        name_of(daemon_set),
        number_at(status, "desiredNumberScheduled"),
        number_at(status, "currentNumberScheduled"),
        number_at(status, "numberReady"),
        number_at(status, "updatedNumberScheduled"),
        number_at(status, "numberAvailable"),
        labels_text(object_at(daemon_set, "spec", "template", "spec", "nodeSelector")),
        age(daemon_set, now),
        *_template(daemon_set),
        _selected(daemon_set) or NONE,
    ]


def _job_cells(job: JsonObject, now: float) -> list[Any]:
    spec, succeeded = object_at(job, "spec"), number_at(job, "status", "succeeded")
    if spec.get("completions") is not None:
        done = f"{succeeded}/{spec['completions']}"
    else:
        parallelism = number_at(spec, "parallelism")
        done = f"{succeeded}/1" + (f" of {parallelism}" if parallelism > 1 else "")
    started = parse_time(object_at(job, "status").get("startTime"))
    ended = parse_time(object_at(job, "status").get("completionTime"))
    took = "" if started is None else duration((now if ended is None else ended) - started)
    return [
        name_of(job),
        _job_state(job),
        done,
        took,
        age(job, now),
        *_template(job),
        _selected(job) or NONE,
    ]


def _job_state(job: JsonObject) -> str:
    for kind, word in _JOB_ENDS:
        if condition_status(job, kind) == "True":
            return word
    if metadata_of(job).get("deletionTimestamp"):
        return "Terminating"
    return next((kind for kind in _JOB_STATES if condition_status(job, kind) == "True"), "Running")


def _cron_job_cells(cron_job: JsonObject, now: float) -> list[Any]:
    spec, status = object_at(cron_job, "spec"), object_at(cron_job, "status")
    suspended = UNSET if spec.get("suspend") is None else str(bool(spec["suspend"]))
    last = status.get("lastScheduleTime")
    inner = object_at(spec, "jobTemplate", "spec")
    return [
        name_of(cron_job),
        text_at(spec, "schedule"),
        text_at(spec, "timeZone", default=NONE),
        suspended,
        len(list_at(status, "active")),
        time_since(last, now) if last else NONE,
        age(cron_job, now),
        *container_cells(object_at(inner, "template")),
        selector_text(object_at(inner, "selector")) or NONE,
    ]


def _controller_revision_cells(revision: JsonObject, now: float) -> list[Any]:
    owner = next(
        (
            each
            for each in list_at(revision, "metadata", "ownerReferences")
            if each.get("controller")
        ),
        None,
    )
    name = NONE
    if owner is not None:
        group = str(owner.get("apiVersion", "")).rpartition("/")[0]
        kind = str(owner.get("kind", "")) + (f".{group}" if group else "")
        name = f"{kind.lower()}/{owner.get('name', '')}"
    return [
        name_of(revision),
        name,
        number_at(revision, "revision"),
        age(revision, now),
    ]


def _pod_template_cells(template: JsonObject, _now: float) -> list[Any]:
    inner = object_at(template, "template")
    return [
        name_of(template),
        *container_cells(inner),
        labels_text(object_at(inner, "metadata", "labels")),
    ]


def _disruption_budget_cells(budget: JsonObject, now: float) -> list[Any]:
    return [
        name_of(budget),
        text_at(budget, "spec", "minAvailable", default="N/A"),
        text_at(budget, "spec", "maxUnavailable", default="N/A"),
        number_at(budget, "status", "disruptionsAllowed"),
        age(budget, now),
    ]


def _scale_cells(scale: JsonObject, now: float) -> list[Any]:
    name = name_of(scale)
    return [name, _replicas(scale), number_at(scale, "status", "replicas"), age(scale, now)]


def _autoscaler_cells(autoscaler: JsonObject, now: float) -> list[Any]:
    target = object_at(autoscaler, "spec", "scaleTargetRef")
    spec = object_at(autoscaler, "spec")
    return [
        name_of(autoscaler),
        f"{text_at(target, 'kind')}/{text_at(target, 'name')}",
        _targets(autoscaler),
        str(spec.get("minReplicas", UNSET)),
        number_at(autoscaler, "spec", "maxReplicas"),
        number_at(autoscaler, "status", "currentReplicas"),
        age(autoscaler, now),
    ]


def _targets(autoscaler: JsonObject) -> str:
    """The metrics of an autoscaler, each as what is and what shall be."""
    shown = []
    current = list_at(autoscaler, "status", "currentMetrics")
    for index, metric in enumerate(list_at(autoscaler, "spec", "metrics")):
        field = "containerResource" if metric.get("type") == "ContainerResource" else "resource"
        source = metric.get(field) or {}
        target = source.get("target") or {}
        now = (current[index].get(field) or {}).get("current") or {} if index < len(current) else {}
        if target.get("averageUtilization") is not None:
            is_now = now.get("averageUtilization")
            text = "<unknown>" if is_now is None else f"{is_now}%"
            shown.append(f"{source.get('name')}: {text}/{target['averageUtilization']}%")
        else:
            wanted = target.get("averageValue", "<auto>")
            shown.append(f"{source.get('name')}: {now.get('averageValue', '<unknown>')}/{wanted}")
    return ", ".join(shown) or NONE


PRINTERS: Mapping[str, Printer] = {
    "ControllerRevision": Printer("Name, Controller, Revision, Age", _controller_revision_cells),
    "CronJob": Printer(
        "Name, Schedule, Timezone, ?Suspend, #Active, Last Schedule, Age, *Containers, "
        "*Images, *Selector",
        _cron_job_cells,
    ),
    "DaemonSet": Printer(
        "Name, #Desired, #Current, #Ready, #Up-to-date, #Available, Node Selector, Age, "
        "*Containers, *Images, *Selector",
        _daemon_set_cells,
    ),
    "Deployment": Printer(
        "Name, Ready, Up-to-date, Available, Age, *Containers, *Images, *Selector",
        _deployment_cells,
    ),
    "HorizontalPodAutoscaler": Printer(
        "Name, Reference, Targets, MinPods, #MaxPods, #Replicas, Age", _autoscaler_cells
    ),
    "Job": Printer(
        "Name, Status, Completions, Duration, Age, *Containers, *Images, *Selector",
        _job_cells,
    ),
    "PodDisruptionBudget": Printer(
        "Name, Min Available, Max Unavailable, #Allowed Disruptions, Age",
        _disruption_budget_cells,
    ),
    "PodTemplate": Printer("Name, Containers, Images, Pod Labels", _pod_template_cells),
    "ReplicaSet": Printer(
        "Name, #Desired, #Current, #Ready, Age, *Containers, *Images, *Selector",
        _replica_set_cells,
    ),
    "ReplicationController": Printer(
        "Name, #Desired, #Current, #Ready, Age, *Containers, *Images, *Selector",
        _replication_controller_cells,
    ),
    "Scale": Printer("Name, #Desired, #Available, Age", _scale_cells),
    "StatefulSet": Printer("Name, Ready, Age, *Containers, *Images", _stateful_set_cells),
}
