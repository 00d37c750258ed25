"""Whole files of recordings, replayed and compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from podium.errors import ConfigError, InputError
from podium.past.recordings.replay import replay
from podium.past.recordings.scenarios import recordings_in, scenarios_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from podium.past.recordings.comparison import Difference
    from podium.past.recordings.replay import Replay
    from podium.past.recordings.scenarios import Scenario

    Work = tuple["FileReport", str, Scenario]
    #: Passes the scenarios on, and may show how many of them there are.
    Progress = Callable[[Sequence[Work]], Iterable[Work]]


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
    first: list[tuple[str, Difference]] = field(default_factory=list)
    #: The generations that were replayed.
    profiles: list[str] = field(default_factory=list)
    #: Files in folders without a scenario.
    empty: list[str] = field(default_factory=list)

    def total(self) -> FileReport:
        """The sums over all files."""
        return summed("total", self.files)


def summed(name: str, files: Sequence[FileReport]) -> FileReport:
    """The sums over some files, under a name."""
    return FileReport(
        name,
        sum(file.scenarios for file in files),
        sum(file.steps for file in files),
        sum(file.differences for file in files),
    )


def _unwatched(work: Sequence[Work]) -> Iterable[Work]:
    return work


def verify(
    paths: Sequence[str], *, show: int = 10, progress: Progress = _unwatched
) -> ParityReport:
    """Replay all recordings in *paths* (files, folders) and count the differences.

    The first *show* differences are kept whole. A scenario that cannot be read raises an error,
    and so does a file of *paths* that has none. Files without one in a folder are left out.
    """
    report = ParityReport()
    read = [(file, list(scenarios_in(file))) for file in recordings_in(paths)]
    loaded = [(file, found) for file, found in read if found]
    report.empty = [file for file, found in read if not found]
    named = [path for path in paths if path in report.empty]
    if named or not loaded:
        where = (named or paths)[0]
        raise InputError("has no scenario in it, so that nothing is verified", where=where)
    report.files = [FileReport(file) for file, _ in loaded]
    work = [
        (entry, where, scenario)
        for entry, (_, scenarios) in zip(report.files, loaded, strict=True)
        for where, scenario in scenarios
    ]
    for entry, where, scenario in progress(work):
        done = _replayed(where, scenario)
        entry.scenarios += 1
        entry.steps += done.steps
        entry.differences += len(done.differences)
        room = max(show - len(report.first), 0)
        report.first += [(where, each) for each in done.differences[:room]]
    report.profiles = sorted({scenario.generation.name for _, _, scenario in work})
    return report


def _replayed(where: str, scenario: Scenario) -> Replay:
    try:
        return replay(scenario)
    except InputError as error:
        raise error.located(where=where) from None
    except ConfigError as error:
        raise error.located(where) from None
