"""Traces written as histories, and histories read as traces.

A trace that is written becomes the changes of its objects: nodes and pods that are added and
deleted. A history that is read becomes what was asked of the cluster, without what was decided:
nodes, and pods with the times at which they arrived and left.
"""

from __future__ import annotations

from dataclasses import replace as replaced
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod
from podium.objects.reading.collection import Objects
from podium.past.format.reading import History, ObjectChange
from podium.past.format.writing import HistoryWriter, Limits
from podium_research.traces.trace import Trace, TraceNode, TracePod

if TYPE_CHECKING:
    from podium.objects.kinds.meta import Object

#: Says to a simulated kubelet how long a pod runs once it is placed.
RUN_SECONDS = "lab.podium/run-seconds"
_GONE, _COME = 0, 1


def write_history(trace: Trace, folder: str | Path) -> int:
    """Write a trace as a history; the number of changes. Time 0 is the trace's start."""
    changes = 0
    with HistoryWriter(
        folder,
        {"trace": trace.name},
        limits=Limits(total_bytes=1 << 62),
        annotations=frozenset({RUN_SECONDS}),
    ) as writer:
        for time, kind, old, new in _changes(trace):
            writer.change(trace.start + time, kind, old, new)
            changes += 1
    return changes


_Change = tuple[float, str, "Object | None", "Object | None"]


def _changes(trace: Trace) -> list[_Change]:
    """The changes in the order of time; of one time, what leaves comes first."""
    found: list[tuple[float, int, _Change]] = []
    for kind, _, item in trace.others.everything():
        found.append((0.0, _COME, (0.0, kind, None, item)))
    for each in trace.nodes:
        found.append((each.arrives, _COME, (each.arrives, "Node", None, each.node)))
        if each.leaves is not None:
            found.append((each.leaves, _GONE, (each.leaves, "Node", each.node, None)))
    for arriving in trace.pods:
        pod = _dated(arriving, trace.start)
        found.append((arriving.arrives, _COME, (arriving.arrives, "Pod", None, pod)))
        if arriving.leaves is not None:
            # A pod that arrives and leaves at the same time is there in between.
            leaves = max(arriving.leaves, arriving.arrives)
            rank = _GONE if leaves > arriving.arrives else _COME
            found.append((leaves, rank, (leaves, "Pod", pod, None)))
    found.sort(key=lambda change: change[:2])
    return [change for _, _, change in found]


def _dated(arriving: TracePod, start: float) -> Pod:
    """The pod with the time at which it was created, and with its time to run."""
    created = datetime.fromtimestamp(start + arriving.arrives, UTC)
    metadata = replace(
        arriving.pod.metadata, creation_timestamp=created.strftime("%Y-%m-%dT%H:%M:%SZ")
    )
    if arriving.seconds is not None:
        kept = dict(metadata.annotations or {})
        kept[RUN_SECONDS] = f"{arriving.seconds:g}"
        metadata = replace(metadata, annotations=kept)
    return replace(arriving.pod, metadata=metadata)


def trace_of(history: History, name: str) -> Trace:
    """What was asked of a cluster while its history was recorded.

    Pods that had a node when recording began are there from the beginning; all others arrive when
    they were first seen, without the node that they got. A pod that finished runs for as long as
    it did; one that was deleted leaves at that time.
    """
    reader = _Reader()
    for entry in history.entries():
        if isinstance(entry, ObjectChange):
            reader.follow(entry)
    return reader.trace(name)


class _Reader:
    """Follows the changes of objects."""

    def __init__(self) -> None:
        self._start: float | None = None
        self._nodes: dict[str, TraceNode] = {}
        self._pods: dict[str, TracePod] = {}
        self._placed: dict[str, float] = {}
        self._first: dict[tuple[str, str], Object] = {}

    def follow(self, change: ObjectChange) -> None:
        """Take note of one change."""
        if self._start is None:
            self._start = change.time
        time = change.time - self._start
        if change.kind == "Node":
            self._follow_node(change, time)
        elif change.kind == "Pod":
            self._follow_pod(change, time)
        elif change.new is not None:
            self._first.setdefault((change.kind, change.key), change.new)

    def _follow_node(self, change: ObjectChange, time: float) -> None:
        if isinstance(change.new, Node):
            known = self._nodes.get(change.key)
            arrives = known.arrives if known is not None else time
            self._nodes[change.key] = TraceNode(change.new, arrives)
        elif change.key in self._nodes:
            self._nodes[change.key] = replaced(self._nodes[change.key], leaves=time)

    def _follow_pod(self, change: ObjectChange, time: float) -> None:
        old, new = change.old, change.new
        if isinstance(new, Pod):
            if new.uid not in self._pods:
                self._pods[new.uid] = TracePod(new, time, _run_seconds(new))
            if new.spec.node_name:
                self._placed.setdefault(new.uid, time)
            if new.finished:
                self._finish(new.uid, time)
        elif isinstance(old, Pod) and old.uid in self._pods:
            known = self._pods[old.uid]
            if known.seconds is None or old.uid not in self._placed:
                self._pods[old.uid] = replaced(known, leaves=time)

    def _finish(self, uid: str, time: float) -> None:
        known = self._pods[uid]
        if known.seconds is None:
            seconds = time - self._placed.get(uid, known.arrives)
            self._pods[uid] = replaced(known, seconds=seconds)

    def trace(self, name: str) -> Trace:
        """The trace of everything that was followed."""
        others = Objects()
        for (kind, _), item in self._first.items():
            others.add(kind, item)
        pods = []
        for each in self._pods.values():
            if each.pod.finished:
                continue
            if each.pod.spec.node_name and each.arrives <= 0:
                others.pods = [*others.pods, each.pod]
            else:
                pods.append(replaced(each, pod=_waiting(each.pod)))
        return Trace(
            name,
            tuple(self._nodes.values()),
            tuple(sorted(pods, key=lambda each: each.arrives)),
            others,
            self._start or 0.0,
        )


def _run_seconds(pod: Pod) -> float | None:
    text = (pod.metadata.annotations or {}).get(RUN_SECONDS)
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None


def _waiting(pod: Pod) -> Pod:
    """The pod before a node was found for it."""
    return replace(pod, spec=replace(pod.spec, node_name=""), status=type(pod.status)())
