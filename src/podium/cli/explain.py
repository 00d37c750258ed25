"""`podium explain`: the whole reasoning for one pod."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import click

from podium.cli.console import note, notes, output_width, write, write_data, write_lines
from podium.cli.flags import (
    Reach,
    cluster_or_files,
    exit_code_flag,
    namespace_flags,
    output_flag,
    profile_flags,
)
from podium.cli.inputs import objects_and_profiles, strict_flag
from podium.cli.parsing import FlagsCommand
from podium.cli.running_flags import Running, running_flags
from podium.library.cluster_notes import cluster_notes
from podium.library.explanation import explain as explained
from podium.library.lookup import check_node, pod_named
from podium.library.profile_source import ProfileSource

if TYPE_CHECKING:
    from podium.library.explanation import Explanation


@click.command(cls=FlagsCommand, renamed={"--verbose": "--timings", "-v": "--timings"})
@click.argument("pod", metavar="POD", required=False)
@cluster_or_files
@namespace_flags("The namespace of POD")
@running_flags
@click.option("--node", metavar="NAME", help="Say why the pod does not go to this node.")
@click.option(
    "--keep-node-name",
    is_flag=True,
    help="Try a pod that names a node (spec.nodeName) as one that waits and insists on it.",
)
@click.option(
    "--timings",
    is_flag=True,
    help="Add how long each step took, and how every score is computed.",
)
@click.option(
    "--trace",
    is_flag=True,
    help="Show the decision step by step: what was prepared, each rule in order, both passes with "
    "nominated pods, Map and Reduce with their numbers, ties, and the search for victims.",
)
@strict_flag
@click.option(
    "--reason",
    metavar="TEXT",
    help='Say what a reason means, such as "Insufficient cpu", and what to change.',
)
@exit_code_flag("the pod has no node")
@output_flag("table", "json", "yaml", "html")
@profile_flags
def explain(
    *,
    pod: str | None,
    files: tuple[str, ...],
    cluster: Reach | None,
    namespace: str,
    running: Running,
    node: str | None,
    keep_node_name: bool,
    timings: bool,
    trace: bool,
    reason: str | None,
    output: str,
    flags: ProfileSource,
) -> int:
    """Show for one POD which nodes were rejected and why, the scores, and what decided.

    POD is a pod, a workload such as deployment/web, of which the pending pod is meant, or a label
    selector. Without FILES the cluster of the kubeconfig is read, and the pod is decided about on
    that. With --decided a running scheduler says what it decided, and when.

    A running pod is taken off its node first, and what is decided is shown against where it
    runs. Other pending pods are not scheduled before it. With -o html the answer is one
    self-contained page with the heat map of scores.

    \b
      podium explain web-0 cluster.yaml
      podium explain deployment/web -n shop
      podium explain web-0 --decided
    """  # noqa: D301  click reads the escape
    if reason is not None:
        from podium.cli.help import show_reason  # noqa: PLC0415  only with --reason
        from podium.library.documentation import reason_page  # noqa: PLC0415

        show_reason(reason_page(reason))
        return 0
    if pod is None:
        raise click.UsageError("name a POD, or a --reason")
    if running.wanted:
        from podium.cli.running_scheduler import show_decided  # noqa: PLC0415  brings asyncio, ssl

        _check_asked(files, output, flags, node=node, traced=trace or timings)
        return show_decided(pod, namespace, running, cluster or {}, output)
    begun = perf_counter()
    objects, chosen = objects_and_profiles(files, cluster, flags)
    reading = perf_counter() - begun
    notes(cluster_notes(objects, chosen))
    wanted = pod_named(objects, pod, namespace)
    if node is not None:
        check_node(objects, node)
    profile = chosen.profile_of(wanted)
    found = explained(
        objects,
        wanted,
        profile,
        node=node,
        keep_node_name=keep_node_name,
        timed=timings,
        traced=trace or output == "html",
        notify=note,
    )
    if timings:
        found.timings.insert(0, ("read and check the input", reading))
    _show(found, output)
    return int(found.decision.node is None)


def _check_asked(
    files: tuple[str, ...], output: str, flags: ProfileSource, *, node: str | None, traced: bool
) -> None:
    """Refuse what a running scheduler cannot be asked."""
    if files:
        raise click.UsageError("a running scheduler is asked, or FILES are read; leave out one")
    if flags.named():
        raise click.UsageError(
            f"--{flags.named()[0]} decides anew; a running scheduler decided by its own rules"
        )
    if output == "html" or node is not None or traced:
        raise click.UsageError(
            "-o html, --node, --timings and --trace decide anew; leave out --decided"
        )


def _show(found: Explanation, output: str) -> None:
    if output == "html":
        from podium.render.reports.explanation_page import explanation_page  # noqa: PLC0415  only for pages

        write(explanation_page(found))
    elif output == "table":
        from podium.cli.help import name_reason_help  # noqa: PLC0415  only for tables
        from podium.render.reports.explanation_tables import explanation_tables  # noqa: PLC0415

        write_lines(explanation_tables(found, output_width()))
        name_reason_help([found.decision])
    else:
        write_data(found.as_json(), output)
