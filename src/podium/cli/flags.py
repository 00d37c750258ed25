"""Flags that several commands share, each with one name and one meaning.

Nothing here is imported that `podium version` does not need.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

from podium.cli.parsing import truth

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from podium.history.writing import Limits
    from podium.library.profile_source import ProfileSource

_Command = TypeVar("_Command", bound="Callable[..., Any]")

#: Fields of `ProfileSource` that no flag sets.
_NO_FLAGS: Final = frozenset({"environment", "texts", "notify", "rule_arguments"})
_PORTS: Final = range(1 << 16)


# Types of values ------------------------------------------------------------------------------

if TYPE_CHECKING:
    _GatesBase = click.ParamType[dict[str, bool]]
    _ListenBase = click.ParamType["ListenAddress"]
else:  # older versions of click have no type there
    _GatesBase = _ListenBase = click.ParamType


class _GatesType(_GatesBase):
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


class ListenAddress(NamedTuple):
    """Where a server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class _ListenType(_ListenBase):
    """`HOST:PORT`; an IPv6 address is in brackets."""

    name = "address"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> ListenAddress:
        """Host and port."""
        if isinstance(value, ListenAddress):
            return value
        host, colon, port = str(value).rpartition(":")
        bracketed = host.startswith("[") and host.endswith("]")
        known = port.isascii() and port.isdigit() and int(port) in _PORTS
        if not (colon and host and known) or (":" in host and not bracketed):
            self.fail(f"{value!r} is no address; HOST:PORT would be one", param, ctx)
        return ListenAddress(host[1:-1] if bracketed else host, int(port))


# Profiles -------------------------------------------------------------------------------------

gates_flag = click.option(
    "--feature-gates",
    type=_GatesType(),
    multiple=True,
    metavar="A=true,B=false",
    help="Feature gates of the scheduler to change.",
)
_PROFILE_FLAGS: Final = (
    click.option(
        "--policy",
        "--policy-config-file",
        "policy",
        metavar="FILE",
        help="Decide by this Policy file (v1.13), or by one that `podium policy list` names.",
    ),
    click.option(
        "--provider",
        "--algorithm-provider",
        "provider",
        metavar="NAME",
        help="Decide by this algorithm provider (v1.13).",
    ),
    click.option("--config", metavar="FILE", help="Decide by this KubeSchedulerConfiguration."),
    click.option(
        "--profile",
        metavar="NAME",
        help="Decide by the defaults of a generation: v1.13 or v1.36.  "
        "[default: $PODIUM_PROFILE, else v1.36]",
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
        help="Which of the nodes with the best total is taken: first, round-robin or random:SEED.  "
        "[default: first; round-robin in v1.13]",
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
        help="Load your own predicates and priorities from a file, a module or an entry point.",
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
        help="After how many overruns one is no longer asked; 0 is never.  [default: 10]",
    ),
)


def profile_flags(command: _Command) -> _Command:
    """Give a command the flags that choose a profile; it gets them as one `flags` argument."""
    from podium.library.profile_source import ProfileSource  # noqa: PLC0415  not for version

    names = frozenset(ProfileSource.__dataclass_fields__) - _NO_FLAGS

    @wraps(command)
    def gathered(**given: Any) -> Any:
        from podium.cli.console import note  # noqa: PLC0415  not needed for help

        flags = ProfileSource(**{name: given.pop(name) for name in names}, notify=note)
        check_exclusive(flags)
        return command(flags=flags, **given)

    found: _Command = _with_options(gathered, _PROFILE_FLAGS)
    return found


def policy_configmap_flags(command: _Command) -> _Command:
    """`--policy-configmap` and its namespace: a Policy that the cluster keeps."""
    options = (
        click.option(
            "--policy-configmap", metavar="NAME", help="Decide by the Policy in this ConfigMap."
        ),
        click.option(
            "--policy-configmap-namespace",
            metavar="NAME",
            default="kube-system",
            show_default=True,
            help="The namespace of that ConfigMap.",
        ),
    )
    found: _Command = _with_options(command, options)
    return found


def check_exclusive(flags: ProfileSource) -> None:
    """Refuse two ways of naming a profile at once."""
    named = flags.named()
    if flags.profile is not None and len(named) == 2 and flags.agrees():
        return
    given = [f"--{name}" for name in named]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} exclude each other; give one of them")


# Input and output -----------------------------------------------------------------------------


def output_flag(*formats: str) -> Callable[[_Command], _Command]:
    """`-o`, the format of what is printed, with the first one as the default."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="Output format.",
    )


def optional_files_argument(command: _Command) -> _Command:
    """`[FILES…]`; without any, the command reads a cluster."""
    return click.argument("files", nargs=-1, type=click.Path(), metavar="[FILES…]")(command)


def files_argument(command: _Command) -> _Command:
    """`FILES…`, at least one."""
    return click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILES…")(
        command
    )


# Histories ------------------------------------------------------------------------------------


def history_limit_flags(command: _Command) -> _Command:
    """How much of a history is kept; the command gets it as one `limits` argument."""
    options = (
        click.option(
            "--record-bytes",
            default="1Gi",
            show_default=True,
            metavar="SIZE",
            help="Delete the oldest part of a history that becomes longer.",
        ),
        click.option(
            "--record-age",
            metavar="DURATION",
            help="Delete parts of a history that are older, such as 48h.  [default: none]",
        ),
    )

    @wraps(command)
    def gathered(**given: Any) -> Any:
        size, age = given.pop("record_bytes"), given.pop("record_age")
        return command(limits=HistoryLimits(size, age), **given)

    found: _Command = _with_options(gathered, options)
    return found


class HistoryLimits(NamedTuple):
    """The limits of a history as they were given."""

    size: str
    age: str | None

    def made(self) -> Limits:
        """The limits; an error in one sentence if they cannot be read."""
        from podium.history.writing import Limits  # noqa: PLC0415  brings the kinds of objects
        from podium.objects import durations, quantity  # noqa: PLC0415

        try:
            total = quantity.value(self.size)
        except ValueError:
            total = 0
        if total <= 0:
            raise click.UsageError(f"--record-bytes {self.size}: is no size; 500Mi would be one")
        if self.age is None:
            return Limits(total_bytes=total)
        try:
            seconds = durations.parse(self.age) / durations.SECOND
        except ValueError as error:
            raise click.UsageError(f"--record-age: {error}; 48h would be one") from None
        return Limits(total_bytes=total, age_seconds=seconds)


def live_cluster_flags(command: _Command) -> _Command:
    """`--cluster` and the flags that say how to reach it.

    The command gets them as `cluster`, which is None without --cluster.
    """

    @wraps(command)
    def gathered(**given: Any) -> Any:
        reach = {name: given.pop(name) for name in ("kubeconfig", "context", "server")}
        wanted = given.pop("cluster")
        useless = [f"--{name}" for name, value in reach.items() if value and not wanted]
        if useless:
            raise click.UsageError(f"{useless[0]} is for a live cluster; give --cluster, no FILES")
        return command(cluster=reach if wanted else None, **given)

    option = click.option(
        "--cluster", is_flag=True, help="Read the live cluster of the kubeconfig."
    )
    found: _Command = _with_options(cluster_flags()(gathered), (option,))
    return found


def check_cluster_or_files(cluster: Mapping[str, str | None] | None, files: Sequence[str]) -> None:
    """Refuse FILES together with --cluster, and neither of them."""
    if (cluster is not None) == bool(files):
        both = ", not both" if files else ""
        raise click.UsageError(f"give FILES, or --cluster to read a live cluster{both}")


def cluster_or_files(command: _Command) -> _Command:
    """`FILES…`, or `--cluster` with the flags that say how to reach it.

    The command gets `files` and `cluster`; the latter has the flags, or is None without --cluster.
    """

    @wraps(command)
    def checked(**given: Any) -> Any:
        check_cluster_or_files(given["cluster"], given["files"])
        return command(**given)

    argument = click.argument("files", nargs=-1, type=click.Path(), metavar="[FILES…]")
    found: _Command = _with_options(live_cluster_flags(checked), (argument,))
    return found


# Searches -------------------------------------------------------------------------------------


def shape_flag(what: str) -> Callable[[_Command], _Command]:
    """`--shape NODE`, as often as wanted; *what* says what is done with these nodes."""
    return click.option(
        "--shape",
        multiple=True,
        metavar="NODE",
        help=f"{what}: the name of a node, or a file with one.  "
        "[default: the most common shapes of the cluster]",
    )


def most_flag(default: int, what: str, *, least: int = 1) -> Callable[[_Command], _Command]:
    """`--most N`; *what* says of which things there are at most so many."""
    return click.option(
        "--most",
        type=click.IntRange(min=least),
        default=default,
        show_default=True,
        metavar="N",
        help=what,
    )


# Addresses ------------------------------------------------------------------------------------


def cluster_flags(*, master: bool = False) -> Callable[[_Command], _Command]:
    """`--kubeconfig`, `--context` and `--server`; *master*: kube-scheduler's name for the last."""
    names = ("--server", "--master") if master else ("--server",)
    options = (
        click.option("--kubeconfig", metavar="FILE", help="How to reach the cluster."),
        click.option("--context", metavar="NAME", help="The context of that file to use."),
        click.option(
            *names,
            "server",
            metavar="URL",
            help="The API server, in place of the one that the kubeconfig names.",
        ),
    )
    return lambda command: _with_options(command, options)


def listen_flag(
    default: ListenAddress,
    text: str,
    *,
    host_name: str | None = None,
    port_names: Sequence[str] = ("--port",),
    hidden: bool = True,
) -> Callable[[_Command], _Command]:
    """`--listen HOST:PORT`, and the names that host and port have elsewhere.

    The command gets one `listen` argument. *hidden* names are those of earlier versions of Podium;
    using one prints a note.
    """
    options = [
        click.option(
            "--listen",
            type=_ListenType(),
            metavar="HOST:PORT",
            help=f"{text}  [default: {default}]",
        ),
        click.option(
            *port_names,
            "listen_port",
            type=click.IntRange(0, _PORTS[-1]),
            metavar="PORT",
            hidden=hidden,
            help="The port of --listen.",
        ),
    ]
    if host_name is not None:
        options.append(
            click.option(
                host_name,
                "listen_host",
                metavar="HOST",
                hidden=hidden,
                help="The host of --listen.",
            )
        )

    def decorate(command: _Command) -> _Command:
        @wraps(command)
        def gathered(**given: Any) -> Any:
            listen, port = given.pop("listen"), given.pop("listen_port")
            host = given.pop("listen_host", None)
            if host is not None or port is not None:
                if listen is not None:
                    raise click.UsageError("--listen has a host and a port; give it alone")
                if hidden:
                    from podium.cli.console import note  # noqa: PLC0415  rarely needed

                    note("host and port are given by --listen HOST:PORT now")
                number = default.port if port is None else port
                listen = ListenAddress(host or default.host, number)
            return command(listen=listen or default, **given)

        found: _Command = _with_options(gathered, options)
        return found

    return decorate


def _with_options(command: Callable[..., Any], options: Sequence[Callable[[Any], Any]]) -> Any:
    """The command with these options, in this order."""
    for option in reversed(options):
        command = option(command)
    return command
