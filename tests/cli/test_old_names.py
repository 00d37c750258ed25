"""Names of earlier versions work for one release, with a note that tells the new one."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.conftest import Files, Podium
from manifests import FIVE, pod
from podium.cli.old_names import by_new_name

OLD = {
    ("record", "h", "--for", "10m"): ["history", "record", "h", "--for", "10m"],
    ("replay", "h"): ["history", "replay", "h"],
    ("judge", "h"): ["history", "judge", "h"],
    ("verify", "x.jsonl"): ["history", "verify", "x.jsonl"],
    ("survive", "f"): ["plan", "--lose-each", "zone", "f"],
    ("learn",): ["help", "course"],
    ("learn", "-o", "json"): ["help", "course", "-o", "json"],
    ("learn", "queue"): ["lab", "--chapter", "queue"],
}
STAYS = {
    ("why", "p", "--scheduler", "x"): ["explain", "--decided", "p", "--scheduler", "x"],
    ("policy", "check", "f"): ["config", "check", "--profile", "v1.13", "f"],
    ("policy", "list"): ["config", "list", "--profile", "v1.13"],
    ("policy", "--help"): ["config", "--help"],
}


@pytest.mark.parametrize(("old", "new"), OLD.items())
def test_an_old_command_has_a_note(
    old: tuple[str, ...], new: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert by_new_name(list(old)) == new
    assert f"note: `podium {old[0]}` is called `podium {new[0]} " in capsys.readouterr().err


@pytest.mark.parametrize(("old", "new"), STAYS.items())
def test_an_alias_stays_without_a_note(
    old: tuple[str, ...], new: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert by_new_name(list(old)) == new
    assert capsys.readouterr().err == ""


def test_other_words_are_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert by_new_name(["shedule", "x"]) == ["shedule", "x"]
    assert capsys.readouterr().err == ""


def test_the_old_command_runs(podium: Podium, write: Files) -> None:
    file = write([*FIVE, pod("a", nodeName="n1")])

    old = podium("survive", file, "--domain", "node", "-o", "json")

    assert old.json == podium("plan", file, "--lose-each", "node", "-o", "json").json
    assert "`podium survive` is called `podium plan --lose-each zone` now" in old.err
    assert "--domain is called --lose-each now" in old.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("explain", "a", "FILE", "-v"), "-v is called --timings now"),
        (("plan", "FILE", "--drain", "n1", "--limit", "60"), "--limit takes a duration now: 60s"),
        (("version", "-o", "text"), "-o text is called -o table now"),
        (("judge", "-v", "--help"), "-v is called --all now"),
    ],
)
def test_an_old_flag_has_a_note(
    podium: Podium, write: Files, arguments: tuple[str, ...], told: str
) -> None:
    file = write([*FIVE, pod("a")])

    result = podium(*(file if each == "FILE" else each for each in arguments))

    assert result.code == 0
    assert told in result.err


def test_the_cluster_need_not_be_named(
    podium: Podium, write: Files, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))

    asked = podium("schedule", "--cluster")
    both = podium("schedule", "--cluster", write(FIVE))

    note = "podium: note: without FILES the cluster is read; --cluster is not needed"
    assert asked.err.splitlines()[0] == note
    assert f"{tmp_path / 'none'}: no such file" in asked.err
    assert (both.code, both.err.splitlines()[-1]) == (
        2,
        (
            "podium: give FILES, or --cluster to read a live cluster, not both; "
            "try podium schedule --help"
        ),
    )
