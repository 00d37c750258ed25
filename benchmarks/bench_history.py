"""Recording a history: processor time per pod, bytes per pod by compression, and seeking in it."""

from __future__ import annotations

import bz2
import dataclasses
import lzma
import sys
import tempfile
import zlib
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any

import msgspec
from measuring import script
from msgspec.structs import replace

from podium.library.profile_source import ProfileSource
from podium.objects.kinds.registry import KINDS
from podium.past.format.frames import SegmentReader
from podium.past.format.reading import History
from podium.past.format.writing import HistoryWriter, Limits
from podium.past.recorder.recorder import HistoryRecorder
from podium.past.replay.past_decisions import derive, places
from podium.past.replay.replay import Rules
from podium.scheduler.decider import decider_on
from podium.scheduler.state.behaviour import behaviour_of
from podium.scheduler.state.cluster_state import ClusterState
from podium.scheduler.state.observers import AttemptResult, Observer
from podium.scheduler.state.options import SchedulerOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod

PROFILE = ProfileSource().choose().profile
#: So many pods are scheduled before the other loop has its turn.
_SLICE = 500
assert PROFILE.generation is not None
BEHAVIOUR = behaviour_of(PROFILE.generation)
RULES = Rules({PROFILE.scheduler_name: PROFILE}, BEHAVIOUR)


def node(number: int) -> Node:
    """A node as an API server has it, conditions and images included."""
    name = f"node-{number:05}"
    room = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    conditions = [
        {"type": kind, "status": "True" if kind == "Ready" else "False"}
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    found: Node = msgspec.convert(
        {
            "kind": "Node",
            "metadata": {
                "name": name,
                "uid": f"n-{number}",
                "resourceVersion": str(number),
                "labels": {
                    "kubernetes.io/hostname": name,
                    "topology.kubernetes.io/zone": f"z{number % 3}",
                },
            },
            "status": {"allocatable": room, "conditions": conditions},
        },
        KINDS["Node"].type,
    )
    return found


def pod(number: int) -> Pod:
    """A pod of one of a hundred replica sets."""
    app = f"app-{number % 100}"
    found: Pod = msgspec.convert(
        {
            "kind": "Pod",
            "metadata": {
                "name": f"{app}-5d4f7c9b8-{number:05}",
                "namespace": "shop",
                "uid": f"0b6f0e3a-5f1d-4c53-9c1e-{number:012}",
                "resourceVersion": str(10_000_000 + number),
                "labels": {"app": app, "pod-template-hash": "5d4f7c9b8"},
                "ownerReferences": [
                    {"kind": "ReplicaSet", "name": app, "uid": f"rs-{app}", "controller": True}
                ],
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {
                "schedulerName": PROFILE.scheduler_name,
                "containers": [
                    {
                        "name": "app",
                        "image": f"registry.example/{app}:1.2.3",
                        "resources": {"requests": {"cpu": "250m", "memory": "512Mi"}},
                    }
                ],
                "tolerations": [
                    {"key": "node.kubernetes.io/not-ready", "operator": "Exists"},
                ],
            },
            "status": {"phase": "Pending"},
        },
        KINDS["Pod"].type,
    )
    return found


class Loop:
    """What the scheduling loop and the watch do for each pod, without an API server."""

    def __init__(self, folder: Path | None, limits: Limits) -> None:
        self.now = 1_800_000_000.0
        self.options = SchedulerOptions()
        self.recorder: HistoryRecorder | None = None
        observers: Sequence[Observer] = ()
        if folder is not None:
            self.recorder = HistoryRecorder(HistoryWriter(folder, limits=limits), self.time)
            observers = [self.recorder]
            scheduler: Any = self
            self.recorder.scheduler = scheduler
        self.state = ClusterState(RULES.profiles, BEHAVIOUR, self.time, observers)
        self.decider = decider_on(self.state, RULES.profiles)
        self.versions = 20_000_000

    def time(self) -> float:
        """The time, which passes with every pod."""
        return self.now

    @property
    def queue(self) -> Any:
        """Pods that wait."""
        return self.state.queue

    @property
    def ties(self) -> Any:
        """The rule for ties."""
        return self.decider.ties

    def put(self, item: Any) -> None:
        """Report a new version of an object."""
        self.versions += 1
        metadata = replace(item.metadata, resource_version=str(self.versions))
        self.state.index(item.kind).put(replace(item, metadata=metadata))

    def schedule(self, waiting: Pod) -> None:
        """A pod comes, is decided, bound, and reported as running."""
        self.now += 0.001
        self.put(waiting)
        turn = self.queue.pop()
        decision = self.decider.decide(turn.pod, PROFILE)
        if self.recorder is not None:
            result = AttemptResult(turn.pod, decision, PROFILE, 1, self.now, 0.0, self.now)
            self.recorder.attempted(result)
        self.state.cache.assume(turn.pod, decision.node or "")
        self.queue.done(turn)
        bound = replace(waiting, spec=replace(waiting.spec, node_name=decision.node or ""))
        self.put(bound)
        status = replace(bound.status, phase="Running", start_time="2026-01-01T00:00:01Z")
        self.put(replace(bound, status=status))


def microseconds_per_pod(folder: Path, nodes: int, pods: int, limits: Limits) -> list[float]:
    """Processor time of the loop, without and with a history: some pods in turns, then the next."""
    loops = [Loop(None, limits), Loop(folder, limits)]
    spent = [0.0, 0.0]
    for number in range(nodes):
        for loop in loops:
            loop.put(node(number))
    waiting = [pod(number) for number in range(pods)]
    first = pods // 10
    for begin in range(0, pods, _SLICE):
        for which, loop in enumerate(loops):
            begun = process_time()
            for each in waiting[begin : begin + _SLICE]:
                loop.schedule(each)
            if loop.recorder is not None:
                loop.recorder.flush()
            if begin >= first:
                spent[which] += process_time() - begun
    for loop in loops:
        if loop.recorder is not None:
            loop.recorder.close()
    return [each / (pods - first) * 1e6 for each in spent]


def on_api_server(nodes: int, pods: int, rounds: int) -> dict[str, list[float]]:
    """Processor time of `podium run` per pod in milliseconds, in turns without and with a history.

    Start, events and the last writes are included. `bench_cluster.py --quick` tries the way.
    """
    import bench_cluster  # noqa: PLC0415  needs a control plane, the rest does not

    [basic] = [each for each in bench_cluster.WORKLOADS if each.name == "basic"]
    workload = dataclasses.replace(basic, nodes=nodes, pods=pods)
    commands = {
        "plain": bench_cluster.PODIUM,
        "recorded": f"{bench_cluster.PODIUM} --record {{folder}}/history",
    }
    found: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds):
        for name in sorted(commands, reverse=bool(number % 2)):
            told = bench_cluster.run(workload, commands[name])
            print(name, told, file=sys.stderr)
            found[name].append(told["CPU ms/pod"])
    return found


def compressed(folder: Path, pods: int) -> list[dict[str, Any]]:
    """Bytes per pod and processor time per pod of ways to compress what was written."""
    parts: list[bytes] = []
    for path in History(folder).segments:
        with SegmentReader(path) as reader:
            parts += reader.parts()
    whole = b"".join(parts)

    def streamed(level: int) -> int:
        packer, size = zlib.compressobj(level), 0
        for part in parts:
            size += len(packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH))
        return size

    ways: dict[str, Any] = {
        "none": lambda: len(whole),
        "zlib 1, each part alone": lambda: sum(len(zlib.compress(part, 1)) for part in parts),
        "zlib 1, one stream": lambda: streamed(1),
        "zlib 3, one stream": lambda: streamed(3),
        "zlib 6, one stream": lambda: streamed(6),
        "bz2, each part alone": lambda: sum(len(bz2.compress(part)) for part in parts),
        "lzma 0, each part alone": lambda: sum(
            len(lzma.compress(part, preset=0)) for part in parts
        ),
    }
    found = []
    for name, way in ways.items():
        begun = process_time()
        size = way()
        spent = process_time() - begun
        found.append({"way": name, "bytes_per_pod": size / pods, "us_per_pod": spent / pods * 1e6})
    return found


def seek_seconds(folder: Path, moments: int = 10) -> list[float]:
    """Processor time to find and explain a decision, at moments from the first to the last."""
    found = []
    history = History(folder)
    count = sum(1 for _ in history.decisions())
    for moment in range(moments):
        number = (count - 1) * moment // (moments - 1)
        begun = process_time()
        wanted = next(each for place, each in enumerate(places(history)) if place == number)
        derived = derive(history, wanted, lambda _: RULES)
        found.append(process_time() - begun)
        assert derived.difference is None
    return found


def measure(quick: bool) -> dict[str, Any]:  # noqa: FBT001  the one switch there is
    """Processor time per pod with and without recording; seeking in 100,000 changes."""
    nodes, pods = (200, 1_000) if quick else (5_000, 25_000)
    served = (1_000, 5_000, 0 if quick else 5)
    with tempfile.TemporaryDirectory() as folder:
        history = Path(folder, "history")
        plain, recorded = microseconds_per_pod(history, nodes, pods, Limits())
        return {
            "nodes": nodes,
            "pods": pods,
            "us_per_pod": plain,
            "recording_us_per_pod": recorded - plain,
            "compression": compressed(history, pods),
            "seek_seconds": seek_seconds(history),
            "api_server": on_api_server(*served),
            "api_server_size": served[:2],
        }


if __name__ == "__main__":
    script(measure)
