"""`podium judge`: the placements in a history, judged in hindsight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from podium.cli.console import note, tracked, write, write_data
from podium.cli.flags import output_flag, profile_flags
from podium.cli.parsing import FlagsCommand
from podium.library.profile_source import ProfileSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.history.reading import Entry, History


@click.command(cls=FlagsCommand)
@click.argument("path", metavar="HISTORY", type=click.Path())
@output_flag("table", "json", "yaml")
@profile_flags
def judge(*, path: str, output: str, flags: ProfileSource) -> int:
    """Judge where a scheduler placed the pods of a HISTORY that `podium record` wrote.

    Every placement is held against what Podium decides in its place, in the order of the scheduling
    queue, with all pods that were decided before on the nodes where they really went. A placement
    agrees if it is on the same node or on one that is as good, perhaps in another order of
    decisions that is possible. Podium decides by the profile of the history unless one is named.

    Exit code: 0 all placements agree, 1 some are different, 2 the history cannot be read.
    """
    from podium.daemon.hindsight.judging import judge_history  # noqa: PLC0415  not for the help
    from podium.daemon.shadow import Shadow  # noqa: PLC0415
    from podium.history.reading import History  # noqa: PLC0415
    from podium.host.history_rules import recorded_rules  # noqa: PLC0415

    history = History(path)
    shadow = Shadow(None)
    try:
        judge_history(_shown(history), recorded_rules(flags), shadow)
    except KeyboardInterrupt:
        note("interrupted: these are the placements that were judged so far")
    found = shadow.agreement()
    if output == "table":
        write(shadow.table())
    else:
        write_data(found.as_json(), output)
    return int(found.ratio < 1)


def _shown(history: History) -> Iterator[Entry]:
    """The entries, with a progress bar, and a note for each segment that is torn."""
    from podium.history.reading import Torn  # noqa: PLC0415

    total = sum(1 for _ in history.records())
    for entry in tracked(history.entries(), total, "judging"):
        if isinstance(entry, Torn):
            note(f"{entry.path.name} ends after {entry.read} bytes: not written to its end")
        else:
            yield entry
