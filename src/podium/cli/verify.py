"""`podium verify`: replay recorded decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from podium.cli.console import print_parts, tracked, write_data
from podium.cli.flags import FlagsCommand, files_argument, output_flag
from podium.errors import ConfigError, InputError
from podium.library.recordings import recordings_in, scenarios_in
from podium.library.replay import replay
from podium.render.recording.parity import FileReport, ParityReport, as_json, parity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.library.recordings import Scenario
    from podium.library.replay import Replay


@click.command(cls=FlagsCommand)
@files_argument
@click.option(
    "-n",
    "--show",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    metavar="N",
    help="How many differences to show in full.",
)
@output_flag("table", "json", "yaml")
def verify(*, files: tuple[str, ...], show: int, output: str) -> int:
    """Replay the recorded decisions in FILES (.jsonl, .jsonl.gz, folders) and compare.

    Every step is compared whole. A field that was not recorded is not compared, except where its
    absence is the answer.

    Exit code: 0 no difference, 1 differences, 2 a recording cannot be read.
    """
    report = replay_all(recordings_in(files), show)
    if output == "table":
        print_parts(parity(report))
    else:
        write_data(as_json(report), output)
    return int(report.total().differences > 0)


def replay_all(files: Sequence[str], show: int) -> ParityReport:
    """Replay file by file; the first unreadable scenario ends it."""
    report = ParityReport()
    loaded = [(file, list(scenarios_in(file))) for file in files]
    report.files = [FileReport(file) for file, _ in loaded]
    work = [
        (entry, where, scenario)
        for entry, (_, scenarios) in zip(report.files, loaded, strict=True)
        for where, scenario in scenarios
    ]
    for entry, where, scenario in tracked(work, len(work), "replaying"):
        done = _replayed(where, scenario)
        entry.scenarios += 1
        entry.steps += done.steps
        entry.differences += len(done.differences)
        room = show - len(report.first)
        report.first += [(where, each) for each in done.differences[:room]] if room > 0 else []
    report.profiles = sorted({scenario.generation for _, _, scenario in work})
    return report


def _replayed(where: str, scenario: Scenario) -> Replay:
    try:
        return replay(scenario)
    except InputError as error:
        raise error.located(where=where) from None
    except ConfigError as error:
        raise error.located(where) from None
