"""The outcomes of a sweep: kept on disk as they come, and written as tables in the end."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from podium.errors import InputError
from podium_research.sweeps.cells import CellOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from podium_research.sweeps.cells import Cell

#: Files in the folder of results.
CELLS, TABLE, PARQUET, SUMMARY, PAGE = (
    "cells.jsonl",
    "results.csv",
    "results.parquet",
    "summary.csv",
    "charts.html",
)
KEYS = ("workload", "configuration", "seed")
SUMMARY_COLUMNS = ("workload", "configuration", "figure", "runs", "mean", "sd", "min", "max")


class Spread(NamedTuple):
    """One figure over the seeds of a workload and a configuration."""

    workload: str
    configuration: str
    figure: str
    runs: int
    mean: float
    #: The sample standard deviation; 0 for a single run.
    sd: float
    min: float
    max: float


class SweepFolder:
    """The folder of a sweep's results; finished cells are kept and not run again."""

    def __init__(self, folder: Path, *, fresh: bool = False) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if fresh:
                (folder / CELLS).unlink(missing_ok=True)
            self._file = (folder / CELLS).open("a+b")
        except OSError as error:
            raise _unwritable(folder, error) from None
        self._kept = {each.digest: each for each in self._read()}

    def _read(self) -> list[CellOutcome]:
        """The outcomes written before; a line that was cut off is dropped from the file."""
        self._file.seek(0)
        found, end = [], 0
        for line in self._file:
            if not line.endswith(b"\n"):
                break
            try:
                found.append(msgspec.json.decode(line, type=CellOutcome))
            except msgspec.DecodeError:
                break
            end += len(line)
        self._file.truncate(end)
        self._file.seek(0, os.SEEK_END)
        return found

    def known(self, cells: Iterable[Cell]) -> list[CellOutcome]:
        """The outcomes of those of the cells that are finished."""
        found = (self._kept.get(cell.digest) for cell in cells)
        return [each for each in found if each is not None]

    def keep(self, outcome: CellOutcome) -> None:
        """Write an outcome; one with an error is not kept, so that its cell runs again."""
        if outcome.error:
            return
        self._kept[outcome.digest] = outcome
        self._file.write(msgspec.json.encode(outcome) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def write(self, name: str, content: str | bytes) -> Path:
        """Write one of the files whole, or leave the one that is there."""
        path, new = self.folder / name, self.folder / f".{name}.new"
        try:
            new.write_bytes(content.encode() if isinstance(content, str) else content)
            new.replace(path)
        except OSError as error:
            raise _unwritable(path, error) from None
        return path


def _unwritable(path: Path, error: OSError) -> InputError:
    reason = (error.strerror or str(error)).lower()
    return InputError(f"cannot be written: {reason}", where=str(path))


def in_order(cells: Sequence[Cell], outcomes: Iterable[CellOutcome]) -> list[CellOutcome]:
    """The outcomes with figures, in the order of the cells: the same for every engine."""
    found = {each.digest: each for each in outcomes if not each.error}
    return [found[cell.digest] for cell in cells if cell.digest in found]


def figures_of(outcomes: Iterable[CellOutcome]) -> list[str]:
    """The names of all figures, in the order in which they first occur."""
    return list(dict.fromkeys(name for each in outcomes for name in each.figures))


def table(outcomes: Sequence[CellOutcome]) -> list[dict[str, Any]]:
    """One row per run: workload, configuration, seed and figures."""
    names = figures_of(outcomes)
    return [
        {
            "workload": each.workload,
            "configuration": each.configuration,
            "seed": each.seed,
            **{name: each.figures.get(name) for name in names},
        }
        for each in outcomes
    ]


def summary(outcomes: Sequence[CellOutcome]) -> list[Spread]:
    """The mean and the spread of each figure over the seeds."""
    groups: dict[tuple[str, str], list[CellOutcome]] = {}
    for each in outcomes:
        groups.setdefault((each.workload, each.configuration), []).append(each)
    found = []
    for (workload, configuration), runs in groups.items():
        for name in figures_of(runs):
            numbers = [each.figures[name] for each in runs if name in each.figures]
            sd = stdev(numbers) if len(numbers) > 1 else 0.0
            found.append(
                Spread(
                    workload,
                    configuration,
                    name,
                    len(numbers),
                    round(fmean(numbers), 6),
                    round(sd, 6),
                    min(numbers),
                    max(numbers),
                )
            )
    return found


def to_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows as CSV with a line of column names."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def to_parquet(rows: Sequence[dict[str, Any]]) -> bytes:
    """Rows as a Parquet file."""
    try:
        import pyarrow as pa  # type: ignore[import-untyped]  # noqa: PLC0415  an extra
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise InputError(
            "pyarrow is not installed", hint="install podium-research[parquet]"
        ) from None
    made = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(list(rows)), made)
    return made.getvalue()
