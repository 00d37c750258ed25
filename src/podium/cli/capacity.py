"""`podium capacity`: how many more pods of a kind fit."""

from __future__ import annotations

import click

from podium.cli.console import note, notes, searched, write_answer
from podium.cli.flags import (
    Reach,
    cluster_or_files,
    exit_code_flag,
    most_flag,
    namespace_flags,
    output_flag,
    profile_flags,
    shape_flag,
)
from podium.cli.inputs import check_strictly, chosen_for, read_live, strict_flag
from podium.cli.parsing import FlagsCommand
from podium.library.absence import absence_notes, absent_kinds
from podium.library.parallel import processors
from podium.library.profile_source import ProfileSource
from podium.objects.reading.validation import notes as input_notes
from podium.render.reports.fit import capacity_lines
from podium.what_if.capacity.capacity import MOST_PODS, CapacitySearch, kinds_beside, kinds_in
from podium.what_if.capacity.node_shapes import shape_named


@click.command(cls=FlagsCommand)
@click.argument("pod", metavar="POD")
@cluster_or_files
@namespace_flags("The namespace of POD")
@shape_flag("Say what one more node like this adds")
@most_flag(MOST_PODS, "Stop after this many pods.")
@click.option(
    "--want",
    type=click.IntRange(min=1),
    metavar="N",
    help="Ask for so many, or for so many sets of several kinds: how many nodes the rest needs.",
)
@click.option("--pending-first", is_flag=True, help="Place the pods that are pending before.")
@strict_flag
@exit_code_flag("none fits, or fewer than --want")
@output_flag("table", "json", "yaml")
@profile_flags
def capacity(
    *,
    pod: str,
    files: tuple[str, ...],
    cluster: Reach | None,
    namespace: str,
    shape: tuple[str, ...],
    most: int,
    want: int | None,
    pending_first: bool,
    output: str,
    flags: ProfileSource,
) -> int:
    """Say how many more pods like POD fit, where, and what runs out first on each node.

    POD is a file with pods or workloads, the name of a pod, a workload such as deployment/web or
    sts/kafka, several of them separated by commas, or a label selector. Several kinds are placed
    in turn: a workload of a file counts as often as it has replicas. Running pods stay, nothing is
    evicted for them, and pending pods count only with --pending-first. The next pods of a
    StatefulSet get claims of their own.

    Exit code: 0 answered, 1 none fits, or fewer than --want asks for (--exit-code), 2 bad input.
    """
    chosen = chosen_for(flags, cluster)
    check_strictly([*files, pod, *shape])
    if cluster is None:
        objects, kinds = kinds_in(pod, files, namespace=namespace, workers=processors())
    else:
        objects, kinds = kinds_beside(pod, read_live(cluster), namespace)
    if cluster is None and objects.snapshot is not None:
        chosen = flags.choose(objects.snapshot)
    notes((*input_notes(objects), *chosen.profile.notes))
    names = {kind.pod.key for kind in kinds}
    notes(absence_notes(absent_kinds(objects, only=names)))
    shapes = [shape_named(objects, name) for name in shape] if shape else None
    search = CapacitySearch(
        objects,
        kinds,
        chosen.profiles,
        shapes=shapes,
        most=most,
        want=want,
        pending_first=pending_first,
        notify=note,
    )
    code = searched(search.steps(), search.estimate(), "placing")
    found = search.result
    write_answer(output, lambda: capacity_lines(found), found.as_json)
    return code or int(not found.is_enough)
