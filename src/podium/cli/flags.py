"""The flags that all deciding commands share, and how a command line becomes a profile.

Light on purpose: nothing here is imported that `podium --help` does not need.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from podium.library.profile_source import ProfileSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_Command = TypeVar("_Command", bound="Callable[..., Any]")

#: What Go's strconv.ParseBool takes, which is what flags of Kubernetes programs take.
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})
#: Fields of `ProfileSource` that no flag sets.
_NO_FLAGS: Final = frozenset({"environment", "texts", "notify"})


def truth(text: str) -> bool | None:
    """Whether the text means yes or no; None if neither."""
    return True if text in _TRUE else False if text in _FALSE else None


class FlagsCommand(click.Command):
    """A command whose switches can be written `--switch`, `--switch=true` or `--switch=false`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Settle the switches, then let click do the rest."""
        names = {
            name
            for option in self.params
            if isinstance(option, click.Option) and option.is_bool_flag
            for name in option.opts
            if name.startswith("--")
        }
        return super().parse_args(ctx, _settled(names, args))


def _settled(names: Iterable[str], args: list[str]) -> list[str]:
    """The arguments with each switch once and first if it is on; the last mention counts."""
    end = args.index("--") if "--" in args else len(args)
    known, switches, rest = frozenset(names), {}, []
    for argument in args[:end]:
        name, equals, text = argument.partition("=")
        if name not in known:
            rest.append(argument)
            continue
        value = truth(text) if equals else True
        if value is None:
            raise click.UsageError(f"{name}: expected true or false, got {text!r}")
        switches[name] = value
    return [name for name, value in switches.items() if value] + rest + args[end:]


if TYPE_CHECKING:
    _DictType = click.ParamType[dict[str, bool]]
else:  # older versions of click have no type there
    _DictType = click.ParamType


class _GatesType(_DictType):
    """`A=true,B=false`, as kube-scheduler takes it."""

    name = "gates"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, bool]:
        """Name -> on or off."""
        gates = {}
        for part in filter(None, (part.strip() for part in str(value).split(","))):
            name, equals, text = part.partition("=")
            on = truth(text.strip())
            if not equals or on is None:
                self.fail(f"{part!r} is not of the form Name=true or Name=false", param, ctx)
            gates[name.strip()] = on
        return gates


def check_exclusive(flags: ProfileSource) -> None:
    """Refuse two ways of naming a profile at once."""
    given = [f"--{name}" for name in flags.named()]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} exclude each other; give one of them")


gates_flag = click.option(
    "--feature-gates",
    type=_GatesType(),
    multiple=True,
    metavar="A=true,B=false",
    help="Change feature gates of the scheduler.",
)
_OPTIONS: Final = (
    click.option("--policy", metavar="FILE", help="Decide by this Policy file (v1.13)."),
    click.option("--provider", metavar="NAME", help="Decide by this algorithm provider (v1.13)."),
    click.option("--config", metavar="FILE", help="Decide by this KubeSchedulerConfiguration."),
    click.option(
        "--profile",
        metavar="NAME",
        help="Decide by the defaults of a generation: v1.13 or v1.36.  [default: v1.36]",
    ),
    gates_flag,
    click.option(
        "--percentage-of-nodes-to-score",
        type=int,
        metavar="N",
        help="Stop looking once N percent of the nodes are found to fit (0: the scheduler's own "
        "default).  [default: all nodes are scored]",
    ),
    click.option(
        "--hard-pod-affinity-symmetric-weight",
        type=int,
        metavar="N",
        help="What required pod affinity is worth in the other direction, 1 to 100.  [default: 1]",
    ),
    click.option("--no-preemption", is_flag=True, help="Never evict pods to make room."),
    click.option(
        "--ties",
        metavar="RULE",
        help="Who wins among equals: first, round-robin or random:SEED.  [default: first; "
        "round-robin in v1.13]",
    ),
    click.option(
        "--scheduler-name",
        metavar="NAME",
        help="Only pods of this scheduler are pending.  [default: default-scheduler, or all that "
        "--config has profiles for]",
    ),
    click.option(
        "--rules",
        multiple=True,
        metavar="FILE.py",
        help="Load predicates and priorities of your own from a file, a module or an entry point.",
    ),
    click.option(
        "--rule-seconds",
        type=click.FloatRange(min=0, min_open=True),
        metavar="S",
        help="How long one of them may take for one pod.  [default: 1]",
    ),
    click.option(
        "--rule-overruns",
        type=click.IntRange(min=0),
        metavar="N",
        help="After how many overruns it is set aside; 0 is never.  [default: 10]",
    ),
)


def profile_flags(command: _Command) -> _Command:
    """Give a command the common flags; it gets them as one `flags` argument."""
    names = frozenset(ProfileSource.__dataclass_fields__) - _NO_FLAGS

    @wraps(command)
    def gathered(**given: Any) -> Any:
        from podium.cli.console import note  # noqa: PLC0415  not needed for help

        flags = ProfileSource(**{name: given.pop(name) for name in names}, notify=note)
        check_exclusive(flags)
        return command(flags=flags, **given)

    for option in reversed(_OPTIONS):
        gathered = option(gathered)
    return gathered  # type: ignore[return-value]


def output_flag(*formats: str) -> Callable[[_Command], _Command]:
    """`-o`, with the first format as the default."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="What to print.",
    )


def files_argument(command: _Command) -> _Command:
    """`FILES…`, at least one."""
    return click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILES…")(
        command
    )
