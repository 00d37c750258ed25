"""`podium fix`: what would make a pending pod fit."""

from __future__ import annotations

import click

from podium.cli.console import note, notes, tracked, write_data, write_lines
from podium.cli.flags import cluster_or_files, output_flag, profile_flags
from podium.cli.inputs import read_files, read_live
from podium.cli.parsing import FlagsCommand
from podium.library.lookup import pod_named
from podium.library.planning.fix import FixSearch
from podium.library.planning.node_shapes import shape_named
from podium.library.profile_source import ProfileSource
from podium.objects.reading.validate import notes as input_notes

_INTERRUPTED = 130


@click.command(cls=FlagsCommand)
@click.argument("pod", metavar="[NAMESPACE/]POD")
@cluster_or_files
@click.option(
    "--shape",
    multiple=True,
    metavar="NODE",
    help="A node that could be added: the name of a node, or a file with one.  "
    "[default: the most common shapes of the cluster]",
)
@click.option("--pairs", is_flag=True, help="Try two edits at a time even if single ones help.")
@click.option(
    "--most",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="How many fixes the table lists.",
)
@output_flag("table", "json", "yaml")
@profile_flags
def fix(
    *,
    pod: str,
    files: tuple[str, ...],
    cluster: dict[str, str | None] | None,
    shape: tuple[str, ...],
    pairs: bool,
    most: int,
    output: str,
    flags: ProfileSource,
) -> int:
    """Find the smallest changes that would give a pending POD a node, the cheapest first.

    A request lowered to a value, a toleration, a label of a node, a term dropped or relaxed, pods
    evicted, a port freed, a node uncordoned or added. Each is checked by deciding again, and is
    given as a sentence and a kubectl command; -o json adds the JSON patch.

    Exit code: 0 it fits, or something helps, 1 nothing helps, 2 bad input.
    """
    chosen = flags.choose()
    objects = read_files(files) if cluster is None else read_live(**cluster)
    if objects.snapshot is not None:
        chosen = flags.choose(objects.snapshot)
    notes((*input_notes(objects), *chosen.profile.notes))
    wanted = pod_named(objects, pod)
    shapes = [shape_named(objects, name) for name in shape] if shape else None
    search = FixSearch(objects, wanted, chosen.profile_of(wanted), shapes=shapes, notify=note)
    code = 0
    try:
        for _ in tracked(search.steps(pairs=pairs), search.total, "trying"):
            pass
    except KeyboardInterrupt:
        note("interrupted; what follows is what was found so far")
        code = _INTERRUPTED
    found = search.result
    if output == "table":
        write_lines(found.lines(most))
    else:
        write_data(found.as_json(), output)
    return code or int(found.node is None and not found.fixes)
