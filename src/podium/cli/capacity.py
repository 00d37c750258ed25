"""`podium capacity`: how many more pods of a kind fit."""

from __future__ import annotations

import click

from podium.cli.console import note, notes, searched, write_data, write_lines
from podium.cli.flags import cluster_or_files, most_flag, output_flag, profile_flags, shape_flag
from podium.cli.inputs import read_live
from podium.cli.parsing import FlagsCommand
from podium.library.fitting.capacity import MOST_PODS, CapacitySearch, kinds_beside, kinds_in
from podium.library.fitting.node_shapes import shape_named
from podium.library.parallel import processors
from podium.library.profile_source import ProfileSource
from podium.objects.reading.validate import notes as input_notes


@click.command(cls=FlagsCommand)
@click.argument("pod", metavar="POD")
@cluster_or_files
@shape_flag("Say what one more node like this adds")
@most_flag(MOST_PODS, "Stop after this many pods.")
@click.option("--pending-first", is_flag=True, help="Place the pods that are pending before.")
@output_flag("table", "json", "yaml")
@profile_flags
def capacity(
    *,
    pod: str,
    files: tuple[str, ...],
    cluster: dict[str, str | None] | None,
    shape: tuple[str, ...],
    most: int,
    pending_first: bool,
    output: str,
    flags: ProfileSource,
) -> int:
    """Say how many more pods like POD fit, where, and what runs out first on each node.

    POD is a file with pods or workloads, or the name of one in FILES. Several kinds are placed in
    turn: a workload counts as often as it has replicas. Running pods stay, nothing is evicted
    for them, and pending pods count only with --pending-first.

    Exit code: 0 at least one fits, 1 none does, 2 bad input.
    """
    chosen = flags.choose()
    if cluster is None:
        objects, kinds = kinds_in(pod, files, workers=processors())
    else:
        objects, kinds = kinds_beside(pod, read_live(**cluster))
    if objects.snapshot is not None:
        chosen = flags.choose(objects.snapshot)
    notes((*input_notes(objects), *chosen.profile.notes))
    shapes = [shape_named(objects, name) for name in shape] if shape else None
    search = CapacitySearch(
        objects,
        kinds,
        chosen.profiles,
        shapes=shapes,
        most=most,
        pending_first=pending_first,
        notify=note,
    )
    code = searched(search.steps(), search.estimate(), "placing")
    found = search.result
    if output == "table":
        write_lines(found.lines())
    else:
        write_data(found.as_json(), output)
    return code or int(not found.pods)
