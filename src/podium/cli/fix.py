"""`podium fix`: what would make a pending pod fit."""

from __future__ import annotations

import click

from podium.cli.console import note, searched, write_answer
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
from podium.cli.inputs import check_strictly, objects_and_profiles, strict_flag
from podium.cli.parsing import FlagsCommand
from podium.library.lookup import pod_named
from podium.library.profile_source import ProfileSource
from podium.render.reports.fit import fix_lines
from podium.what_if.capacity.node_shapes import shape_named
from podium.what_if.fix.fix import FixSearch


@click.command(cls=FlagsCommand)
@click.argument("pod", metavar="POD")
@cluster_or_files
@namespace_flags("The namespace of POD")
@shape_flag("A node that could be added")
@click.option("--pairs", is_flag=True, help="Try two edits at a time even if single ones help.")
@most_flag(10, "How many fixes the table lists.")
@strict_flag
@exit_code_flag("nothing helps")
@output_flag("table", "json", "yaml")
@profile_flags
def fix(
    *,
    pod: str,
    files: tuple[str, ...],
    cluster: Reach | None,
    namespace: str,
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

    Exit code: 0 answered, 1 nothing helps (--exit-code), 2 bad input.
    """
    check_strictly(shape)
    objects, chosen = objects_and_profiles(files, cluster, flags)
    wanted = pod_named(objects, pod, namespace)
    shapes = [shape_named(objects, name) for name in shape] if shape else None
    search = FixSearch(objects, wanted, chosen.profile_of(wanted), shapes=shapes, notify=note)
    code = searched(search.steps(pairs=pairs), search.total, "trying")
    found = search.result
    write_answer(output, lambda: fix_lines(found, most), found.as_json)
    return code or int(found.node is None and not found.fixes)
