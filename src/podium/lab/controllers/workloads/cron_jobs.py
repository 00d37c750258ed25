"""The cron job controller: creates jobs when they are due, and removes the oldest finished ones.

Upstream: pkg/controller/cronjob (cronjob_controllerv2.go, utils.go).
"""

from __future__ import annotations

from datetime import tzinfo
from typing import ClassVar, Final, NamedTuple

from podium.lab.api.encoding import format_time, parse_time
from podium.lab.api.status import StatusError
from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import (
    Controller,
    changed,
    changed_key,
    controller_ref,
)
from podium.lab.controllers.framework.object_fields import (
    Key,
    condition,
    controller_of,
    is_terminating,
    key_of,
    uid_of,
)
from podium.lab.kinds.cron_job import CronSchedule, ScheduleError, parse_schedule, zone_of
from podium.objects.kinds.meta import JsonObject

_SCHEDULED_AT: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
#: More missed times than these are an error of the clock or of the schedule.
_MOST_MISSED: Final = 100
_CONFLICT: Final = 409


class _Due(NamedTuple):
    """The last time that was due and has no job yet, if any, and how many there were."""

    at: float | None
    missed: int


class CronJobController(Controller[Key]):
    """Runs cron jobs. Its keys are those of cron jobs."""

    name: ClassVar = "cronjob-controller"

    def __init__(self, cluster: Cluster) -> None:
        """Watch cron jobs and jobs."""
        super().__init__(cluster)
        self.watch("CronJob", lambda old, new: self.enqueue(changed_key(old, new)))
        self.watch("Job", self._on_job)

    def _on_job(self, old: JsonObject | None, new: JsonObject | None) -> None:
        job = changed(old, new)
        owner = controller_of(job)
        if owner is not None and owner["kind"] == "CronJob":
            self.enqueue((job["metadata"]["namespace"], owner["name"]))

    def sync(self, key: Key) -> None:
        """Update the status of a cron job, create the job that is due, come back for the next."""
        cron = self.cluster.get("CronJob", *key)
        if cron is None or is_terminating(cron):
            return
        jobs = self._jobs_of(cron)
        self._remove_old(cron, jobs)
        status = self._status(cron, jobs)
        spec = cron["spec"]
        try:
            schedule, zone = parse_schedule(spec["schedule"]), zone_of(spec.get("timeZone"))
        except ScheduleError as error:
            self.warn(cron, "UnparseableSchedule", f"unparseable schedule: {error}")
            self.cluster.update_status(cron, status)
            return
        if not spec.get("suspend"):
            self._run_due(cron, status, schedule, zone)
            now = self.cluster.now()
            following = schedule.next_after(now, zone)
            if following is not None:
                self.enqueue(key, after=following - now, clock=True)
        self.cluster.update_status(cron, status)

    def _jobs_of(self, cron: JsonObject) -> list[JsonObject]:
        uid = uid_of(cron)
        found = self.cluster.list_in_namespace("Job", cron["metadata"]["namespace"])
        return [each for each in found if (controller_of(each) or {}).get("uid") == uid]

    def _status(self, cron: JsonObject, jobs: list[JsonObject]) -> JsonObject:
        status = dict(cron.get("status") or {})
        active = {each["uid"] for each in status.get("active") or ()}
        running = [each for each in jobs if not _finished(each)]
        for job in jobs:
            kind = _finished(job)
            if kind and uid_of(job) in active:
                text = f"Saw completed job: {job['metadata']['name']}, condition: {kind}"
                self.record(cron, "SawCompletedJob", text)
            ended = (job.get("status") or {}).get("completionTime")
            if kind == "Complete" and ended and ended > status.get("lastSuccessfulTime", ""):
                status["lastSuccessfulTime"] = ended
        status["active"] = [_reference(each) for each in sorted(running, key=key_of)]
        if not status["active"]:
            del status["active"]
        return status

    def _run_due(
        self, cron: JsonObject, status: JsonObject, schedule: CronSchedule, zone: tzinfo
    ) -> None:
        due = self._due(cron, schedule, zone)
        if due.at is None:
            return
        now, spec = self.cluster.now(), cron["spec"]
        if due.missed > _MOST_MISSED:
            text = (
                f"too many missed start times. Set or decrease .spec.startingDeadlineSeconds or "
                f"check clock skew: {due.missed}"
            )
            self.warn(cron, "TooManyMissedTimes", text)
        deadline = spec.get("startingDeadlineSeconds")
        if deadline is not None and now > due.at + deadline:
            self.warn(
                cron, "MissSchedule", f"Missed scheduled time to start a job: {format_time(due.at)}"
            )
            return
        if status.get("active"):
            if spec.get("concurrencyPolicy") == "Forbid":
                text = (
                    "Not starting job because prior execution is running and concurrency policy "
                    "is Forbid"
                )
                self.record(cron, "JobAlreadyActive", text)
                return
            if spec.get("concurrencyPolicy") == "Replace":
                self._delete_active(cron, status)
        self._create(cron, status, due.at)

    def _due(self, cron: JsonObject, schedule: CronSchedule, zone: tzinfo) -> _Due:
        now, status = self.cluster.now(), cron.get("status") or {}
        earliest = parse_time(status.get("lastScheduleTime"))
        if earliest is None:
            earliest = parse_time(cron["metadata"]["creationTimestamp"]) or now
        deadline = cron["spec"].get("startingDeadlineSeconds")
        if deadline is not None:
            earliest = max(earliest, now - deadline)
        found, missed = None, 0
        at = schedule.next_after(earliest, zone)
        while at is not None and at <= now:
            found, missed = at, missed + 1
            if missed > _MOST_MISSED:
                # Far behind: only the last time counts.
                at = max(at, now - 2 * 86400)
            at = schedule.next_after(at, zone)
        return _Due(found, missed)

    def _create(self, cron: JsonObject, status: JsonObject, at: float) -> None:
        template = cron["spec"]["jobTemplate"]
        metadata = template.get("metadata") or {}
        name = f"{cron['metadata']['name']}-{int(at) // 60}"
        job = {
            "metadata": {
                "name": name,
                "namespace": cron["metadata"]["namespace"],
                "labels": dict(metadata.get("labels") or {}),
                "annotations": {
                    **(metadata.get("annotations") or {}),
                    _SCHEDULED_AT: format_time(at),
                },
                "ownerReferences": [controller_ref(cron)],
            },
            "spec": template["spec"],
        }
        try:
            made = self.cluster.create("Job", job)
        except StatusError as error:
            if error.code != _CONFLICT:
                self.warn(cron, "FailedCreate", f"Error creating job: {error.message}")
                raise
            return
        self.record(cron, "SuccessfulCreate", f"Created job {name}")
        status["active"] = [*(status.get("active") or ()), _reference(made)]
        status["lastScheduleTime"] = format_time(at)

    def _delete_active(self, cron: JsonObject, status: JsonObject) -> None:
        for reference in status.pop("active", ()):
            job = self.cluster.get("Job", reference["namespace"], reference["name"])
            if job is not None:
                self.cluster.delete(job)
                self.record(cron, "SuccessfulDelete", f"Deleted job {reference['name']}")

    def _remove_old(self, cron: JsonObject, jobs: list[JsonObject]) -> None:
        """Delete the oldest finished jobs beyond the limits of the history."""
        for kind, field in (
            ("Complete", "successfulJobsHistoryLimit"),
            ("Failed", "failedJobsHistoryLimit"),
        ):
            limit = cron["spec"].get(field)
            ended = [each for each in jobs if _finished(each) == kind and not is_terminating(each)]
            ended.sort(key=_started)
            for job in ended[: max(len(ended) - limit, 0)] if limit is not None else ():
                self.cluster.delete(job)


def _started(job: JsonObject) -> tuple[str, Key]:
    return (job.get("status") or {}).get("startTime", ""), key_of(job)


def _finished(job: JsonObject) -> str:
    """`Complete` or `Failed` if the job has ended."""
    for kind in ("Complete", "Failed"):
        if condition(job, kind).get("status") == "True":
            return kind
    return ""


def _reference(job: JsonObject) -> JsonObject:
    metadata = job["metadata"]
    return {
        "kind": "Job",
        "apiVersion": "batch/v1",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "resourceVersion": metadata.get("resourceVersion", ""),
    }
