"""Train a small policy to place the pods of the openb trace, and compare it with a random one.

    python examples/gym/train.py [EPISODES]

The policy is linear: the score of a node is a weighted sum of what the observation says of it. The
weights are found by the cross-entropy method. Needs podium-research[gym].
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np

import podium
import podium_research
from podium_research.sweeps.placement_env import Observation, PlacementEnv

DATA = Path(__file__).parents[1] / "openb" / "data"
FILES = ("openb_node_list_gpu_node.csv.gz", "openb_pod_list_cpu050.csv.gz")
RESOURCES = ("cpu", "memory", "alibabacloud.com/gpu-milli")
NODES, PODS, SAMPLES, BEST = 16, 600, 10, 3


def environment() -> PlacementEnv:
    """A part of the openb trace: some of its nodes, and pods in random order."""
    files = [(name, gzip.decompress((DATA / name).read_bytes())) for name in FILES]
    trace = podium_research.read_trace("openb", "openb", files)
    trace = trace.with_order(trace.nodes[:: len(trace.nodes) // NODES], trace.pods)
    return PlacementEnv(trace, podium.default_profile(), resources=RESOURCES, most_pods=PODS)


def scores(weights: np.ndarray, seen: Observation) -> np.ndarray:
    """The score of each node: of its features, and of these together with the pod."""
    nodes = seen["nodes"]
    pod = np.tile(seen["pod"], (len(nodes), 1))
    features = np.concatenate([nodes, nodes[:, : pod.shape[1]] * pod], axis=1)
    found: np.ndarray = features @ weights
    return found


def run(env: PlacementEnv, seed: int, weights: np.ndarray | None) -> float:
    """The allocated share after one episode; without weights, nodes are chosen at random."""
    chance = np.random.default_rng(seed)
    seen, info = env.reset(seed=seed)
    total, done = 0.0, False
    while not done:
        valid = np.flatnonzero(info["action_mask"])
        if not len(valid):
            break
        if weights is None:
            action = chance.choice(valid)
        else:
            action = valid[np.argmax(scores(weights, seen)[valid])]
        seen, reward, done, _, info = env.step(np.int64(action))
        total += float(reward)
    return total


def train(env: PlacementEnv, rounds: int) -> np.ndarray:
    """The mean of the best weights after some rounds of the cross-entropy method."""
    seen, _ = env.reset(seed=0)
    size = seen["nodes"].shape[1] + len(seen["pod"])
    chance = np.random.default_rng(0)
    mean, spread = np.zeros(size), np.ones(size)
    for number in range(rounds):
        tried = chance.normal(mean, spread, (SAMPLES, size))
        returns = [run(env, number, each) for each in tried]
        best = tried[np.argsort(returns)[-BEST:]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.05
        print(f"round {number + 1}: best {max(returns):.3f}")
    return mean


def main() -> None:
    """Train, then compare on orders of pods that were not trained on."""
    env = environment()
    weights = train(env, int(sys.argv[1]) if len(sys.argv) > 1 else 5)
    seeds = range(100, 103)
    print(f"trained: {np.mean([run(env, seed, weights) for seed in seeds]):.3f}")
    print(f"random:  {np.mean([run(env, seed, None) for seed in seeds]):.3f}")


if __name__ == "__main__":
    main()
