"""`podium history anonymize`: a copy of a history under other names."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from podium.cli.console import note, write, write_data
from podium.cli.flags import output_flag, profile_flags
from podium.cli.history import follows_history, new_folder
from podium.cli.parsing import FlagsCommand
from podium.library.profile_source import ProfileSource
from podium.render.plain import counted

if TYPE_CHECKING:
    from podium.past.format.reading import History


@click.command(cls=FlagsCommand)
@click.argument("path", metavar="HISTORY", type=click.Path())
@click.argument("folder", metavar="COPY", type=click.Path())
@output_flag("table", "json", "yaml")
@profile_flags
@follows_history
def anonymize(*, path: str, folder: str, output: str, flags: ProfileSource) -> int:
    """Write a copy of a HISTORY without anything that tells whose cluster it comes from.

    Names are replaced as `podium snapshot --anonymize` replaces them: consistently, and in the same
    order. Every decision is made again in the original and in the copy, so that the copy has
    digests of its own. COPY is a folder that does not exist yet, or is empty. Rules of your own are
    named again with --rules.

    Exit code: 0 written, 1 written and a decision follows in the original only, 2 bad input.
    """
    from podium.past.format.reading import History  # noqa: PLC0415  not needed for the help

    return _write_copy(History(path), folder, output, flags)


def _write_copy(original: History, folder: str, output: str, flags: ProfileSource) -> int:
    """Write the anonymized copy of a history, and print what is in it; the exit code."""
    from podium.host.history_rules import recorded_rules  # noqa: PLC0415
    from podium.past.replay.anonymized_copy import write_anonymized  # noqa: PLC0415

    found = write_anonymized(original, new_folder(folder), recorded_rules(flags))
    if output == "table":
        write(
            f"{folder}: {counted(found.segments, 'segment')}, "
            f"{counted(found.changes, 'change')}, {counted(found.decisions, 'decision')}, "
            f"{found.equal} of which follow again\n"
        )
    else:
        about = {"apiVersion": "podium/v1", "kind": "AnonymizedHistory", "history": folder}
        write_data({**about, **dataclasses.asdict(found)}, output)
    if found.lost:
        note(f"{counted(found.lost, 'decision')} of {folder} follow in the original only")
    return int(found.lost > 0)
