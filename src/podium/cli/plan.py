"""`podium plan`: what follows from changes to a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from podium.cli.changes import change_flags
from podium.cli.console import (
    INTERRUPTED,
    following,
    note,
    notes,
    tracked,
    write,
    write_data,
    write_lines,
)
from podium.cli.flags import cluster_or_files, output_flag, profile_flags
from podium.cli.inputs import documents_in, live_cluster
from podium.cli.parsing import FlagsCommand
from podium.library.profile_source import ProfileSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@click.command(cls=FlagsCommand)
@cluster_or_files
@change_flags
@click.option(
    "--surge",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many nodes --replace adds and drains at a time.  [default: 1]",
)
@click.option(
    "-n",
    "--namespace",
    default="",
    metavar="NAME",
    help="The namespace of objects that changes name.  [default: all]",
)
@click.option(
    "--limit",
    type=click.FloatRange(min=1),
    default=3600.0,
    show_default=True,
    metavar="SECONDS",
    help="Virtual seconds after which a change is given up.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    metavar="N",
    help="Decides the generated names of new pods.",
)
@output_flag("table", "json", "yaml", "html")
@profile_flags
def plan(
    *,
    files: tuple[str, ...],
    cluster: dict[str, str | None] | None,
    changes: tuple[tuple[str, str], ...],
    surge: int | None,
    namespace: str,
    limit: float,
    seed: int,
    output: str,
    flags: ProfileSource,
) -> int:
    """Make changes to a copy of a cluster, in their order, and show what follows.

    The cluster is that of FILES, or a live one with --cluster.

    The copy has the API server and the controllers of the lab and the scheduler of `podium run`,
    on virtual time. It first comes to rest as it is. Each change is made when the one before has
    come to rest. Nothing outside of this process is changed.

    Exit code: 0 nothing is left without a node, 1 something is, 2 bad input.
    """
    from podium.planning.changes import ReplaceNodes, parse_change  # noqa: PLC0415  brings the lab
    from podium.planning.plan import plan as make_plan  # noqa: PLC0415

    wanted = [parse_change(flag, text, namespace=namespace) for flag, text in changes]
    if not wanted:
        raise click.UsageError("there is no change to plan; --drain NODE would be one")
    if surge is not None:
        if not any(isinstance(each, ReplaceNodes) for each in wanted):
            raise click.UsageError("--surge says how many nodes --replace replaces at a time")
        wanted = [
            replace(each, surge=surge) if isinstance(each, ReplaceNodes) else each
            for each in wanted
        ]
    chosen = flags.choose()
    found = documents_in(files) if cluster is None else live_cluster(cluster)
    if found.snapshot is not None:
        chosen = flags.choose(found.snapshot)
    notes(chosen.profile.notes)
    if any(profile.extenders for profile in chosen.profiles):
        note("extenders are not asked in a plan")
    notes(found.notes())

    def progress(items: Sequence[Any]) -> Iterable[Any]:
        return tracked(items, len(items), "loading")

    with following("planning") as step:
        answer = make_plan(
            found.documents,
            wanted,
            chosen,
            seed=seed,
            limit_seconds=limit,
            progress=progress,
            on_step=step,
        )
    if answer.interrupted:
        note("interrupted; what follows is what was found so far")
    if output == "table":
        from podium.planning.plan_report import report  # noqa: PLC0415  only for text

        write_lines(report(answer))
    elif output == "html":
        from podium.planning.plan_page import plan_page  # noqa: PLC0415  only for pages

        write(plan_page(answer))
    else:
        import msgspec  # noqa: PLC0415  only for data

        write_data(msgspec.to_builtins(answer), output)
    return INTERRUPTED if answer.interrupted else int(answer.leaves_pods)
