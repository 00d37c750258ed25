"""The page for readers of kube-scheduler's source: its commands work, and its modules exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.conftest import Podium

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "coming-from-kube-scheduler.md"


def rows() -> list[list[str]]:
    """The cells of the tables with a command in the last column."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    return [row for row in cells if len(row) == 3 and row[2].startswith("`podium ")]


COMMANDS = sorted({row[2].strip("`") for row in rows()})


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_prints_something(
    command: str, podium: Podium, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)

    result = podium(*command.split()[1:])

    assert result.code in {0, 1}, result.err
    assert result.out


def test_modules_of_the_page_exist() -> None:
    missing = [
        word
        for row in rows()
        for word in re.findall(
            r"`((?:cli|host|daemon|engine|cluster|profiles|extender)/[^`]+)`", row[1]
        )
        if not (ROOT / "src" / "podium" / word).exists()
    ]

    assert not missing


def test_every_row_names_a_module_or_a_page() -> None:
    assert len(rows()) > 35
    assert all("/" in row[1] or ".md" in row[1] for row in rows())


@pytest.mark.parametrize(
    "name",
    [
        "findNodesThatFit",
        "podFitsOnNode",
        "PrioritizeNodes",
        "selectHost",
        "NormalizeReduce",
        "topologyPairs",
        "predicateMetadata",
        "equivalence cache",
    ],
)
def test_the_names_that_articles_use_are_there(name: str) -> None:
    assert any(name in row[0] for row in rows())
