"""`podium compare`: the same pods placed by several configurations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from podium.cli.console import note, notes, searched, write, write_answer
from podium.cli.flags import (
    Reach,
    cluster_without_files,
    exit_code_flag,
    gates_flag,
    live_cluster_flags,
    most_flag,
    output_flag,
)
from podium.cli.inputs import read_files, read_live, strict_flag
from podium.cli.parsing import FlagsCommand
from podium.errors import InputError
from podium.library.files import STDIN
from podium.library.parallel import processors
from podium.objects.reading.validation import notes as input_notes
from podium.render.reports.comparison import comparison_lines, comparison_page
from podium.what_if.compare.comparison import NAMED, SEEDS, CompareSearch, configuration

if TYPE_CHECKING:
    from collections.abc import Sequence

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
@most_flag(10, "How many placements that differ the table lists.", least=0)
@live_cluster_flags
@gates_flag
@strict_flag
@exit_code_flag("some leave more pods over than others")
@output_flag("table", "json", "yaml", "html")
def compare(
    *,
    arguments: tuple[str, ...],
    seeds: int,
    bound: bool,
    most: int,
    reach: Reach,
    feature_gates: tuple[dict[str, bool], ...],
    output: str,
) -> int:
    """Place the pods of FILES anew with the configurations A, B, …, and compare the outcomes.

    A configuration is a file with a KubeSchedulerConfiguration or a Policy, a generation (such as
    v1.36), a provider, or a FILE.py with rules of your own. The rules are added to the default
    generation. All pods but those of DaemonSets are placed from scratch. Compaction takes nodes
    away until the pods no longer fit.

    Without FILES the cluster of the kubeconfig is read.

    Exit code: 0 answered, 1 some leave more pods over (--exit-code), 2 bad input.
    """
    chosen: dict[str, ChosenProfiles] = {}
    files = []
    for place, argument in enumerate(arguments):
        found = configuration(argument, feature_gates, note)
        if found is None:
            files.append(argument)
        elif argument in arguments[:place]:
            raise click.UsageError(f"the configuration {argument} is named twice")
        else:
            chosen[_name(argument, chosen)] = found
    if len(chosen) < _TWO:
        _refuse_missing(files)
        others = f", and {' and '.join(files)} as objects of a cluster" if files else ""
        raise click.UsageError(
            f"expected two configurations or more, got {len(chosen)}{others}; a configuration is a "
            f"file with a KubeSchedulerConfiguration or a Policy, {', '.join(NAMED)} or a FILE.py"
        )
    cluster = cluster_without_files(reach, files)
    objects = read_files(files) if cluster is None else read_live(cluster)
    notes(input_notes(objects))
    if not objects.nodes:
        hint = "pods are placed on the nodes of a cluster"
        raise InputError("holds no node", where=" and ".join(files), hint=hint)
    profiles = {name: each.profiles for name, each in chosen.items()}
    search = CompareSearch(objects, profiles, seeds=seeds, bound=bound, notify=note)
    code = searched(search.steps(workers=processors()), search.total, "comparing")
    result = search.result
    if output == "html":
        write(comparison_page(result))
    else:
        write_answer(output, lambda: comparison_lines(result, most), result.as_json)
    left_over = {frozenset(each.left_over) for each in result.outcomes}
    return code or int(len(left_over) > 1)


def _refuse_missing(files: Sequence[str]) -> None:
    """Refuse arguments that are no files: they may be meant as the names of configurations."""
    for each in files:
        if each != STDIN and not Path(each).exists():
            raise InputError(
                "is neither a file nor the name of a configuration",
                where=each,
                hint=f"the names are {', '.join(NAMED)}",
            )


def _name(argument: str, taken: dict[str, ChosenProfiles]) -> str:
    """The name of a file without its folder and ending, or all of it if that is not enough."""
    short = Path(argument).stem if Path(argument).exists() else argument
    return argument if short in taken else short
