"""A small experiment on disk, whose cells take milliseconds."""

from __future__ import annotations

from pathlib import Path

from builders_v1_36 import PACK

NODES = """name,cpu,memory,pods,label:zone
n-1,4,8Gi,110,a
n-2,2,4Gi,110,b
"""
PODS = """name,arrives,seconds,cpu,memory,priority
web-1,0,60,1,1Gi,
web-2,10,60,2,1Gi,
web-3,20,60,2,1Gi,
urgent,30,30,2,1Gi,100
huge,40,30,16,1Gi,
"""
STUDY = """
import os, random, signal
from pathlib import Path
from podium.rules import priority

MARKER = Path({marker!r})

def shuffled(trace, seed):
    pods = list(trace.pods)
    random.Random(seed).shuffle(pods)
    if {kills} and seed == 2 and not MARKER.exists():
        MARKER.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return trace.with_order(trace.nodes, pods)

class Order:
    def __init__(self, trace):
        self.pods = len(trace.pods)
        self.placed = 0
        self.weight = 0

    def step(self, step):
        if step.decision.node is not None:
            self.placed += 1
            self.weight += self.placed * int(step.decision.node[-1])

    def figures(self):
        return {{"pods": self.pods, "placed": self.placed, "weight": self.weight}}
"""
EXPERIMENT = """
apiVersion: podium/v1
kind: Experiment
name: small
workloads:
- {{name: shop, csv: {{nodes: nodes.csv, pods: pods.csv}}}}
configurations:
- {{name: spread, profile: v1.36}}
- {{name: pack, config: pack.yaml, ties: random}}
seeds: {{from: 1, to: 3}}
{more}
"""
MEASURED = "arrivals: study.py:shuffled\nmeasure: study.py:Order\n"


def write_experiment(folder: Path, more: str = MEASURED, *, kills: bool = False) -> str:
    """Write all files; with *kills*, the first cell of seed 2 kills its worker, once."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "nodes.csv").write_text(NODES)
    (folder / "pods.csv").write_text(PODS)
    (folder / "pack.yaml").write_text(PACK)
    marker = str(folder / "killed")
    (folder / "study.py").write_text(STUDY.format(marker=marker, kills=kills))
    path = folder / "experiment.yaml"
    path.write_text(EXPERIMENT.format(more=more))
    return str(path)
