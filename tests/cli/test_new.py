"""`podium new`: the files that it writes, as text and as data."""

from __future__ import annotations

from pathlib import Path

from cli.conftest import Podium


def test_the_files_are_named(podium: Podium, tmp_path: Path) -> None:
    result = podium("new", "predicate", "TeamNodes", "--folder", str(tmp_path))

    assert result.code == 0
    assert result.lines == [f"{tmp_path}/team_nodes.py", f"{tmp_path}/test_team_nodes.py"]


def test_the_files_are_named_as_data(podium: Podium, tmp_path: Path) -> None:
    result = podium("new", "priority", "Emptiest", "--folder", str(tmp_path), "-o", "json")

    assert result.json == {
        "rule": f"{tmp_path}/emptiest.py",
        "test": f"{tmp_path}/test_emptiest.py",
    }
