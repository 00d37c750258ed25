"""`podium why` asks a running scheduler."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from podium.cli.main import run
from podium.past.decisions.decision_log import DecisionLog
from podium.serving.access.client_certificates import ServerTls
from podium.serving.access.delegated_access import TOKEN_REVIEWS, DelegatedAccess
from podium.serving.access.serving_certificate import serving_certificate
from podium.serving.endpoints.health import Health
from podium.serving.endpoints.http_server import application
from serving.serving import a_log, served


@pytest.fixture
def health() -> Health:
    return Health()


def test_why_shows_a_decision_as_explain_does(
    health: Health, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(application(health, log=a_log())) as url:
        assert run(["why", "small", "--scheduler", url]) == 0
        placed = capsys.readouterr().out
        assert run(["why", "default/big", f"--scheduler={url}", "--exit-code"]) == 1
        stuck = capsys.readouterr().out
        assert run(["why", "default/big", f"--scheduler={url}", "-o", "json", "--exit-code"]) == 1
        data = json.loads(capsys.readouterr().out)

    assert "default/small goes to n2" in placed
    assert "What puts n2 ahead of n1" in placed
    assert "default/big fits nowhere" in stuck
    assert ["NodeResourcesFit", "Insufficient", "cpu", "2"] in [
        line.split() for line in stuck.splitlines()
    ]
    attempts = stuck.partition("Attempts")[2]
    assert "attempts 1 to 2 (2 times): 0/2 nodes are available: 2 Insufficient cpu." in attempts
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
        assert run(["why", "gated", "--scheduler", url, "--exit-code"]) == 1
        gated = capsys.readouterr().out
        assert run(["why", "big", "--scheduler", url, "--exit-code"]) == 1
        stuck = capsys.readouterr().out
        assert run(["why", "big", "--scheduler", url, "-o", "json", "--exit-code"]) == 1
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
    assert "'a/b/c' names nothing" in said("a/b/c")
    with served(application(health, log=DecisionLog())) as url:
        assert said("ns/p", "--scheduler", url) == (
            f"podium: {url} knows of no decision about pod ns/p; "
            "it may be another scheduler's, not tried yet, or too long ago\n"
        )
    with served(application(health)) as url:
        assert "answered with code 404, not with decisions" in said("p", "--scheduler", url)


@pytest.mark.slow
def test_why_asks_a_secure_scheduler(
    health: Health, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Reviews:
        async def create(self, path: str, obj: Any) -> Any:
            if path == TOKEN_REVIEWS:
                known = obj["spec"]["token"] == "good"  # noqa: S105
                return {"status": {"authenticated": known, "user": {"username": "ann"}}}
            return {"status": {"allowed": obj["spec"]["user"] == "ann"}}

    token = tmp_path / "token"
    token.write_text("good\n")
    app = DelegatedAccess(application(health, log=a_log()), Reviews(), time.monotonic)
    with serving_certificate("", "") as made:
        tls = ServerTls(made.certificate, made.key)
        with served(app, tls=tls.context) as plain:
            url = plain.replace("http:", "https:")
            asked = ["why", "small", "--scheduler", url]
            authority = ["--certificate-authority", str(made.certificate)]
            assert run([*asked, *authority, "--token", "good"]) == 0
            assert "default/small goes to n2" in capsys.readouterr().out
            assert run([*asked, "--insecure-skip-tls-verify", "--token-file", str(token)]) == 0
            capsys.readouterr()
            assert run([*asked, *authority]) == 2
            refused = capsys.readouterr().err
            assert run([*asked, *authority, "--token", "bad"]) == 2
            unknown = capsys.readouterr().err
            assert run([*asked, "--token", "good"]) == 2
            untrusted = capsys.readouterr().err
            assert run(["why", "small", "--scheduler", plain]) == 2
            closed = capsys.readouterr().err

    assert 'refuses: User "system:anonymous" cannot get path' in refused
    assert "give --token-file" in refused
    assert "the token is not accepted" in unknown
    assert untrusted == (
        f"podium: {url}: its certificate is not trusted: self-signed certificate; "
        "give --certificate-authority with the one that signed it\n"
    )
    assert closed == (
        f"podium: {plain} ends the connection without an answer; "
        "https:// is what a secure port expects\n"
    )


def test_why_sends_no_token_over_plain_http(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["why", "p", "--scheduler", "http://scheduler.example.com", "--token", "t"]) == 2
    assert "a token is not sent to http://scheduler.example.com" in capsys.readouterr().err


def test_a_server_is_an_api_server_here_too(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert run(["why", "p", "--server", f"http://127.0.0.1:{port}"]) == 2
    assert f"http://127.0.0.1:{port}: connection refused" in capsys.readouterr().err
