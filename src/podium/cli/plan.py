"""`podium plan`: what follows from changes to a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click
import msgspec

from podium.cli.console import (
    INTERRUPTED,
    StatusLine,
    note,
    note_interrupt,
    notes,
    tracked,
    write,
    write_answer,
)
from podium.cli.flags import (
    DurationType,
    Reach,
    cluster_or_files,
    namespace_flags,
    output_flag,
    profile_flags,
)
from podium.cli.inputs import (
    check_strictly,
    documents_and_profiles,
    objects_and_profiles,
    reached,
    strict_flag,
)
from podium.cli.parsing import FlagsCommand
from podium.library.absence import AbsentObjects, absence_notes, absent_kinds
from podium.library.profile_source import ProfileSource
from podium.objects.kinds.registry import POD_DISRUPTION_BUDGET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from podium.library.profile_choice import ChosenProfiles
    from podium.what_if.consolidate.recommendations import Recommendations
    from podium.what_if.plan.changes import Change
    from podium.what_if.plan.cluster_copy import CopyOptions
    from podium.what_if.plan.inputs import ClusterDocuments
    from podium.what_if.plan.results import Plan
    from podium.what_if.survive.survival import DomainLoss

_Command = TypeVar("_Command", bound="Callable[..., Any]")

#: Flag, what its value looks like, help.
_FLAGS: Final = (
    ("drain", "NODE", "Cordon a node and evict its pods, as kubectl drain does."),
    ("lose", "NODE|LABEL=VALUE", "Nodes that are gone at once, with what runs on them."),
    ("add", "COUNT:NODE|FILE", "Add nodes like one of the cluster, or like the one in a file."),
    ("cordon", "NODE", "Mark a node as unschedulable."),
    ("uncordon", "NODE", "Mark it as schedulable again."),
    ("taint", "NODE:KEY=VALUE:EFFECT", "Add a taint to a node; a - at the end removes it."),
    ("scale", "KIND/NAME=N", "Set the replicas of a workload."),
    ("apply", "FILE", "Create or change objects, as kubectl apply does."),
    ("delete", "KIND/NAME", "Delete an object and what it owns."),
    ("rollout", "KIND/NAME", "Restart the pods of a workload, as kubectl rollout restart does."),
    ("replace", "LABEL=VALUE", "Replace nodes by new ones of their shape, --surge at a time."),
)


class ChangeOption(click.Option):
    """One flag of many that fill the same list; each value is kept with the name of its flag."""

    def __init__(self, flag: str, **more: Any) -> None:
        """A flag `--FLAG VALUE` that may be given many times."""
        super().__init__([f"--{flag}", "changes"], multiple=True, type=click.UNPROCESSED, **more)
        self._flag = flag

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Let the parser append the flag together with its value."""
        super().add_to_parser(parser, ctx)
        entry = parser._long_opt[f"--{self._flag}"]  # noqa: SLF001  click has no other way
        append = entry.process

        def process(value: Any, state: Any) -> None:
            append((self._flag, value), state)

        entry.process = process


def change_flags(command: _Command) -> _Command:
    """Give a command the flags of all changes; it gets them as one `changes` argument."""
    for flag, value, text in reversed(_FLAGS):
        option = ChangeOption(flag, metavar=value, help=text)
        parameters: list[click.Parameter] = command.__dict__.setdefault("__click_params__", [])
        parameters.append(option)
    return command


#: From so many pods on, several losses are tried at the same time.
_MANY_PODS: Final = 2000


def survive(
    files: tuple[str, ...],
    cluster: Reach | None,
    domain: str,
    output: str,
    flags: ProfileSource,
) -> int:
    """Lose every value of a label of nodes in turn, and print what would be left without a node.

    The worst loss is first, with the workloads and disruption budgets that have fewer pods than
    they ask for: at once, and after rescheduling. What is left without a node follows, important
    workloads first. The exit code is 1 if a loss leaves pods without a node.
    """
    from podium.library.parallel import processors  # noqa: PLC0415
    from podium.render.reports.survive import report  # noqa: PLC0415
    from podium.what_if.survive.survival import survive as try_losses  # noqa: PLC0415

    objects, chosen = objects_and_profiles(files, cluster, flags)
    missing = dict(absent_kinds(objects))
    if AbsentObjects(objects).lacks_budgets:
        missing[POD_DISRUPTION_BUDGET.name] = 0
    notes(absence_notes(missing))

    workers = processors() if len(objects.pods) >= _MANY_PODS else 1

    def progress(done: Iterator[DomainLoss], total: int) -> Iterable[DomainLoss]:
        return tracked(done, total, "losing")

    found = try_losses(objects, domain, chosen, workers=workers, progress=progress)
    if found.interrupted:
        note_interrupt()
    write_answer(output, lambda: report(found), lambda: found)
    return INTERRUPTED if found.interrupted else int(found.leaves_pods)


@click.command(cls=FlagsCommand, renamed={"--domain": "--lose-each"}, bare={"--exit-code": "worse"})
@cluster_or_files
@change_flags
@click.option(
    "--lose-each",
    metavar="LABEL|node",
    help="Lose every value of a label of nodes in turn, such as zone or rack, or one node after "
    "the other; no other change is made.",
)
@click.option(
    "--consolidate",
    is_flag=True,
    help="Find nodes that can be emptied, with the commands; no other change is made.",
)
@click.option(
    "--requests",
    "recommended",
    metavar="FILE|URL|vpa|metrics",
    help="Give workloads the requests of krr, VerticalPodAutoscalers, PodMetrics, Prometheus or a "
    "CSV, and count the nodes that come free; no other change is made.",
)
@click.option(
    "--share",
    type=click.FloatRange(0, 1, min_open=True),
    default=1.0,
    show_default=True,
    metavar="SHARE",
    help="Of the pods that --requests concerns, how many are recreated.",
)
@click.option("--prices", metavar="FILE", help="Lines TYPE,PRICE of node types, for --requests.")
@click.option(
    "--surge",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many nodes --replace adds and drains at a time.  [default: 1]",
)
@namespace_flags("The namespace of objects that changes name")
@click.option(
    "--limit",
    type=DurationType(),
    default="1h",
    show_default=True,
    metavar="DURATION",
    help="Virtual time after which a change is given up.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    metavar="N",
    help="Decides the generated names of new pods.",
)
@click.option(
    "--autoscale",
    is_flag=True,
    help="Let autoscalers work; the usage of pods is that of their annotations.",
)
@click.option(
    "--exit-code",
    "gate",
    type=click.Choice(("worse", "any")),
    metavar="[worse|any]",
    help="Exit with code 1 if a pod loses its node or a change cannot be completed (worse, the "
    "default), or if any pod has no node, pending before or not (any).",
)
@strict_flag
@output_flag("table", "json", "yaml", "html")
@profile_flags
def plan(
    *,
    files: tuple[str, ...],
    cluster: Reach | None,
    changes: tuple[tuple[str, str], ...],
    lose_each: str | None,
    consolidate: bool,
    recommended: str | None,
    share: float,
    prices: str | None,
    surge: int | None,
    namespace: str,
    limit: float,
    seed: int,
    autoscale: bool,
    gate: str | None,
    output: str,
    flags: ProfileSource,
) -> int:
    """Make changes to a copy of a cluster, in their order, and show what follows.

    The cluster is that of FILES; without FILES, that of the kubeconfig.

    The copy has the API server and the controllers of the lab and the scheduler of `podium run`,
    on virtual time. A change is made once nothing moves any more after the one before. Nothing
    outside of this process is changed.

    With --lose-each the pods of lost nodes are created anew by their controllers and scheduled on
    the nodes that are left; the worst loss is first.

    Exit code: 0 answered, 2 bad input. With --exit-code, 1: a pod is left without a node that had
    one, a change cannot be completed, or --consolidate finds no node.
    """
    from podium.what_if.plan.changes import files_of  # noqa: PLC0415  brings the lab
    from podium.what_if.plan.cluster_copy import CopyOptions  # noqa: PLC0415
    from podium.what_if.plan.plan import plan as make_plan  # noqa: PLC0415

    wanted = _changes(changes, surge, namespace)
    own = {"--consolidate": consolidate, "--requests": recommended, "--lose-each": lose_each}
    _check_changes(wanted, output, [flag for flag, value in own.items() if value], prices)
    if lose_each is not None:
        return _gated(survive(files, cluster, lose_each, output, flags), gate)
    check_strictly([each for change in wanted for each in files_of(change)])
    found, chosen = documents_and_profiles(files, cluster, flags)
    if any(profile.extenders for profile in chosen.profiles):
        note("extenders are not asked in a plan")

    def progress(items: Sequence[Any]) -> Iterable[Any]:
        return tracked(items, len(items), "loading")

    options = CopyOptions(
        seed=seed, limit_seconds=limit, now=found.read_at, is_whole=found.is_whole
    )
    if consolidate:
        return _gated(_consolidate(found, chosen, options, output), gate)
    if recommended is not None:
        resizing = _Resizing(_recommendations(recommended, files, cluster), share, prices)
        return _gated(_right_size(found, chosen, resizing, options, output), gate)
    with StatusLine("planning") as status:
        options = replace(options, autoscale=autoscale, progress=progress, on_step=status.step)
        answer = make_plan(found.documents, wanted, chosen, options)
    notes(answer.notes)
    if answer.interrupted:
        note_interrupt()
    _print(answer, output)
    fails = answer.makes_worse or (gate == "any" and answer.leaves_pods)
    return INTERRUPTED if answer.interrupted else _gated(int(fails), gate)


def _gated(code: int, gate: str | None) -> int:
    """The exit code: 1 only if --exit-code asks for it."""
    return 0 if code == 1 and gate is None else code


def _changes(changes: Sequence[tuple[str, str]], surge: int | None, namespace: str) -> list[Change]:
    """The changes of the command line, in their order."""
    from podium.what_if.plan.changes import ReplaceNodes, parse_change  # noqa: PLC0415

    wanted = [parse_change(flag, text, namespace=namespace) for flag, text in changes]
    if surge is None:
        return wanted
    if not any(isinstance(each, ReplaceNodes) for each in wanted):
        raise click.UsageError("--surge says how many nodes --replace replaces at a time")
    return [
        replace(each, surge=surge) if isinstance(each, ReplaceNodes) else each for each in wanted
    ]


def _check_changes(
    wanted: Sequence[Change],
    output: str,
    own: Sequence[str],
    prices: str | None,
) -> None:
    """Refuse what does not go together, and a plan without a change.

    *own* are the flags that make changes of their own.
    """
    if len(own) > 1:
        raise click.UsageError(f"{' and '.join(own)} exclude each other; give one of them")
    if prices is not None and "--requests" not in own:
        raise click.UsageError("--prices is for --requests")
    if not own:
        if not wanted:
            raise click.UsageError("there is no change to plan; --drain NODE would be one")
        return
    [flag] = own
    if wanted:
        raise click.UsageError(f"{flag} makes changes of its own; leave out the others")
    if output == "html":
        raise click.UsageError(f"{flag} has no page; -o json has all")


def _print(answer: Plan, output: str) -> None:
    from podium.render.reports.plan import plan_page, report  # noqa: PLC0415

    if output == "html":
        write(plan_page(answer))
    else:
        write_answer(output, lambda: report(answer), lambda: answer)


def _consolidate(
    found: ClusterDocuments, chosen: ChosenProfiles, options: CopyOptions, output: str
) -> int:
    """Find nodes that can be emptied, and print them with the commands."""
    from podium.render.reports.consolidate import report  # noqa: PLC0415
    from podium.what_if.consolidate.consolidation import consolidate  # noqa: PLC0415

    with StatusLine("consolidating") as status:
        answer = consolidate(found.documents, chosen, replace(options, on_step=status.step))
    notes(answer.notes)
    if answer.interrupted:
        note_interrupt()
    data = {**msgspec.to_builtins(answer), "commands": answer.commands}
    write_answer(output, lambda: report(answer), lambda: data)
    return INTERRUPTED if answer.interrupted else int(not answer.emptied)


class _Resizing(NamedTuple):
    """What `--requests`, `--share` and `--prices` say."""

    recommendations: Recommendations
    share: float
    prices: str | None


def _recommendations(source: str, files: Sequence[str], cluster: Reach | None) -> Recommendations:
    from podium.what_if.consolidate.recommendations import (  # noqa: PLC0415
        autoscalers_in,
        live_recommendations,
        read_recommendations,
    )

    if source not in {"vpa", "metrics"}:
        return read_recommendations(source)
    if cluster is not None:
        return live_recommendations(source, reached(cluster))
    if source == "metrics":
        raise click.UsageError("--requests metrics asks a live cluster; leave out FILES")
    return autoscalers_in(files)


def _right_size(
    found: ClusterDocuments,
    chosen: ChosenProfiles,
    resizing: _Resizing,
    options: CopyOptions,
    output: str,
) -> int:
    """Give workloads other requests, and print which nodes come free."""
    from podium.render.reports.consolidate import right_sizing_report  # noqa: PLC0415
    from podium.what_if.consolidate.right_sizing import read_prices, right_size  # noqa: PLC0415

    prices = None if resizing.prices is None else read_prices(resizing.prices)
    with StatusLine("resizing") as status:
        answer = right_size(
            found.documents,
            resizing.recommendations,
            chosen,
            replace(options, on_step=status.step),
            share=resizing.share,
            prices=prices,
        )
    notes(answer.notes)
    write_answer(output, lambda: right_sizing_report(answer), lambda: answer)
    return int(answer.plan.makes_worse)
