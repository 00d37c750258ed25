"""`podium explain`: the whole reasoning for one pod."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import click

from podium.cli.console import console, note, notes, print_parts, write, write_data
from podium.cli.flags import (
    cluster_flags,
    optional_files_argument,
    output_flag,
    profile_flags,
)
from podium.cli.inputs import read_files, read_live
from podium.cli.parsing import FlagsCommand
from podium.library import explaining
from podium.library.cluster_notes import cluster_notes
from podium.library.lookup import check_node, pod_named
from podium.library.profile_source import ProfileSource
from podium.objects.reading.validate import notes as input_notes

if TYPE_CHECKING:
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.pod import Pod
    from podium.render.decision.explanation import Explanation


@click.command(cls=FlagsCommand, renamed={"--verbose": "--timings"})
@click.argument("pod", metavar="[NAMESPACE/]POD")
@optional_files_argument
@cluster_flags()
@click.option("--node", metavar="NAME", help="Say why the pod does not go to this node.")
@click.option(
    "--keep-node-name",
    is_flag=True,
    help="Try a pod that names a node (spec.nodeName) as one that waits and insists on it.",
)
@click.option(
    "-v",
    "--timings",
    is_flag=True,
    help="Add how long each step took, and how every score is computed.",
)
@output_flag("table", "json", "yaml", "html")
@profile_flags
def explain(
    *,
    pod: str,
    files: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    server: str | None,
    node: str | None,
    keep_node_name: bool,
    timings: bool,
    output: str,
    flags: ProfileSource,
) -> int:
    """Show for one POD which nodes were rejected and why, the scores, and what decided.

    Without FILES the cluster of the kubeconfig is read, and the pod is decided about on that.

    A running pod is taken off its node first, and what is decided is shown against where it
    runs. Other pending pods are not scheduled before it. With -o html the answer is one
    self-contained page with the heat map of scores.

    Exit code: 0 it has a place, 1 it has none, 2 bad input.
    """
    chosen = flags.choose()
    begun = perf_counter()
    objects = read_files(files) if files else read_live(kubeconfig, context, server)
    reading = perf_counter() - begun
    if files and objects.snapshot is not None:
        chosen = flags.choose(objects.snapshot)
    notes((*input_notes(objects), *cluster_notes(objects, chosen), *chosen.profile.notes))
    wanted = pod_named(objects, pod)
    if node is not None:
        check_node(objects, node)
    profile = chosen.profile_of(wanted)
    _note_oddities(wanted, profile)
    found = explaining.explain(
        objects,
        wanted,
        profile,
        node=node,
        keep_node_name=keep_node_name,
        timed=timings,
        notify=note,
    )
    if timings:
        found.timings.insert(0, ("read and check the input", reading))
    _show(found, output)
    return int(found.decision.node is None)


def _note_oddities(pod: Pod, profile: Profile) -> None:
    """Print why no scheduler would decide about this pod, where none would."""
    if pod.finished:
        note(f"{pod.key} has finished ({pod.status.phase}); decided as if it were new")
    elif pod.terminating:
        note(f"{pod.key} is being deleted; decided as if it were not")
    if pod.spec.scheduler_name != profile.scheduler_name:
        note(f"{pod.key} belongs to the scheduler {pod.spec.scheduler_name}")


def _show(found: Explanation, output: str) -> None:
    if output == "html":
        from podium.render.decision.page import explanation_page  # noqa: PLC0415  only for pages

        write(explanation_page(found))
    elif output == "table":
        from podium.render.decision.tables import explanation_tables  # noqa: PLC0415  brings rich

        printer = console()
        print_parts(explanation_tables(found, printer.width), printer)
    else:
        write_data(found.as_json(), output)
