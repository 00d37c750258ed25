"""Cron jobs that act, and the schedules they act on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from lab.controllers.managed_cluster import ManagedCluster
from podium.lab.api.status import StatusError
from podium.lab.kinds.cron_job import ScheduleError, parse_schedule, zone_of


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


NEXT = {
    "every minute": ("* * * * *", "2026-03-01 10:00:30", "2026-03-01 10:01"),
    "a step": ("*/15 * * * *", "2026-03-01 10:16", "2026-03-01 10:30"),
    "a step from a start": ("5/20 * * * *", "2026-03-01 10:26", "2026-03-01 10:45"),
    "a list of hours": ("0 6,18 * * *", "2026-03-01 07:00", "2026-03-01 18:00"),
    "names of weekdays": ("30 9 * * MON-FRI", "2026-02-27 10:00", "2026-03-02 09:30"),
    "a name of a month": ("0 0 1 feb *", "2026-03-01 00:00", "2027-02-01 00:00"),
    "the day of the month or of the week": ("0 0 13 * 5", "2026-03-01 00:00", "2026-03-06 00:00"),
    "a leap day": ("0 0 29 2 *", "2026-03-01 00:00", "2028-02-29 00:00"),
    "a macro": ("@weekly", "2026-03-02 00:00", "2026-03-08 00:00"),
}


@pytest.mark.parametrize(("schedule", "after", "due"), NEXT.values(), ids=NEXT)
def test_the_next_time(schedule: str, after: str, due: str) -> None:
    assert parse_schedule(schedule).next_after(at(after)) == at(due)


def test_a_time_zone_moves_the_next_time() -> None:
    found = parse_schedule("0 12 * * *").next_after(
        at("2026-07-01 00:00"), zone_of("Europe/Berlin")
    )
    assert found == at("2026-07-01 10:00")


def test_a_day_that_never_comes_is_never_due() -> None:
    assert parse_schedule("0 0 31 2 *").next_after(at("2026-03-01 00:00")) is None


@pytest.mark.parametrize(
    "text", ["", "* * * *", "60 * * * *", "*/0 * * * *", "5-1 * * * *", "x * * * *"]
)
def test_what_is_no_schedule(text: str) -> None:
    with pytest.raises(ScheduleError):
        parse_schedule(text)


def cron(schedule: str = "*/5 * * * *", **spec: Any) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "containers": [{"name": "app", "image": "job:1"}]}
    template = {"metadata": {"labels": {"app": "tick"}}, "spec": {"template": {"spec": pod}}}
    return {
        "metadata": {"name": "tick", "namespace": "default"},
        "spec": {"schedule": schedule, "jobTemplate": template, **spec},
    }


def jobs(lab: ManagedCluster) -> list[str]:
    return [each["metadata"]["name"] for each in lab.registry.list("Job")]


def test_jobs_are_created_when_they_are_due(lab: ManagedCluster) -> None:
    lab.create("CronJob", cron())
    lab.settle(5)
    assert jobs(lab) == []
    lab.settle(600)
    made = lab.registry.list("Job")
    assert len(made) == 2
    assert made[0]["metadata"]["labels"]["app"] == "tick"
    assert made[0]["metadata"]["ownerReferences"][0]["kind"] == "CronJob"
    number = int(made[1]["metadata"]["name"].removeprefix("tick-"))
    status = lab.status("CronJob", "tick")
    assert datetime.fromisoformat(status["lastScheduleTime"]).timestamp() == number * 60
    assert status["lastSuccessfulTime"]
    assert "active" not in status


def test_the_history_keeps_the_last_jobs(lab: ManagedCluster) -> None:
    lab.create("CronJob", cron("* * * * *", successfulJobsHistoryLimit=2))
    lab.settle(600)
    assert len(jobs(lab)) == 2


def long_running(policy: str) -> dict[str, Any]:
    made = cron("* * * * *", concurrencyPolicy=policy)
    template = made["spec"]["jobTemplate"]["spec"]["template"]
    template["metadata"] = {"annotations": {"lab.podium/run-seconds": "9999"}}
    return made


@pytest.mark.parametrize("policy", ["Allow", "Forbid", "Replace"])
def test_what_happens_while_a_job_is_still_running(lab: ManagedCluster, policy: str) -> None:
    lab.create("CronJob", long_running(policy))
    lab.settle(60 * 3 + 30)
    active = lab.status("CronJob", "tick")["active"]
    assert sorted(each["name"] for each in active) == jobs(lab)
    assert len(active) >= 3 if policy == "Allow" else len(active) == 1
    reasons = {each["reason"] for each in lab.registry.list("Event")}
    assert ("JobAlreadyActive" in reasons) == (policy == "Forbid")
    assert ("SuccessfulDelete" in reasons) == (policy == "Replace")


def test_a_suspended_cron_job_waits(lab: ManagedCluster) -> None:
    lab.create("CronJob", cron("* * * * *", suspend=True))
    lab.settle(300)
    assert jobs(lab) == []
    lab.edit("CronJob", "tick", suspend=False)
    lab.settle(90)
    assert len(jobs(lab)) >= 1


def test_a_schedule_that_is_none_is_refused(lab: ManagedCluster) -> None:
    with pytest.raises(StatusError, match=r"spec.schedule: Invalid value: \"often\""):
        lab.create("CronJob", cron("often"))
