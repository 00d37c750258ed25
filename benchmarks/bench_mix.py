"""A realistic mix: many classes of pods that come and go, in a cluster that is in use.

700 classes by default, with requests as in a published trace (`data/README.md`). Of twenty classes
seven are spread softly over zones, three belong to a ReplicaSet behind a Service, and one each
prefers its like, avoids its like, has a volume, tolerates a taint, selects nodes, and is spread
strictly over zones; four are plain. Pods arrive in random order; after each decision some other pod
leaves, and nodes report their status: one of 5,000 nodes every 2 ms is one in ten decisions at
5,000 decisions a second.

--tree PATH measures the package of another checkout, as `compare.py` does; an older one without its
extra `compiled`. Each profile is measured in a process of its own.
"""

from __future__ import annotations

import argparse
import csv
import gc
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
DATA = HERE / "data" / "openb_requests.csv"
CPU_MILLIS, MEMORY_MIB = 192_000, 786_432
NODE_UPDATE_EVERY = 10

#: The usual sizes, and those of `--quick`.
SIZES = {
    "nodes": (5_000, 50),
    "existing": (50_000, 200),
    "pods": (20_000, 50),
    "classes": (700, 20),
}

Json = dict[str, Any]


def node(number: int) -> Json:
    """One of many nodes in three zones; half have an SSD, one in 25 is dedicated."""
    name = f"node-{number}"
    labels = {HOST: name, ZONE: f"zone-{number % 3}", "disk": ("hdd", "ssd")[number % 2]}
    allocatable = {"cpu": f"{CPU_MILLIS}m", "memory": f"{MEMORY_MIB}Mi", "pods": "110"}
    made: Json = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": labels},
        "status": {
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    if number % 25 == 0:
        taint = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
        made["spec"] = {"taints": [taint]}
    return made


class Kind:
    """A class of pods."""

    def __init__(self, number: int, cpu_milli: int, memory_mib: int) -> None:
        self.number = number
        self.cpu_milli, self.memory_mib = cpu_milli, memory_mib
        self.app = f"app-{number}"
        self.form = number % 20
        self.has_volume = self.form == 9
        self.owned = 13 <= self.form <= 15

    def objects(self) -> Iterator[Json]:
        """The Service and the ReplicaSet of its pods, if they have any."""
        if self.owned:
            match = {"app": self.app}
            meta = {"name": self.app, "namespace": "default"}
            yield {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": meta,
                "spec": {"selector": match},
            }
            yield {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {**meta, "uid": self.app},
                "spec": {"replicas": 0, "selector": {"matchLabels": match}},
            }

    def pod(self, name: str, node_name: str = "") -> Json:
        """A pod of this class."""
        requests = {"cpu": f"{self.cpu_milli}m", "memory": f"{self.memory_mib}Mi"}
        container = {"name": "c", "image": "example.com/app:1", "resources": {"requests": requests}}
        meta: Json = {"name": name, "namespace": "default", "uid": name}
        meta["labels"] = {"app": self.app}
        spec: Json = {"containers": [container], **self._wishes(name)}
        if self.owned:
            owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True}
            meta["ownerReferences"] = [{**owner, "name": self.app, "uid": self.app}]
        if node_name:
            spec["nodeName"] = node_name
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}

    def _wishes(self, name: str) -> Json:
        """What the specification says besides the container."""
        selector = {"matchLabels": {"app": self.app}}
        soft = {"maxSkew": 1, "topologyKey": ZONE, "labelSelector": selector}
        soft["whenUnsatisfiable"] = "ScheduleAnyway"
        hard = {**soft, "maxSkew": 5, "whenUnsatisfiable": "DoNotSchedule"}
        near = {"weight": 10, "podAffinityTerm": _near(selector, ZONE)}
        liking = {"preferredDuringSchedulingIgnoredDuringExecution": [near]}
        avoiding = {"requiredDuringSchedulingIgnoredDuringExecution": [_near(selector, HOST)]}
        volume_of_claim = {"name": "v", "persistentVolumeClaim": {"claimName": name}}
        by_form: dict[int, Json] = {
            7: {"affinity": {"podAffinity": liking}},
            8: {"affinity": {"podAntiAffinity": avoiding}},
            9: {"volumes": [volume_of_claim]},
            10: {"tolerations": [{"key": "dedicated", "operator": "Exists"}]},
            11: {"nodeSelector": {"disk": "ssd"}},
            12: {"topologySpreadConstraints": [hard]},
        }
        if self.form < 7:
            return {"topologySpreadConstraints": [soft]}
        return by_form.get(self.form, {})


def _near(selector: Json, key: str) -> Json:
    return {"labelSelector": selector, "topologyKey": key}


def volume(name: str) -> Iterator[Json]:
    """A claim, and the volume it is bound to."""
    done = {"pv.kubernetes.io/bind-completed": "yes"}
    size = {"storage": "1Gi"}
    yield {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "uid": name, "annotations": done},
        "spec": {
            "volumeName": f"v-{name}",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": size},
        },
        "status": {"phase": "Bound"},
    }
    yield {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"v-{name}", "uid": f"v-{name}"},
        "spec": {
            "capacity": size,
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"name": name, "namespace": "default", "uid": name},
            "csi": {"driver": "disk.example.com", "volumeHandle": name},
        },
        "status": {"phase": "Bound"},
    }


class Room:
    """What is left on each node, to place the pods that are there from the start."""

    def __init__(self, nodes: int, dice: random.Random) -> None:
        self._left = [[CPU_MILLIS, MEMORY_MIB] for _ in range(nodes)]
        self._dice = dice

    def place(self, kind: Kind) -> str:
        """A random node with room for a pod, but none that is dedicated; empty if none is found."""
        for _ in range(50):
            number = self._dice.randrange(len(self._left))
            left = self._left[number]
            wrong = kind.form == 11 and number % 2 == 0
            fits = kind.cpu_milli <= left[0] and kind.memory_mib <= left[1]
            if number % 25 and not wrong and fits:
                left[0] -= kind.cpu_milli
                left[1] -= kind.memory_mib
                return f"node-{number}"
        return ""


def kinds(count: int, dice: random.Random) -> list[Kind]:
    """Classes of pods, each with requests drawn as often as in the trace."""
    with DATA.open(newline="", encoding="utf-8") as file:
        rows = [[int(cell) for cell in row.values()] for row in csv.DictReader(file)]
    chosen = dice.choices(rows, [pods for _, _, pods in rows], k=count)
    return [Kind(i, max(cpu, 10), max(memory, 10)) for i, (cpu, memory, _) in enumerate(chosen)]


def read(podium: Any, items: list[Json]) -> Any:
    """The items as the package reads them from a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "items.json")
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        return podium.read([str(path)])


def measure(
    tree: Path, profile: str, *, nodes: int, existing: int, pods: int, classes: int
) -> Json:
    """Fill a cluster, then let pods come and go; CPU-ms per decision, and decisions per second."""
    sys.path.insert(0, str(tree / "src"))
    import podium  # noqa: PLC0415  the path comes first
    from podium.library.profiles import default_profile  # noqa: PLC0415

    dice = random.Random(1)  # noqa: S311 - the same mix each time
    chosen = kinds(classes, dice)
    weights = [1 / (1 + i) ** 0.5 for i in range(classes)]
    room = Room(nodes, dice)
    items = [node(number) for number in range(nodes)]
    items += [item for kind in chosen for item in kind.objects()]
    placed = []
    for number, kind in enumerate(dice.choices(chosen, weights, k=existing)):
        name = f"old-{number}"
        if where := room.place(kind):
            items += [*(volume(name) if kind.has_volume else ()), kind.pod(name, where)]
            placed.append(name)
    coming = dice.choices(chosen, weights, k=pods)
    new = [kind.pod(f"new-{number}") for number, kind in enumerate(coming)]
    claims = [
        each
        for number, kind in enumerate(coming)
        if kind.has_volume
        for each in volume(f"new-{number}")
    ]
    simulation = podium.Simulation(default_profile(profile))
    simulation.load(read(podium, [*items, *claims]))
    waiting = list(read(podium, new).pods)
    reports = list(read(podium, items[:nodes]).nodes)
    gc.collect()
    gc.freeze()
    fitting = 0
    rounds: list[float] = []
    for begin in range(0, len(waiting), max(1, pods // 5)):
        part = waiting[begin : begin + max(1, pods // 5)]
        started = time.process_time()
        for number, pod in enumerate(part):
            for step in simulation.run((pod,)):
                if step.decision.node is not None:
                    fitting += 1
                    placed.append(pod.uid)
            place = dice.randrange(len(placed))
            placed[place], placed[-1] = placed[-1], placed[place]
            simulation.remove(placed.pop())
            if number % NODE_UPDATE_EVERY == 0:
                simulation.cache.put_node(reports[dice.randrange(nodes)])
        rounds.append((time.process_time() - started) * 1000 / len(part))
    gc.unfreeze()
    return {
        "profile": profile,
        "nodes": nodes,
        "classes": classes,
        "existing": existing,
        "pods": pods,
        "placed": fitting,
        "cpuMsOfFirst": round(rounds[0], 4),
        "cpuMs": round(min(rounds), 4),
        "peakMemoryMiB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def alone(given: argparse.Namespace, profile: str) -> Json:
    """The figures of one profile, measured in a process of its own."""
    sizes = [word for name in SIZES for word in (f"--{name}", str(getattr(given, name)))]
    command = [sys.executable, __file__, "--tree", str(given.tree), "--profiles", profile, *sizes]
    told = subprocess.run([*command, "--alone"], stdout=subprocess.PIPE, check=True).stdout  # noqa: S603  this script
    [found] = json.loads(told)
    return dict(found)


def main() -> None:
    """Measure each profile and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small numbers, to see that it works")
    parser.add_argument("--tree", type=Path, default=HERE.parent, help="the checkout to measure")
    parser.add_argument("--profiles", nargs="+", default=["v1.37", "v1.13"])
    parser.add_argument("--alone", action="store_true", help="in this process, each profile once")
    for name, (default, _) in SIZES.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    if given.quick:
        for name, (_, small) in SIZES.items():
            setattr(given, name, small)
    if given.alone:
        sys.modules["numba"] = None  # type: ignore[assignment]  # the extra of an older tree
        sizes = {name: getattr(given, name) for name in SIZES}
        found = [measure(given.tree, profile, **sizes) for profile in given.profiles]
    else:
        found = [alone(given, profile) for profile in given.profiles]
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
