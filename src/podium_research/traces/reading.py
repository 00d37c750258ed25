"""Traces by the name of their format."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from podium.errors import InputError
from podium.library.pending_pods import pending
from podium.objects.completing.defaults import with_defaults
from podium.objects.completing.expansion import expand
from podium.objects.reading.collection import Objects
from podium.objects.reading.decoding import decode
from podium.objects.reading.validation import validate
from podium.past.format.reading import History
from podium_research.traces.csv_trace import CsvTable, read_csv, read_nodes
from podium_research.traces.histories import trace_of
from podium_research.traces.openb import read_openb
from podium_research.traces.simkube import read_simkube
from podium_research.traces.trace import Trace, TraceNode, TracePod

if TYPE_CHECKING:
    from collections.abc import Sequence

#: A file: where it is, for messages, and what is in it.
File = tuple[str, bytes]
OPENB, CSV, SIMKUBE, HISTORY, MANIFESTS = FORMATS = (
    "openb",
    "csv",
    "simkube",
    "history",
    "manifests",
)


def read_trace(trace_format: str, name: str, files: Sequence[File]) -> Trace:
    """The trace in some files.

    `openb` and `csv` are a list of nodes and one of pods, `simkube` a list of nodes (as in `csv`)
    and a trace, `history` the segments of a history, `manifests` any files of objects.
    """
    if trace_format == MANIFESTS:
        return _of_manifests(name, files)
    if trace_format == HISTORY:
        return _of_segments(name, files)
    if trace_format == SIMKUBE:
        nodes_file, (where, content) = files
        return read_simkube(name, where, content, read_nodes(CsvTable(*nodes_file)))
    tables = [CsvTable(where, content) for where, content in files]
    if trace_format == OPENB:
        nodes, pods = tables
        nodes.needs("sn", "cpu_milli", "memory_mib")
        pods.needs("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
        return read_openb(name, nodes, pods)
    if trace_format == CSV:
        return read_csv(name, *tables)
    raise InputError(
        f"there is no format of traces {trace_format!r}", hint=f"known: {', '.join(FORMATS)}"
    )


def _of_segments(name: str, files: Sequence[File]) -> Trace:
    """The trace of a history whose files may be elsewhere."""
    with tempfile.TemporaryDirectory(prefix="podium-history-") as folder:
        for where, content in files:
            Path(folder, Path(where).name).write_bytes(content)
        try:
            return trace_of(History(folder), name)
        except InputError as error:
            where = str(Path(files[0][0]).parent) if files else ""
            raise InputError(error.what, where=where, hint=error.hint) from None


def _of_manifests(name: str, files: Sequence[File]) -> Trace:
    """Nodes and running pods as they are; pending pods arrive in the order of the queue."""
    objects = Objects()
    for where, content in files:
        decode(content, where, into=objects)
    validate(objects)
    objects = expand(with_defaults(objects))
    waiting = pending(objects, {pod.spec.scheduler_name for pod in objects.pods})
    arriving = {pod.uid for pod in waiting}
    others = objects.copied()
    others.nodes = []
    others.pods = [pod for pod in objects.pods if pod.uid not in arriving]
    return Trace(
        name,
        tuple(map(TraceNode, objects.nodes)),
        tuple(map(TracePod, waiting)),
        others,
    )
