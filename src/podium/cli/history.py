"""`podium history`: decisions that were made, recorded and followed again."""

from __future__ import annotations

from typing import Final

import click

from podium.cli.parsing import LazyCommand, LazyGroup

_SECTIONS: Final = {
    "Commands": {
        "record": LazyCommand("podium.cli.record", "Record a cluster as it changes."),
        "replay": LazyCommand("podium.cli.replay", "Make recorded decisions again."),
        "judge": LazyCommand("podium.cli.judge", "Judge the placements of another scheduler."),
        "verify": LazyCommand("podium.cli.verify", "Compare recordings of kube-scheduler."),
        "import": LazyCommand("podium_research.cli.trace_import", "Write a trace as a history."),
        "anonymize": LazyCommand("podium.cli.anonymize", "Copy a history under other names."),
    }
}


@click.command(cls=LazyGroup, sections=_SECTIONS)
def history() -> None:
    """Record what a cluster does, make its decisions again, and judge them.

    A history is a folder that `podium history record`, `podium run --record` or `podium lab
    --record` writes.
    """
