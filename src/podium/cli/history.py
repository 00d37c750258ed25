"""`podium history`: the group of its commands, and what they share."""

from __future__ import annotations

import os
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from podium.cli.parsing import LazyCommand, LazyGroup
from podium.errors import InputError, PodiumError

if TYPE_CHECKING:
    from collections.abc import Callable


def new_folder(folder: str) -> Path:
    """The path of a folder that is not there yet, or is empty; otherwise an error."""
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError("is there already", where=folder, hint="name a folder that is not")
    return target


_Command = TypeVar("_Command", bound="Callable[..., Any]")


def follows_history(command: _Command) -> _Command:
    """A command with a HISTORY: one that cannot be followed is bad input, not an internal error."""

    @wraps(command)
    def run(**given: Any) -> Any:
        from podium.cli.main import TRACEBACK_VARIABLE  # noqa: PLC0415  it loads the commands

        try:
            return command(**given)
        except (PodiumError, click.ClickException, click.exceptions.Exit, OSError):
            raise
        except Exception as error:
            if os.environ.get(TRACEBACK_VARIABLE):
                raise
            what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise InputError(
                f"cannot be followed ({what}): its records contradict each other",
                where=str(given["path"]),
                hint=f"if podium wrote it, set {TRACEBACK_VARIABLE}=1 to see where, and report it",
            ) from None

    return run  # type: ignore[return-value]


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
