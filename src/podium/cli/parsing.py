"""How command lines are read: switches as Kubernetes programs take them, old names of flags."""

from __future__ import annotations

import keyword
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from podium.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from click.shell_completion import CompletionItem

#: What Go's strconv.ParseBool takes, which is what flags of Kubernetes programs take.
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})
#: The package with the commands for research, which the scheduler does not need.
RESEARCH: Final = "podium_research"


def truth(text: str) -> bool | None:
    """Whether the text means yes or no; None if neither."""
    return True if text in _TRUE else False if text in _FALSE else None


class FlagsCommand(click.Command):
    """A command whose switches can be written `--switch`, `--switch=true` or `--switch=false`.

    *renamed* maps old names of flags to new ones: an old name works, and a note names the new one.
    *bare* maps flags with a choice of values to the value of the flag alone.
    """

    def __init__(
        self,
        *arguments: Any,
        renamed: dict[str, str] | None = None,
        bare: dict[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(*arguments, **more)
        self.renamed = renamed or {}
        self.bare = bare or {}

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
        given = self._with_values([self._by_new_name(argument) for argument in args[:end]])
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

    def _with_values(self, args: list[str]) -> list[str]:
        """The arguments, in which a flag of *bare* has a value, also where it stands alone."""
        choices = {
            name: option.type.choices
            for option in self.params
            if isinstance(option, click.Option) and isinstance(option.type, click.Choice)
            for name in option.opts
        }
        found = []
        for argument, following in zip(args, [*args[1:], ""], strict=False):
            alone = argument in self.bare and following not in choices.get(argument, ())
            found.append(f"{argument}={self.bare[argument]}" if alone else argument)
        return found


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


class LazyGroup(HelpfulGroup):
    """A group of commands in sections; the module of a command is imported when it is used."""

    def __init__(
        self,
        *arguments: Any,
        sections: Mapping[str, Mapping[str, LazyCommand]],
        hidden: Mapping[str, LazyCommand] | None = None,
        **more: Any,
    ) -> None:
        """*sections*: title -> name -> command. *hidden* ones work and are not listed."""
        super().__init__(*arguments, **more)
        self._sections = sections
        self._listed = {name: each for group in sections.values() for name, each in group.items()}
        self._all = {**self._listed, **(hidden or {})}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The names of the commands, in the order in which help lists them."""
        return list(self._listed)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the command of this name."""
        if cmd_name not in self._all:
            return None
        from importlib import import_module  # noqa: PLC0415  not needed for help

        attribute = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        try:
            module = import_module(self._all[cmd_name].module)
        except ModuleNotFoundError as error:
            if error.name != RESEARCH:
                raise
            raise ConfigError(
                f"{cmd_name} is for research, which is a package of its own",
                hint="pip install podium-research",
            ) from None
        command: click.Command = getattr(module, attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown name is an error that suggests the closest one."""
        if args and args[0] not in self._all and not args[0].startswith("-"):
            from podium.profiles.similar_names import did_you_mean  # noqa: PLC0415  rarely needed

            hint = did_you_mean(args[0], self._all) or f"known: {', '.join(self._listed)}"
            raise click.UsageError(f"there is no command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands in their sections, without importing them."""
        width = max(map(len, self._listed))
        for title, commands in self._sections.items():
            with formatter.section(title):
                rows = [(name.ljust(width), each.text) for name, each in commands.items()]
                formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands that begin like this, without importing them."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415  for shells only

        found = [
            CompletionItem(name, help=each.text)
            for name, each in self._listed.items()
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]


class LazyCommand(NamedTuple):
    """Where a command is, and what it does in a line.

    Its module has a click command of the name of the command, with a _ after a word of Python.
    """

    module: str
    text: str
