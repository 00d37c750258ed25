"""`podium compare`: the same pods placed by several configurations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from podium.cli.console import INTERRUPTED, note, notes, tracked, write, write_data, write_lines
from podium.cli.flags import cluster_flags, gates_flag, output_flag
from podium.cli.inputs import read_files, read_live
from podium.cli.parsing import FlagsCommand
from podium.library.planning.compare import SEEDS, CompareSearch
from podium.library.planning.configurations import configuration
from podium.library.planning.parallel import processors
from podium.objects.reading.validate import notes as input_notes

if TYPE_CHECKING:
    from podium.library.profile_choice import ChosenProfiles

_TWO = 2


@click.command(cls=FlagsCommand)
@click.argument("arguments", nargs=-1, required=True, metavar="A B [C…] [FILES…]")
@click.option(
    "--seeds",
    type=click.IntRange(min=0),
    default=SEEDS,
    show_default=True,
    metavar="N",
    help="How many orders of arrival compaction tries; 0 leaves it out.",
)
@click.option("--bound", is_flag=True, help="Prove a lower bound of nodes (needs podium[solve]).")
@click.option(
    "--most",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    metavar="N",
    help="How many placements that differ the table lists.",
)
@click.option("--cluster", is_flag=True, help="Read the live cluster of the kubeconfig.")
@cluster_flags()
@gates_flag
@output_flag("table", "json", "yaml", "html")
def compare(
    *,
    arguments: tuple[str, ...],
    seeds: int,
    bound: bool,
    most: int,
    cluster: bool,
    kubeconfig: str | None,
    context: str | None,
    server: str | None,
    feature_gates: tuple[dict[str, bool], ...],
    output: str,
) -> int:
    """Place the pods of FILES anew with the configurations A, B, …, and compare the outcomes.

    A configuration is a file with a KubeSchedulerConfiguration or a Policy, a generation (v1.13 or
    v1.36), a provider, or a FILE.py with rules of your own, which are added to v1.36. All pods but
    those of DaemonSets are placed from scratch. Compaction takes nodes away until the pods no
    longer fit.

    Exit code: 0 the same pods are placed by all, 1 some leave more over, 2 bad input.
    """
    chosen: dict[str, ChosenProfiles] = {}
    files = []
    for argument in arguments:
        found = configuration(argument, feature_gates, note)
        if found is None:
            files.append(argument)
        else:
            chosen[_name(argument, chosen)] = found
    if len(chosen) < _TWO:
        raise click.UsageError(
            f"expected two configurations or more, got {len(chosen)}; one is a file with a "
            "KubeSchedulerConfiguration or a Policy, v1.13, v1.36, a provider or a FILE.py"
        )
    if cluster == bool(files):
        what = "FILES and --cluster exclude each other" if cluster else "there is no input"
        raise click.UsageError(f"{what}; name files, or a live cluster with --cluster")
    if not cluster and (kubeconfig or context or server):
        flag = "kubeconfig" if kubeconfig else "context" if context else "server"
        raise click.UsageError(f"--{flag} is for a live cluster; give --cluster, no FILES")
    objects = read_live(kubeconfig, context, server) if cluster else read_files(files)
    notes(input_notes(objects))
    profiles = {name: each.profiles for name, each in chosen.items()}
    search = CompareSearch(objects, profiles, seeds=seeds, bound=bound, notify=note)
    code = 0
    try:
        for _ in tracked(search.steps(workers=processors()), search.total, "comparing"):
            pass
    except KeyboardInterrupt:
        note("interrupted; what follows is what was found so far")
        code = INTERRUPTED
    result = search.result
    if output == "table":
        write_lines(result.lines(most))
    elif output == "html":
        from podium.render.planning.comparison_page import comparison_page  # noqa: PLC0415

        write(comparison_page(result))
    else:
        write_data(result.as_json(), output)
    left_over = {frozenset(each.left_over) for each in result.outcomes}
    return code or int(len(left_over) > 1)


def _name(argument: str, taken: dict[str, ChosenProfiles]) -> str:
    """The name of a file without its folder and ending, or all of it if that is not enough."""
    short = Path(argument).stem if Path(argument).exists() else argument
    return argument if short in taken else short
