"""`podium history`: histories from the traces of others, and copies under other names."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from podium.cli.console import note, write, write_data
from podium.cli.flags import output_flag, profile_flags
from podium.cli.parsing import FlagsCommand, HelpfulGroup
from podium.errors import InputError
from podium.library.profile_source import ProfileSource
from podium.render.plain import counted

if TYPE_CHECKING:
    from podium.history.reading import History


@click.group(cls=HelpfulGroup)
def history() -> None:
    """Make histories from traces, and anonymize them."""


@history.command("import")
@click.argument("form", type=click.Choice(("openb", "csv", "simkube")))
@click.argument("folder", type=click.Path(), metavar="HISTORY")
@click.option("--nodes", required=True, metavar="FILE", help="The list of nodes, a CSV file.")
@click.option("--pods", required=True, metavar="FILE", help="The list of pods, or SimKube's trace.")
@output_flag("table", "json", "yaml")
def import_trace(*, form: str, folder: str, nodes: str, pods: str, output: str) -> None:
    """Write a trace as a history: its nodes and pods as they come and go.

    FORM is openb (Alibaba's cluster-trace-gpu-v2023), csv (files of your own, docs/sweeps.md lists
    the columns) or simkube (the nodes are a CSV file of your own then). HISTORY is a folder that
    does not exist yet, or is empty. `podium sweep` replays it.

    Exit code: 0 written, 2 bad input.
    """
    from podium.library.traces.histories import write_history  # noqa: PLC0415  brings the engine
    from podium.library.traces.reading import read_trace  # noqa: PLC0415

    target = new_folder(folder)
    trace = read_trace(form, Path(pods).stem, [(path, _content(path)) for path in (nodes, pods)])
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


@history.command("anonymize", cls=FlagsCommand)
@click.argument("path", metavar="HISTORY", type=click.Path())
@click.argument("folder", metavar="COPY", type=click.Path())
@output_flag("table", "json", "yaml")
@profile_flags
def anonymize(*, path: str, folder: str, output: str, flags: ProfileSource) -> int:
    """Write a copy of a HISTORY without anything that tells whose cluster it comes from.

    Names are replaced as `podium snapshot --anonymize` replaces them: consistently, and in the same
    order. Every decision is made again in the original and in the copy, so that the copy has
    digests of its own. COPY is a folder that does not exist yet, or is empty. Rules of your own are
    named again with --rules.

    Exit code: 0 written, 1 written and a decision follows in the original only, 2 bad input.
    """
    from podium.history.reading import History  # noqa: PLC0415  not needed for the help

    return _write_copy(History(path), folder, output, flags)


def _write_copy(original: History, folder: str, output: str, flags: ProfileSource) -> int:
    """Write the anonymized copy of a history, and print what is in it; the exit code."""
    from podium.daemon.hindsight.anonymized_copy import write_anonymized  # noqa: PLC0415
    from podium.host.history_rules import recorded_rules  # noqa: PLC0415

    found = write_anonymized(original, new_folder(folder), recorded_rules(flags))
    if output == "table":
        write(
            f"{folder}: {counted(found.segments, 'segment')}, "
            f"{counted(found.changes, 'change')}, {counted(found.decisions, 'decision')}, "
            f"{found.equal} of which follow again\n"
        )
    else:
        about = {"apiVersion": "podium/v1", "kind": "AnonymizedHistory", "history": folder}
        write_data({**about, **dataclasses.asdict(found)}, output)
    if found.lost:
        note(f"{counted(found.lost, 'decision')} of {folder} follow in the original only")
    return int(found.lost > 0)


def new_folder(folder: str) -> Path:
    """The path of a folder that is not there yet, or is empty; otherwise an error."""
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError("is there already", where=folder, hint="name a folder that is not")
    return target


def _content(path: str) -> bytes:
    from podium.library.files import unreadable  # noqa: PLC0415

    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None
