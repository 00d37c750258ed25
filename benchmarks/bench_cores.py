"""Work that need not wait, with one process and with one for every core: seconds by the clock.

Measured in turns, the least of some rounds each; other work on the machine takes cores away.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import yaml
from bench_fitting import ZONE, written
from measuring import script

import podium
from podium.library.parallel import processors

EXPERIMENT = """
apiVersion: podium/v1
kind: Experiment
name: cores
workloads:
- {name: shop, csv: {nodes: nodes.csv, pods: pods.csv}}
configurations:
- {name: spread, profile: v1.37, ties: random}
seeds: {from: 1, to: 8}
"""


def measure(quick: bool) -> dict[str, Any]:  # noqa: FBT001  the one switch there is
    """Kind of work -> seconds with one process, and with one for every core."""
    nodes, pods, rounds = (10, 50, 1) if quick else (400, 4_000, 2)
    found: dict[str, Any] = {"cores": processors(), "nodes": nodes, "pods": pods}
    with tempfile.TemporaryDirectory() as folder:
        work = dict(_work(Path(folder), nodes, pods))
        best = {name: {1: 1e9, processors(): 1e9} for name in work}
        for _ in range(rounds):
            for name, run in work.items():
                for workers in best[name]:
                    begun = perf_counter()
                    run(workers)
                    best[name][workers] = min(best[name][workers], perf_counter() - begun)
    found["work"] = {
        name: {"one": round(each[1], 2), "all": round(each[processors()], 2)}
        for name, each in best.items()
    }
    return found


def _work(folder: Path, nodes: int, pods: int) -> list[tuple[str, Callable[[int], object]]]:
    """What is measured, each as a call with the number of processes."""
    dump = written(str(folder), nodes, pods)
    items = [json.loads(line) for line in Path(dump).read_text("utf-8").splitlines()]
    listed, manifests = folder / "list.yaml", folder / "manifests"
    listed.write_text(_yaml({"apiVersion": "v1", "items": items, "kind": "List"}), "utf-8")
    manifests.mkdir()
    for number in range(0, len(items), 10):
        text = "---\n".join(map(_yaml, items[number : number + 10]))
        (manifests / f"{number:06}.yaml").write_text(text, "utf-8")
    objects = podium.read([dump])
    for number, node in enumerate(objects.nodes):
        node.labels[ZONE] = f"zone-{number % 8}"
    chosen = podium.ProfileSource(environment={}).choose()
    profile = podium.default_profile()
    experiment = _experiment(folder, nodes, pods)

    def sweep(jobs: int) -> None:
        out = tempfile.mkdtemp(dir=folder)
        command = ["sweep", str(experiment), "--out", out, "--jobs", str(jobs)]
        subprocess.run(  # noqa: S603  our own command
            [sys.executable, "-m", "podium", *command], check=True, capture_output=True
        )

    return [
        ("a list in YAML (`podium.read`)", lambda n: podium.read([str(listed)], workers=n)),
        ("many files of YAML", lambda n: podium.read([str(manifests)], workers=n)),
        (
            "eight zones lost (`podium.survive`)",
            lambda n: podium.survive(objects, ZONE, chosen, workers=n),
        ),
        (
            "compaction with four seeds (`podium.compare`)",
            lambda n: podium.compare(objects, {"v1.37": profile}, seeds=4, workers=n),
        ),
        ("a sweep of eight runs (`podium sweep`)", sweep),
    ]


def _yaml(value: object) -> str:
    return yaml.dump(value, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper))


def _experiment(folder: Path, nodes: int, pods: int) -> Path:
    """The file of an experiment with so many nodes and pods."""
    lines = [f"n{number},16,64Gi,110,z{number % 3}" for number in range(nodes)]
    (folder / "nodes.csv").write_text("\n".join(["name,cpu,memory,pods,label:zone", *lines]))
    lines = [f"p{number},{number},600,{1 + number % 3},1Gi," for number in range(pods)]
    header = "name,arrives,seconds,cpu,memory,priority"
    (folder / "pods.csv").write_text("\n".join([header, *lines]))
    path = folder / "experiment.yaml"
    path.write_text(EXPERIMENT)
    return path


if __name__ == "__main__":
    script(measure)
