"""Rows of what makes pods: deployments, sets and jobs."""

from __future__ import annotations

from typing import Any

from podium.lab.api.status import JsonDict
from podium.lab.tables.text import (
    NONE,
    UNSET,
    age,
    condition,
    containers,
    human,
    items,
    labels,
    metadata,
    number,
    part,
    seconds_of,
    selector,
    since,
    text,
)

_JOB_ENDS = (("Complete", "Complete"), ("Failed", "Failed"))
_JOB_STATES = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def _template(object_: JsonDict) -> tuple[str, str]:
    return containers(part(object_, "spec", "template"))


def _selected(object_: JsonDict) -> str:
    return selector(part(object_, "spec", "selector"))


def deployment_cells(deployment: JsonDict, now: float) -> list[Any]:
    """A deployment."""
    ready, desired = number(deployment, "status", "readyReplicas"), _replicas(deployment)
    return [
        text(deployment, "metadata", "name"),
        f"{ready}/{desired}",
        number(deployment, "status", "updatedReplicas"),
        number(deployment, "status", "availableReplicas"),
        age(deployment, now),
        *_template(deployment),
        _selected(deployment),
    ]


def _replicas(object_: JsonDict) -> int:
    return number(object_, "spec", "replicas")


def replica_set_cells(replica_set: JsonDict, now: float) -> list[Any]:
    """A replica set."""
    return [*_replicated(replica_set, now), _selected(replica_set) or NONE]


def replication_controller_cells(controller: JsonDict, now: float) -> list[Any]:
    """A replication controller."""
    return [*_replicated(controller, now), labels(part(controller, "spec", "selector"))]


def _replicated(object_: JsonDict, now: float) -> list[Any]:
    return [
        text(object_, "metadata", "name"),
        _replicas(object_),
        number(object_, "status", "replicas"),
        number(object_, "status", "readyReplicas"),
        age(object_, now),
        *_template(object_),
    ]


def stateful_set_cells(stateful_set: JsonDict, now: float) -> list[Any]:
    """A stateful set."""
    ready = number(stateful_set, "status", "readyReplicas")
    return [
        text(stateful_set, "metadata", "name"),
        f"{ready}/{_replicas(stateful_set)}",
        age(stateful_set, now),
        *_template(stateful_set),
    ]


def daemon_set_cells(daemon_set: JsonDict, now: float) -> list[Any]:
    """A daemon set."""
    status = part(daemon_set, "status")
    return [
        text(daemon_set, "metadata", "name"),
        number(status, "desiredNumberScheduled"),
        number(status, "currentNumberScheduled"),
        number(status, "numberReady"),
        number(status, "updatedNumberScheduled"),
        number(status, "numberAvailable"),
        labels(part(daemon_set, "spec", "template", "spec", "nodeSelector")),
        age(daemon_set, now),
        *_template(daemon_set),
        _selected(daemon_set) or NONE,
    ]


def job_cells(job: JsonDict, now: float) -> list[Any]:
    """A job."""
    spec, succeeded = part(job, "spec"), number(job, "status", "succeeded")
    if spec.get("completions") is not None:
        done = f"{succeeded}/{spec['completions']}"
    else:
        parallelism = number(spec, "parallelism")
        done = f"{succeeded}/1" + (f" of {parallelism}" if parallelism > 1 else "")
    started = seconds_of(part(job, "status").get("startTime"))
    ended = seconds_of(part(job, "status").get("completionTime"))
    took = "" if started is None else human((now if ended is None else ended) - started)
    return [
        text(job, "metadata", "name"),
        _job_state(job),
        done,
        took,
        age(job, now),
        *_template(job),
        _selected(job) or NONE,
    ]


def _job_state(job: JsonDict) -> str:
    for kind, word in _JOB_ENDS:
        if condition(job, kind) == "True":
            return word
    if metadata(job).get("deletionTimestamp"):
        return "Terminating"
    return next((kind for kind in _JOB_STATES if condition(job, kind) == "True"), "Running")


def cron_job_cells(cron_job: JsonDict, now: float) -> list[Any]:
    """A cron job."""
    spec, status = part(cron_job, "spec"), part(cron_job, "status")
    suspended = UNSET if spec.get("suspend") is None else str(bool(spec["suspend"]))
    last = status.get("lastScheduleTime")
    inner = part(spec, "jobTemplate", "spec")
    return [
        text(cron_job, "metadata", "name"),
        text(spec, "schedule"),
        text(spec, "timeZone", default=NONE),
        suspended,
        len(items(status, "active")),
        since(last, now) if last else NONE,
        age(cron_job, now),
        *containers(part(inner, "template")),
        selector(part(inner, "selector")) or NONE,
    ]


def controller_revision_cells(revision: JsonDict, now: float) -> list[Any]:
    """A revision of a set."""
    owner = next(
        (each for each in items(revision, "metadata", "ownerReferences") if each.get("controller")),
        None,
    )
    name = NONE
    if owner is not None:
        group = str(owner.get("apiVersion", "")).rpartition("/")[0]
        kind = str(owner.get("kind", "")) + (f".{group}" if group else "")
        name = f"{kind.lower()}/{owner.get('name', '')}"
    return [
        text(revision, "metadata", "name"),
        name,
        number(revision, "revision"),
        age(revision, now),
    ]


def pod_template_cells(template: JsonDict, _now: float) -> list[Any]:
    """A pod template."""
    inner = part(template, "template")
    return [
        text(template, "metadata", "name"),
        *containers(inner),
        labels(part(inner, "metadata", "labels")),
    ]


def disruption_budget_cells(budget: JsonDict, now: float) -> list[Any]:
    """A disruption budget."""
    return [
        text(budget, "metadata", "name"),
        text(budget, "spec", "minAvailable", default="N/A"),
        text(budget, "spec", "maxUnavailable", default="N/A"),
        number(budget, "status", "disruptionsAllowed"),
        age(budget, now),
    ]


def scale_cells(scale: JsonDict, now: float) -> list[Any]:
    """A scale."""
    name = text(scale, "metadata", "name")
    return [name, _replicas(scale), number(scale, "status", "replicas"), age(scale, now)]
