"""`podium why` asks a running scheduler."""

from __future__ import annotations

import json
import socket

import pytest

from daemon.serving import a_log, served
from podium.cli.main import run
from podium.daemon.decisions.decision_log import DecisionLog
from podium.daemon.health import Health
from podium.daemon.http_server import application


@pytest.fixture
def health() -> Health:
    return Health()


def test_why_shows_a_decision_as_explain_does(
    health: Health, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(application(health, log=a_log())) as url:
        assert run(["why", "small", "--scheduler", url]) == 0
        placed = capsys.readouterr().out
        assert run(["why", "default/big", f"--scheduler={url}"]) == 1
        stuck = capsys.readouterr().out
        assert run(["why", "default/big", f"--scheduler={url}", "-o", "json"]) == 1
        data = json.loads(capsys.readouterr().out)

    assert "default/small goes to n2" in placed
    assert "What puts n2 ahead of n1" in placed
    assert "default/big fits nowhere" in stuck
    assert ["NodeResourcesFit", "Insufficient", "cpu", "2"] in [
        line.split() for line in stuck.splitlines()
    ]
    attempts = stuck.partition("Attempts")[2]
    assert attempts.count("unschedulable") == 2
    assert data["kind"] == "DecisionList"


WAITING = {
    "queue": "gated",
    "since": "2026-03-01T10:00:00.000Z",
    "attempts": 0,
    "gatedBy": "SchedulingGates",
    "waitsFor": [
        {"plugin": "SchedulingGates", "events": ["Pod UpdatePodSchedulingGatesEliminated"]}
    ],
}


def test_why_says_what_would_wake_a_pod(health: Health, capsys: pytest.CaptureFixture[str]) -> None:
    def waiting(key: str) -> dict[str, object] | None:
        return WAITING if key in {"default/gated", "default/big"} else None

    with served(application(health, log=a_log(), waiting=waiting)) as url:
        assert run(["why", "gated", "--scheduler", url]) == 1
        gated = capsys.readouterr().out
        assert run(["why", "big", "--scheduler", url]) == 1
        stuck = capsys.readouterr().out
        assert run(["why", "big", "--scheduler", url, "-o", "json"]) == 1
        data = json.loads(capsys.readouterr().out)
        assert run(["why", "small", "--scheduler", url]) == 0
        placed = capsys.readouterr().out

    assert "default/gated was not tried yet" in gated
    assert "SchedulingGates holds it back." in gated
    assert "SchedulingGates waits for: Pod UpdatePodSchedulingGatesEliminated." in stuck
    assert data["waiting"] == WAITING
    assert "What would wake it" not in placed


def test_why_says_what_is_wrong_in_a_sentence(
    health: Health, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    def said(*arguments: str) -> str:
        assert run(["why", *arguments]) == 2
        return capsys.readouterr().err

    assert said("default/p", "--scheduler", f"127.0.0.1:{port}") == (
        f"podium: nothing answers at http://127.0.0.1:{port}: connection refused; "
        "name the address that `podium run` listens on with --scheduler\n"
    )
    assert "--scheduler: 'ftp://x' is no address" in said("p", "--scheduler", "ftp://x")
    assert "'a/b/c' is no pod" in said("a/b/c")
    with served(application(health, log=DecisionLog())) as url:
        assert said("ns/p", "--scheduler", url) == (
            f"podium: {url} knows of no decision about pod ns/p; "
            "it may be another scheduler's, not tried yet, or too long ago\n"
        )
    with served(application(health)) as url:
        assert "answered with code 404, not with decisions" in said("p", "--scheduler", url)
