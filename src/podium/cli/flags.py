"""Flags that several commands share, each with one name and one meaning.

Nothing here is imported that `podium version` does not need.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

from podium.cli.parsing import truth
from podium.releases import DEFAULT_RELEASE, RELEASES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from podium.library.profile_source import ProfileSource
    from podium.past.format.writing import Limits

_Command = TypeVar("_Command", bound="Callable[..., Any]")
#: How a cluster is reached: the flags `kubeconfig`, `context` and `server`.
Reach = dict[str, str | None]

#: Fields of `ProfileSource` that no flag sets.
_NO_FLAGS: Final = frozenset(
    {
        "environment",
        "texts",
        "usual_percentage",
        "usual_ties",
        "notify",
        "on_hang",
        "rule_arguments",
    }
)
_PORTS: Final = range(1 << 16)
#: Where the context of a command keeps that --cluster was given, which is not needed any more.
_CLUSTER: Final = "podium.cluster"


# Types of values ------------------------------------------------------------------------------

if TYPE_CHECKING:
    _GatesBase = click.ParamType[dict[str, bool]]
    _ListenBase = click.ParamType["ListenAddress"]
    _SecondsBase = click.ParamType[float]
    _ChoiceBase = click.Choice[str]
else:  # older versions of click have no type there
    _GatesBase = _ListenBase = _SecondsBase = click.ParamType
    _ChoiceBase = click.Choice


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
                self.fail(f"{part!r} is neither Name=true nor Name=false", param, ctx)
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


class DurationType(_SecondsBase):
    """A duration as Kubernetes writes it, `90s` or `1h30m`; the value is in seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The seconds; a number without a unit is taken as seconds, with a note."""
        from podium.objects.times import SECOND, parse  # noqa: PLC0415  not needed for help

        text = str(value)
        flag = param.opts[0] if param is not None else "a duration"
        try:
            seconds = float(text)
        except ValueError:
            pass
        else:
            if seconds > 0 and not isinstance(value, float):
                from podium.cli.console import note  # noqa: PLC0415  rarely needed

                note(f"{flag} takes a duration now: {text}s")
            text = f"{seconds}s"
        try:
            found = parse(text) / SECOND
        except ValueError as error:
            self.fail(f"{error}; 10m would be a duration", param, ctx)
        if found <= 0:
            self.fail(f"{value!r} is not more than 0; 10m would be a duration", param, ctx)
        return found


class _OutputType(_ChoiceBase):
    """A format of what is printed; `text` is the old name of `table`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The format."""
        if value == "text" and "text" not in self.choices and "table" in self.choices:
            from podium.cli.console import note  # noqa: PLC0415  rarely needed

            note("-o text is called -o table now")
            value = "table"
        return super().convert(value, param, ctx)


# Profiles -------------------------------------------------------------------------------------

gates_flag = click.option(
    "--feature-gates",
    type=_GatesType(),
    multiple=True,
    metavar="A=true,B=false",
    help="Feature gates of the scheduler to change.",
)
rules_flag: Final = click.option(
    "--rules",
    multiple=True,
    metavar="FILE.py",
    help="Load your own predicates and priorities from a file, a module or an entry point.",
)
_GENERATIONS: Final = ", ".join(each.name for each in RELEASES[:-1]) + f" or {RELEASES[-1].name}"
generation_flag = click.option(
    "--profile",
    metavar="NAME",
    help=f"Decide as a generation does: {_GENERATIONS}. Alone it means the defaults of the "
    "generation; with --config or --policy, how the file is read.  "
    f"[default: $PODIUM_PROFILE, else {DEFAULT_RELEASE.name}]",
)
_PROFILE_FLAGS: Final = (
    click.option(
        "--policy",
        "--policy-config-file",
        "policy",
        metavar="FILE",
        help="Decide by this Policy file (v1.13), or by one that comes with Podium.",
    ),
    click.option(
        "--provider",
        "--algorithm-provider",
        "provider",
        metavar="NAME",
        help="Decide by this algorithm provider (v1.13).",
    ),
    click.option("--config", metavar="FILE", help="Decide by this KubeSchedulerConfiguration."),
    generation_flag,
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
    click.option("--ask-extenders", is_flag=True, help="Ask the extenders that a snapshot names."),
    click.option("--no-preemption", is_flag=True, help="Never evict pods to make room."),
    click.option(
        "--ties",
        metavar="RULE",
        help="Which of the nodes with the best total is taken: first, round-robin, random:SEED, or "
        "kube-scheduler for the one that the real program takes.  [default: first, round-robin in "
        "v1.13; kube-scheduler where a cluster is scheduled or judged]",
    ),
    click.option(
        "--scheduler-name",
        metavar="NAME",
        help="Only pods of this scheduler are pending.  [default: default-scheduler, or all that "
        "--config has profiles for]",
    ),
    rules_flag,
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
    return gathering(_PROFILE_FLAGS, _gather_profile)(command)


def _gather_profile(given: dict[str, Any]) -> None:
    from podium.cli.console import end, note  # noqa: PLC0415  not needed for help
    from podium.library.profile_source import ProfileSource  # noqa: PLC0415  not for version

    names = frozenset(ProfileSource.__dataclass_fields__) - _NO_FLAGS
    flags = ProfileSource(**{name: given.pop(name) for name in names}, notify=note, on_hang=end)
    check_exclusive(flags)
    given["flags"] = flags


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
    return with_options(command, options)


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
        type=_OutputType(formats),
        default=formats[0],
        show_default=True,
        help="Output format.",
    )


def verify_flag(command: _Command) -> _Command:
    """`--verify`, which makes every decision twice."""
    text = "Make every decision twice, from kept answers and without any, and compare them."
    return click.option("--verify", is_flag=True, help=text)(command)


def files_flag(what: str) -> Callable[[_Command], _Command]:
    """`-f FILES`, as often as wanted; *what* says what is done with them."""
    return click.option("-f", "--filename", "files", multiple=True, metavar="FILES", help=what)


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
            type=DurationType(),
            metavar="DURATION",
            help="Delete parts of a history that are older, such as 48h.  [default: none]",
        ),
    )

    def gather(given: dict[str, Any]) -> None:
        given["limits"] = HistoryLimits(given.pop("record_bytes"), given.pop("record_age"))

    return gathering(options, gather)(command)


class HistoryLimits(NamedTuple):
    """The limits of a history as they were given; the age is in seconds."""

    size: str
    age: float | None

    def made(self) -> Limits:
        """The limits; an error in one sentence if they cannot be read."""
        from podium.objects import quantity  # noqa: PLC0415
        from podium.past.format.writing import Limits  # noqa: PLC0415  brings the kinds of objects

        try:
            total = quantity.value(self.size)
        except ValueError:
            total = 0
        if total <= 0:
            raise click.UsageError(f"--record-bytes {self.size}: is no size; 500Mi would be one")
        if self.age is None:
            return Limits(total_bytes=total)
        return Limits(total_bytes=total, age_seconds=self.age)


def live_cluster_flags(command: _Command) -> _Command:
    """`cluster_flags` of a command that takes FILES as well, with the flag of earlier versions."""

    def gather(given: dict[str, Any]) -> None:
        if given.pop("cluster"):
            from podium.cli.console import note  # noqa: PLC0415  rarely needed

            note("without FILES the cluster is read; --cluster is not needed")
            click.get_current_context().meta[_CLUSTER] = True

    old = click.option("--cluster", is_flag=True, hidden=True)
    return gathering((old,), gather)(cluster_flags()(command))


def cluster_without_files(reach: Reach, files: Sequence[str]) -> Reach | None:
    """How to reach the cluster; None if FILES are read instead of it."""
    if not files:
        return reach
    if click.get_current_context().meta.get(_CLUSTER):
        raise click.UsageError("give FILES, or --cluster to read a live cluster, not both")
    for name, value in reach.items():
        if value:
            raise click.UsageError(f"--{name} is for a live cluster; leave out FILES, or the flag")
    return None


def cluster_or_files(command: _Command) -> _Command:
    """`[FILES…]` and the flags that say how to reach the cluster, which is read without FILES.

    The command gets `files` and `cluster`; the latter has the flags, or is None with FILES.
    """

    def gather(given: dict[str, Any]) -> None:
        given["cluster"] = cluster_without_files(given.pop("reach"), given["files"])

    argument = click.argument("files", nargs=-1, type=click.Path(), metavar="[FILES…]")
    return with_options(live_cluster_flags(gathering((), gather)(command)), (argument,))


def namespace_flags(what: str) -> Callable[[_Command], _Command]:
    """`-n NAMESPACE` and `-A`; the command gets `namespace`, which is empty for all of them.

    *what* says of what it is the namespace.
    """
    options = (
        click.option("-n", "--namespace", metavar="NAME", help=f"{what}.  [default: all]"),
        click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces, the default."),
    )

    def gather(given: dict[str, Any]) -> None:
        if given.pop("all_namespaces") and given["namespace"]:
            raise click.UsageError("-n and -A exclude each other; give one of them")
        given["namespace"] = given["namespace"] or ""

    return gathering(options, gather)


# Exit codes -----------------------------------------------------------------------------------


def exit_code_flag(when: str) -> Callable[[_Command], _Command]:
    """`--exit-code`: the exit code is 1 if *when*; without it, 0 as soon as there is an answer."""

    def decorate(command: _Command) -> _Command:
        @wraps(command)
        def gathered(**given: Any) -> Any:
            wanted = given.pop("exit_code")
            code = command(**given)
            return 0 if code == 1 and not wanted else code

        option = click.option("--exit-code", is_flag=True, help=f"Exit with code 1 if {when}.")
        return with_options(gathered, (option,))  # type: ignore[return-value]

    return decorate


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
    """`--kubeconfig`, `--context` and `--server`; the command gets them as `reach`.

    *master* adds kube-scheduler's name for the last.
    """
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

    def gather(given: dict[str, Any]) -> None:
        given["reach"] = {name: given.pop(name) for name in ("kubeconfig", "context", "server")}

    return gathering(options, gather)


def listen_flag(
    default: ListenAddress,
    text: str,
    *,
    host_name: str | None = None,
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
            "--port",
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

    def gather(given: dict[str, Any]) -> None:
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
        given["listen"] = listen or default

    return gathering(options, gather)


def gathering(
    options: Sequence[Callable[[Any], Any]], gather: Callable[[dict[str, Any]], None]
) -> Callable[[_Command], _Command]:
    """Options of which *gather* makes the arguments that the command gets, in place."""

    def decorate(command: _Command) -> _Command:
        @wraps(command)
        def gathered(**given: Any) -> Any:
            gather(given)
            return command(**given)

        return with_options(gathered, options)  # type: ignore[return-value]

    return decorate


def with_options(command: _Command, options: Sequence[Callable[[Any], Any]]) -> _Command:
    """The command with these options, in this order."""
    for option in reversed(options):
        command = option(command)
    return command
