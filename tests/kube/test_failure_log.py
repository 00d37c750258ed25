"""Failures are told once."""

from __future__ import annotations

from podium.kube.failure_log import FailureLog


def test_the_same_failure_is_told_again_only_after_a_success() -> None:
    told: list[str] = []
    failures = FailureLog(told.append)
    for _ in range(5):
        failures.failed("watch", "connection refused")
        failures.failed("list", "connection refused")
    assert told == ["connection refused", "connection refused"]

    failures.failed("watch", "forbidden")
    failures.failed("watch", "connection refused")
    assert told[2:] == ["forbidden"]

    failures.succeeded("watch")
    failures.failed("watch", "connection refused")
    failures.failed("list", "connection refused")
    assert told[3:] == ["connection refused"]


def test_what_is_remembered_is_bounded() -> None:
    told: list[str] = []
    failures = FailureLog(told.append, most_subjects=3)
    for number in range(10):
        failures.failed(number, "no")
        for word in range(100):
            failures.failed(number, str(word))
    assert len(failures) == 3
    assert max(map(len, failures._told.values())) <= 16
    failures.failed(9, "99")
    assert told[-1] == "99"
    assert told.count("99") == 10
