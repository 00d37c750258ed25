"""The parity report: the differences between recordings and their replay."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Protocol

from podium.render.columns import TextTable, styled
from podium.render.decision.as_json import API_VERSION
from podium.render.plain import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from podium.render.columns import Line


class RecordingDifference(Protocol):
    """One field of a recording that the replay gave another value."""

    @property
    def scenario(self) -> str:
        """The name of the scenario."""

    @property
    def step(self) -> str:
        """The pod and attempt; empty for the configuration."""

    @property
    def field(self) -> str:
        """The field of the recording."""

    @property
    def expected(self) -> Any:
        """The recorded value; None if the field is absent."""

    @property
    def got(self) -> Any:
        """The value of the replay; None if the field is absent."""


@dataclass(slots=True)
class FileReport:
    """The numbers of one file."""

    file: str
    scenarios: int = 0
    steps: int = 0
    differences: int = 0


@dataclass(slots=True)
class ParityReport:
    """The numbers of all files, and the first differences."""

    files: list[FileReport] = field(default_factory=list)
    #: The first differences, each with its file and line.
    first: list[tuple[str, RecordingDifference]] = field(default_factory=list)
    #: The generations that were replayed.
    profiles: list[str] = field(default_factory=list)

    def total(self) -> FileReport:
        """The sums over all files."""
        return _sum("total", self.files)


def as_json(report: ParityReport) -> dict[str, Any]:
    """The report as plain data."""
    total = report.total()
    return {
        "apiVersion": API_VERSION,
        "kind": "ParityReport",
        "profiles": report.profiles,
        "scenarios": total.scenarios,
        "steps": total.steps,
        "differences": total.differences,
        "files": [
            {
                "file": each.file,
                "scenarios": each.scenarios,
                "steps": each.steps,
                "differences": each.differences,
            }
            for each in report.files
        ],
        "first": [
            {
                "where": where,
                "scenario": found.scenario,
                "step": found.step,
                "field": found.field,
                "expected": found.expected,
                "got": found.got,
            }
            for where, found in report.first
        ],
    }


def parity_tables(report: ParityReport) -> Iterator[Line]:
    """The report as tables for a terminal."""
    recorded = ", ".join(report.profiles) or "nothing"
    yield styled(f"recordings of {recorded}, replayed", "bold")
    yield styled()
    numbers = ("SCENARIOS", "STEPS", "DIFFERENCES")
    table = TextTable("FILE", *numbers, right=numbers)
    total = report.total()
    rows = list(_rows(report.files))
    for each in [*rows, *([total] if len(rows) > 1 else [])]:
        style = "red" if each.differences else ""
        cells = (each.file, each.scenarios, each.steps, each.differences)
        table.add(*cells, style=style)
    yield from table.lines()
    yield styled()
    if not total.differences:
        yield styled("no differences", "bold green")
        return
    shown = len(report.first)
    which = "" if shown == total.differences else f", the first {shown} in full"
    yield styled(f"{counted(total.differences, 'difference')}{which}", "bold red")
    for where, difference in report.first:
        yield from _difference(where, difference)


def _rows(files: Sequence[FileReport]) -> Iterator[FileReport]:
    """One row per file, or per folder if there are several; files with differences stand alone."""
    folders = {folder: list(found) for folder, found in groupby(files, _folder)}
    for folder, found in folders.items():
        agreeing = [each for each in found if not each.differences]
        if len(folders) == 1 or len(found) == 1:
            yield from found
            continue
        if agreeing:
            yield _sum(f"{folder}: {counted(len(agreeing), 'file')}", agreeing)
        yield from (each for each in found if each.differences)


def _folder(report: FileReport) -> str:
    return str(PurePath(report.file).parent)


def _sum(name: str, files: Sequence[FileReport]) -> FileReport:
    return FileReport(
        name,
        sum(file.scenarios for file in files),
        sum(file.steps for file in files),
        sum(file.differences for file in files),
    )


def _difference(where: str, each: RecordingDifference) -> Iterator[Line]:
    place = ": ".join(filter(None, (each.scenario, each.step, each.field)))
    yield styled()
    yield styled(place, "bold")
    yield styled(f"  in        {where}", "dim")
    yield styled(f"  expected  {_value(each.expected)}")
    yield styled(f"  got       {_value(each.got)}")


def _value(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value, ensure_ascii=False)
