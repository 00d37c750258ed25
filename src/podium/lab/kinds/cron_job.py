"""Cron jobs: defaults, validation, table.

Upstream: pkg/apis/batch, pkg/printers/internalversion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.lab.api.field_errors import FieldErrors, invalid_value, not_supported, required
from podium.lab.kinds.kind import KindStrategy
from podium.lab.kinds.pod import set_template_defaults
from podium.lab.kinds.printer import (
    NONE,
    UNSET,
    Printer,
    age,
    container_cells,
    list_at,
    name_of,
    object_at,
    selector_text,
    text_at,
    time_since,
)
from podium.lab.schema.cron_schedule import ScheduleError, parse_schedule, zone_of
from podium.objects.kinds.meta import JsonObject

_CONCURRENCY = ("Allow", "Forbid", "Replace")


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


def validate_cron_job(item: JsonObject) -> FieldErrors:
    """The errors in a cron job: its schedule and time zone, and the restart policy of its pods."""
    spec = item["spec"]
    if not spec.get("schedule"):
        yield required("spec.schedule")
    else:
        try:
            parse_schedule(spec["schedule"])
        except ScheduleError as error:
            yield invalid_value("spec.schedule", spec["schedule"], str(error))
    try:
        zone_of(spec.get("timeZone"))
    except ScheduleError as error:
        yield invalid_value("spec.timeZone", spec.get("timeZone"), str(error))
    if spec["concurrencyPolicy"] not in _CONCURRENCY:
        yield not_supported("spec.concurrencyPolicy", spec["concurrencyPolicy"], _CONCURRENCY)
    policy = spec["jobTemplate"]["spec"]["template"]["spec"].get("restartPolicy")
    if policy not in {"OnFailure", "Never"}:
        path = "spec.jobTemplate.spec.template.spec.restartPolicy"
        yield not_supported(path, policy, ["OnFailure", "Never"])


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


KINDS: Mapping[str, KindStrategy] = {
    "CronJob": KindStrategy(
        set_defaults=set_cron_job_defaults,
        has_generation=True,
        validate=validate_cron_job,
        table=Printer(
            "Name, Schedule, Timezone, ?Suspend, #Active, Last Schedule, Age, *Containers, "
            "*Images, *Selector",
            _cron_job_cells,
        ),
    ),
}
