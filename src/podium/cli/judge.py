"""`podium history judge`: the placements in a history, judged in hindsight."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from podium.cli.console import note, tracked, write, write_data
from podium.cli.flags import output_flag, profile_flags
from podium.cli.history import follows_history
from podium.cli.parsing import FlagsCommand
from podium.errors import InputError
from podium.library.profile_source import ProfileSource
from podium.releases import KUBE_SCHEDULER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.past.format.reading import Entry, History, Torn


@click.command(cls=FlagsCommand, renamed={"-v": "--all"})
@click.argument("path", metavar="HISTORY", type=click.Path())
@output_flag("table", "json", "yaml")
@click.option("--all", "verbose", is_flag=True, help="List ties and other orders, too.")
@profile_flags
@follows_history
def judge(*, path: str, output: str, verbose: bool, flags: ProfileSource) -> int:
    """Judge where a scheduler placed the pods of a HISTORY that `podium history record` wrote.

    Every placement is compared with what Podium decides in its place, in the order of the
    scheduling queue. All pods that were decided before stand on the nodes where they really went.
    A placement agrees if it is on the same node or on one that is as good, perhaps in another order
    of decisions that is possible. Podium decides by the profile of the history unless one is named.

    Exit code: 0 all placements agree, 1 some are different, 2 the history cannot be read.
    """
    from podium.host.history_rules import recorded_rules  # noqa: PLC0415
    from podium.past.format.reading import History  # noqa: PLC0415
    from podium.past.judge.agreement import Agreement  # noqa: PLC0415  not for the help
    from podium.past.judge.judge import judge_history  # noqa: PLC0415

    history = History(path)
    flags = replace(flags, usual_ties=KUBE_SCHEDULER, usual_percentage=0)
    found = Agreement(None)
    damaged: list[Torn] = []
    try:
        judge_history(_shown(history, damaged), recorded_rules(flags), found)
    except KeyboardInterrupt:
        note("interrupted: these are the placements that were judged so far")
    if output == "table":
        write(found.table(verbose=verbose))
    else:
        write_data(found.as_json(verbose=verbose), output)
    return InputError.exit_code if damaged else int(found.ratio < 1)


def _shown(history: History, damaged: list[Torn]) -> Iterator[Entry]:
    """The entries, with a progress bar, and a note for each segment that is torn."""
    from podium.past.format.reading import Torn as TornSegment  # noqa: PLC0415

    total = sum(1 for _ in history.records())
    for entry in tracked(history.entries(), total, "judging"):
        if isinstance(entry, TornSegment):
            note(str(entry))
            if entry.damaged:
                damaged.append(entry)
        else:
            yield entry
