"""`podium verify`: replay recorded decisions."""

from __future__ import annotations

import click

from podium.cli.console import print_parts, tracked, write_data
from podium.cli.flags import files_argument, output_flag
from podium.cli.parsing import FlagsCommand
from podium.library.recordings import verifying
from podium.render.recording.parity import as_json, parity_tables


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
    report = verifying.verify(
        files, show=show, progress=lambda work: tracked(work, len(work), "replaying")
    )
    if output == "table":
        print_parts(parity_tables(report))
    else:
        write_data(as_json(report), output)
    return int(report.total().differences > 0)
