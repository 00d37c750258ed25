"""How command lines are read: switches as Kubernetes programs take them, old names of flags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: What Go's strconv.ParseBool takes, which is what flags of Kubernetes programs take.
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def truth(text: str) -> bool | None:
    """Whether the text means yes or no; None if neither."""
    return True if text in _TRUE else False if text in _FALSE else None


class FlagsCommand(click.Command):
    """A command whose switches can be written `--switch`, `--switch=true` or `--switch=false`.

    *renamed* maps old names of flags to new ones: an old name works, and a note tells the new one.
    """

    def __init__(self, *arguments: Any, renamed: dict[str, str] | None = None, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.renamed = renamed or {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Replace old names and read the switches, then let click do the rest."""
        switches = {
            name: option
            for option in self.params
            if isinstance(option, click.Option) and option.is_bool_flag
            for name in option.opts
            if name.startswith("--")
        }
        end = args.index("--") if "--" in args else len(args)
        given = [self._by_new_name(argument) for argument in args[:end]]
        values, rest = _switches(switches, given)
        on = [name for name, value in values.items() if value]
        left = super().parse_args(ctx, [*on, *rest, *args[end:]])
        for name, value in values.items():
            if not value and (parameter := switches[name].name) is not None:
                # Not the same as a switch that is not mentioned, which has its default.
                ctx.params[parameter] = False
        return left

    def _by_new_name(self, argument: str) -> str:
        name, equals, value = argument.partition("=")
        if name not in self.renamed:
            return argument
        from podium.cli.console import note  # noqa: PLC0415  rarely needed

        note(f"{name} is called {self.renamed[name]} now")
        return f"{self.renamed[name]}{equals}{value}"


def _switches(known: Iterable[str], args: Sequence[str]) -> tuple[dict[str, bool], list[str]]:
    """The value of each switch that is mentioned, the last mention counts; and the other args."""
    known, values, rest = frozenset(known), dict[str, bool](), list[str]()
    for argument in args:
        name, equals, text = argument.partition("=")
        if name not in known:
            rest.append(argument)
            continue
        value = truth(text) if equals else True
        if value is None:
            raise click.UsageError(f"{name}: expected true or false, got {text!r}")
        values[name] = value
    return values, rest


class HelpfulGroup(click.Group):
    """A group of commands that prints its help when it is called without arguments."""

    command_class = FlagsCommand

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take no arguments for `--help`."""
        return super().parse_args(ctx, args or ["--help"])
