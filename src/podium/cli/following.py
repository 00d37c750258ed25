"""Commands that follow histories from other people: bad content ends them with one sentence."""

from __future__ import annotations

import os
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from podium.errors import InputError, PodiumError

if TYPE_CHECKING:
    from collections.abc import Callable

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
