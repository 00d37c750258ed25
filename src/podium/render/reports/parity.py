"""The parity report: the differences between recordings and their replay."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import msgspec

from podium.library.decision_json import API_VERSION
from podium.past.recordings.parity_report import summed
from podium.render.columns import TextTable, styled
from podium.render.plain import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from podium.past.recordings.comparison import Difference
    from podium.past.recordings.parity_report import FileReport, ParityReport
    from podium.render.columns import Line


def parity_data(report: ParityReport) -> dict[str, Any]:
    """The report as plain data."""
    total = report.total()
    return {
        "apiVersion": API_VERSION,
        "kind": "ParityReport",
        "profiles": report.profiles,
        "scenarios": total.scenarios,
        "steps": total.steps,
        "differences": total.differences,
        "files": msgspec.to_builtins(report.files),
        "first": [{"where": where, **msgspec.to_builtins(found)} for where, found in report.first],
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
            yield summed(f"{folder}: {counted(len(agreeing), 'file')}", agreeing)
        yield from (each for each in found if each.differences)


def _folder(report: FileReport) -> str:
    return str(PurePath(report.file).parent)


def _difference(where: str, each: Difference) -> Iterator[Line]:
    place = ": ".join(filter(None, (each.scenario, each.step, each.field)))
    yield styled()
    yield styled(place, "bold")
    yield styled(f"  in        {where}", "dim")
    yield styled(f"  expected  {_value(each.expected)}")
    yield styled(f"  got       {_value(each.got)}")


def _value(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value, ensure_ascii=False)
