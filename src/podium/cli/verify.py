"""`podium history verify`: replay recorded decisions."""

from __future__ import annotations

import click

from podium.cli.console import note, tracked, write_answer
from podium.cli.flags import files_argument, most_flag, output_flag
from podium.cli.parsing import FlagsCommand
from podium.past.recordings import parity_report
from podium.render.reports.parity import parity_data, parity_tables


@click.command(cls=FlagsCommand, renamed={"-n": "--most", "--show": "--most"})
@files_argument
@most_flag(10, "How many differences are shown in full.", least=0)
@output_flag("table", "json", "yaml")
def verify(*, files: tuple[str, ...], most: int, output: str) -> int:
    """Replay the recorded decisions in FILES (.jsonl, .jsonl.gz, folders) and compare.

    Every step is compared whole. A field that was not recorded is not compared, except where its
    absence is the answer. A field that is not known is refused, since nothing would compare it.
    A file without a scenario is refused, in a folder it is left out with a note.

    Exit code: 0 no difference, 1 differences, 2 a recording cannot be read.
    """
    report = parity_report.verify(
        files, show=most, progress=lambda work: tracked(work, len(work), "replaying")
    )
    for file in report.empty:
        note(f"{file} has no scenario in it")
    write_answer(output, lambda: parity_tables(report), lambda: parity_data(report))
    return int(report.total().differences > 0)
