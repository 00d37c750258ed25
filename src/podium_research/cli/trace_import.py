"""`podium history import`: a trace of others as a history."""

from __future__ import annotations

from pathlib import Path

import click

from podium.cli.console import write, write_data
from podium.cli.flags import output_flag
from podium.cli.history import new_folder
from podium.cli.parsing import FlagsCommand


@click.command("import", cls=FlagsCommand)
@click.argument("trace_format", metavar="FORMAT", type=click.Choice(("openb", "csv", "simkube")))
@click.argument("folder", type=click.Path(), metavar="HISTORY")
@click.option("--nodes", required=True, metavar="FILE", help="The list of nodes, a CSV file.")
@click.option("--pods", required=True, metavar="FILE", help="The list of pods, or SimKube's trace.")
@output_flag("table", "json", "yaml")
def import_(*, trace_format: str, folder: str, nodes: str, pods: str, output: str) -> None:
    """Write a trace as a history: its nodes and pods as they come and go.

    FORMAT is openb (Alibaba's cluster-trace-gpu-v2023), csv (files of your own, docs/sweeps.md
    lists the columns) or simkube (the nodes are a CSV file of your own then). HISTORY is a folder
    that does not exist yet, or is empty. `podium sweep` replays it.

    Exit code: 0 written, 2 bad input.
    """
    from podium_research.traces.histories import write_history  # noqa: PLC0415  brings the engine
    from podium_research.traces.reading import read_trace  # noqa: PLC0415

    target = new_folder(folder)
    trace = read_trace(
        trace_format, Path(pods).stem, [(path, _content(path)) for path in (nodes, pods)]
    )
    changes = write_history(trace, target)
    leaving = [t for each in trace.pods for t in (each.arrives, each.leaves) if t is not None]
    found = {
        "history": folder,
        "nodes": len(trace.nodes),
        "pods": len(trace.pods),
        "changes": changes,
        "seconds": max(leaving, default=0.0),
    }
    if output != "table":
        write_data(found, output)
        return
    write(
        f"{folder}: {found['nodes']:,} nodes, {found['pods']:,} pods, {changes:,} changes in "
        f"{found['seconds']:,.0f} s\n"
    )


def _content(path: str) -> bytes:
    from podium.library.files import unreadable  # noqa: PLC0415

    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None
