"""Cron jobs: their schedules, defaults, validation, table.

A schedule has five fields, with names of months and weekdays, steps, and `@hourly`.

Upstream: pkg/apis/batch, pkg/printers/internalversion, robfig/cron (parser.go, spec.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from podium.lab.api.status import FieldErrors, invalid_value, not_supported, required
from podium.lab.kinds.field_checks import validate_choice
from podium.lab.kinds.kind import (
    NONE,
    UNSET,
    KindStrategy,
    Printer,
    list_at,
    object_at,
    text_at,
    time_since,
)
from podium.lab.kinds.pod import set_template_defaults
from podium.lab.kinds.workload_fields import template_cells_at
from podium.objects.kinds.meta import JsonObject

_MACROS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTH_NAMES: Final = (
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
)  # fmt: skip
_MONTHS: Final = {name: index for index, name in enumerate(_MONTH_NAMES, 1)}
_DAY_NAMES: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DAYS: Final = {name: index for index, name in enumerate(_DAY_NAMES)}
#: A schedule that matches nothing within so many years never matches.
_YEARS: Final = 5


class ScheduleError(ValueError):
    """The text is not a schedule."""


class _Range(NamedTuple):
    """The values of a field, and their names."""

    name: str
    first: int
    last: int
    names: dict[str, int]


_FIELDS: Final = (
    _Range("minute", 0, 59, {}),
    _Range("hour", 0, 23, {}),
    _Range("day of month", 1, 31, {}),
    _Range("month", 1, 12, _MONTHS),
    _Range("day of week", 0, 6, _DAYS),
)


@dataclass(frozen=True, slots=True)
class CronSchedule:
    """The minutes at which a schedule is due."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    #: Whether the day of the month, or the day of the week, is not limited.
    any_day: bool
    any_weekday: bool

    def next_after(self, seconds: float, zone: tzinfo = UTC) -> float | None:
        """The first time after *seconds* since 1970 that is due; `None` if there is none."""
        at = datetime.fromtimestamp(int(seconds), zone).replace(second=0, microsecond=0)
        at += timedelta(minutes=1)
        end = at.year + _YEARS
        while at.year <= end:
            if at.month not in self.months:
                at = _month_after(at)
            elif not self._matches_day(at):
                at = (at + timedelta(days=1)).replace(hour=0, minute=0)
            elif at.hour not in self.hours:
                at = (at + timedelta(hours=1)).replace(minute=0)
            elif at.minute not in self.minutes:
                at += timedelta(minutes=1)
            else:
                return at.timestamp()
        return None

    def _matches_day(self, at: datetime) -> bool:
        day, weekday = at.day in self.days, at.isoweekday() % 7 in self.weekdays
        if self.any_day or self.any_weekday:
            return day and weekday
        return day or weekday


def _month_after(at: datetime) -> datetime:
    year, month = (at.year + 1, 1) if at.month == 12 else (at.year, at.month + 1)
    return at.replace(year=year, month=month, day=1, hour=0, minute=0)


@lru_cache(maxsize=1024)
def parse_schedule(text: str) -> CronSchedule:
    """The schedule of a text; ScheduleError if it is none."""
    text = _MACROS.get(text.strip(), text)
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{text}]")
    minutes, hours, days, months, weekdays = (
        _values(field, bounds) for field, bounds in zip(fields, _FIELDS, strict=True)
    )
    anything = [field.split("/")[0] in {"*", "?"} for field in fields]
    return CronSchedule(
        minutes, hours, days, months, weekdays, any_day=anything[2], any_weekday=anything[4]
    )


def _values(field: str, bounds: _Range) -> frozenset[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, _, step_text = part.partition("/")
        step = _number(step_text, bounds) if "/" in part else 1
        if step < 1:
            raise ScheduleError(f"step of range should be a positive number: {part}")
        if span in {"*", "?"}:
            first, last = bounds.first, bounds.last
        else:
            low, dash, high = span.partition("-")
            first = _number(low, bounds)
            last = _number(high, bounds) if dash else (bounds.last if "/" in part else first)
        _check(first, last, bounds, part)
        found.update(range(first, last + 1, step))
    return frozenset(found)


def _check(first: int, last: int, bounds: _Range, part: str) -> None:
    if first < bounds.first:
        raise ScheduleError(f"beginning of range ({first}) below minimum ({bounds.first}): {part}")
    if last > bounds.last:
        raise ScheduleError(f"end of range ({last}) above maximum ({bounds.last}): {part}")
    if first > last:
        raise ScheduleError(f"beginning of range ({first}) beyond end of range ({last}): {part}")


def _number(text: str, bounds: _Range) -> int:
    named = bounds.names.get(text.lower())
    if named is not None:
        return named
    if not text.isdigit():
        raise ScheduleError(f"failed to parse int from {text}")
    return int(text)


def zone_of(name: str | None) -> tzinfo:
    """The time zone of this name, UTC by default; ScheduleError if it is unknown."""
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ScheduleError(f"unknown time zone {name}") from None


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
    yield from validate_choice(spec["concurrencyPolicy"], "spec.concurrencyPolicy", _CONCURRENCY)
    policy = spec["jobTemplate"]["spec"]["template"]["spec"].get("restartPolicy")
    if policy not in {"OnFailure", "Never"}:
        path = "spec.jobTemplate.spec.template.spec.restartPolicy"
        yield not_supported(path, policy, ["OnFailure", "Never"])


def _last_schedule(cron_job: JsonObject, now: float) -> str:
    last = object_at(cron_job, "status").get("lastScheduleTime")
    return time_since(last, now) if last else NONE


KINDS: Mapping[str, KindStrategy] = {
    "CronJob": KindStrategy(
        set_defaults=set_cron_job_defaults,
        has_generation=True,
        validate=validate_cron_job,
        table=Printer(
            "Name, Schedule=spec.schedule, Timezone=spec.timeZone|<none>, ?Suspend, #Active, "
            "Last Schedule, Age, *Containers, *Images, *Selector",
            {
                "Suspend": lambda item, _: text_at(item, "spec", "suspend", default=UNSET),
                "Active": lambda item, _: len(list_at(item, "status", "active")),
                "Last Schedule": _last_schedule,
                **template_cells_at("spec", "jobTemplate", "spec"),
            },
        ),
    ),
}
