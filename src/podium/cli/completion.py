"""`podium completion`: the script with which a shell completes commands and flags."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from podium.cli.console import write
from podium.cli.parsing import FlagsCommand

SHELLS = ("bash", "zsh", "fish")


@click.command(cls=FlagsCommand)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a SHELL.

    \b
    bash   eval "$(podium completion bash)"
    zsh    eval "$(podium completion zsh)"
    fish   podium completion fish | source
    """  # noqa: D301  click reads the escape
    kind = get_completion_class(shell)
    assert kind is not None  # one of the three that click has
    write(kind(ctx.find_root().command, {}, "podium", "_PODIUM_COMPLETE").source())
