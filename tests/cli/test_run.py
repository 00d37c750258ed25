"""What `podium run` refuses before it asks any cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.cli.main import run
from podium.past.decisions.decision_log import DecisionFile
from podium.past.format.frames import SegmentWriter

SERVER = ("--server", "http://127.0.0.1:9", "--leader-elect=false")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--listen", "0.0.0.0:10251"), "everybody who reaches it could read all decisions"),
        (("--bind-address", "192.0.2.1"), "everybody who reaches it could read all decisions"),
        (("--pages", "--pages-may-change-rules"), "everybody who reaches the pages could change"),
    ],
)
def test_strangers_are_not_served_unless_that_is_wanted(
    flags: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", *SERVER, *flags]) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert "--allow-plain-http" in told

    # What is wrong next is told then.
    assert run(["run", *SERVER, *flags, "--allow-plain-http", "--profile", "v1.0"]) == 2
    told = capsys.readouterr().err
    assert sentence not in told
    assert "v1.0" in told


@pytest.mark.parametrize("name", ["a b", "ł", "a\r\nX-Header: b"])
def test_a_name_that_no_request_can_have_is_refused(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the API server is asked: none listens there."""
    server = "http://127.0.0.1:9/token/secret"

    assert run(["run", "--server", server, "--policy-configmap", name]) == 2
    told = capsys.readouterr().err
    assert "is no path of a request" in told
    assert "secret" not in told


@pytest.mark.parametrize("flag", ["--leader-elect-lease-duration", "--record-age"])
def test_durations_are_the_same_in_every_flag(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for text, sentence in (("soon", 'invalid duration "soon"'), ("0s", "is not more than 0")):
        assert run(["run", *SERVER, flag, text]) == 2
        assert sentence in capsys.readouterr().err


def test_what_tells_of_a_cluster_is_for_its_owner_alone(tmp_path: Path) -> None:
    log = tmp_path / "decisions.jsonl"
    log.write_text("")
    log.chmod(0o644)
    written = DecisionFile(str(log), print)
    written.close()
    SegmentWriter(tmp_path / "frames", {}).close()

    assert log.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "frames").stat().st_mode & 0o777 == 0o600
