"""FGD (fragmentation gradient descent): the node whose expected fragmentation grows least.

The fragmentation of a node is the GPU that typical pods of the workload cannot use there, weighted
by how often these pods occur. `typical` is an argument of both rules; `study.py` derives it from a
workload.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from gpus import MODEL, MOST, WHOLE, cut, fits_gpus, left, wanted, whole

from podium.rules import RuleColumns, RuleNode, RulePod, priority, reserve

__all__ = ["fgd", "fits_gpus", "pick_gpu"]

#: The models of the trace.
MODELS = ("A10", "G2", "G3", "P100", "T4", "V100M16", "V100M32")
#: cpu, thousandths of each device, number of devices, models, share of the pods.
Typical = tuple[tuple[int, int, int, tuple[str, ...], float], ...]


#: Why GPU is a fragment for a typical pod; the published program adds up each case on its own, and
#: then the cases in this order.
LACKS_BOTH, LACKS_GPU, LACKS_CPU, NO_GPU_ASKED, NO_GPU_LACKS_CPU, NO_ACCESS = range(6)
CASES = 6
#: The case by (has enough GPU) + 2 (has enough cpu) + 4 (kind of typical pod on this model): pods
#: that accept the model, pods that do not, pods without GPU. What fits lacks the smaller devices.
CASE = np.array(
    [
        *(LACKS_BOTH, LACKS_CPU, LACKS_GPU, LACKS_GPU),
        *(NO_ACCESS, NO_ACCESS, NO_ACCESS, NO_ACCESS),
        *(NO_GPU_LACKS_CPU, NO_GPU_LACKS_CPU, NO_GPU_ASKED, NO_GPU_ASKED),
    ]
)
FITS = 3
#: Which devices (columns) come before a device (row).
EARLIER = np.tri(MOST, k=-1, dtype=np.bool_)[:, :, None]


class Fragmentation:
    """The expected fragmentation of nodes, for the typical pods of a workload."""

    def __init__(self, typical: Typical) -> None:
        self._cpu = np.array([[each[0]] for each in typical])
        self._count = np.array([[each[2]] for each in typical])
        self._share = np.array([[each[4]] for each in typical])
        sizes, self._size = np.unique([each[1] for each in typical], return_inverse=True)
        self._sizes = sizes[:, None, None]
        refused = [[bool(each[3]) and name not in each[3] for name in MODELS] for each in typical]
        #: Four times the kind of each typical pod (rows) on each model (columns).
        self._kind = 4 * np.where(self._count == 0, 2, np.array(refused))

    def expected(self, models: np.ndarray, cpu: np.ndarray, free: np.ndarray) -> np.ndarray:
        """For nodes of these models, with so much cpu, and so much left of each device (a row)."""
        nodes = len(cpu)
        enough = free >= self._sizes
        usable = (free * enough).sum(axis=1)[self._size]
        has_gpu = enough.sum(axis=1)[self._size] >= self._count
        code = self._kind[:, models] + 2 * (cpu >= self._cpu) + has_gpu
        fragment = free.sum(axis=0) - np.where(code == FITS, usable, 0)
        bins = CASE[code] * nodes + np.arange(nodes)
        # Adds one typical pod after the other, in each case of each node.
        amounts = (self._share * fragment).ravel()
        sums = np.bincount(bins.ravel(), amounts, CASES * nodes).reshape(CASES, nodes)
        total: np.ndarray = sums[0] + sums[1] + sums[2] + sums[3] + sums[4] + sums[5]
        return total


@lru_cache(maxsize=4)
def fragmentation(typical: Typical) -> Fragmentation:
    """The fragmentation for these typical pods, made once."""
    return Fragmentation(typical)


def model(node: RuleNode) -> int:
    """The model of the node's devices, as its place in `MODELS`."""
    return MODELS.index(node.labels[MODEL])


def score(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """50 where nothing changes, more where there is less fragmentation afterwards."""
    return cut(100 * (1 / (1 + np.exp(-(before - after) / WHOLE))))


def ways(
    pod: RulePod, cpu: np.ndarray, free: np.ndarray, models: np.ndarray, expect: Fragmentation
) -> np.ndarray:
    """The score of each way to place the pod: devices by nodes, -1 where there is none."""
    count, milli = wanted(pod)
    nodes = len(cpu)
    rest = cpu - pod.requests("cpu")
    if not count or milli == WHOLE:
        after = free
        if count:
            entire = free == WHOLE
            after = np.where(entire & (np.cumsum(entire, axis=0) <= count), 0, free)
        both = np.concatenate([free, after], axis=1)
        found = expect.expected(np.tile(models, 2), np.concatenate([cpu, rest]), both)
        return score(found[:nodes], found[nodes:])[None]
    # Of devices with as much left, the first stands for all.
    repeated = ((free[:, None] == free) & EARLIER).any(axis=1)
    device, node = np.nonzero((free >= milli) & ~repeated)
    changed = free[:, node]
    changed[device, np.arange(len(node))] -= milli
    found = expect.expected(
        np.concatenate([models, models[node]]),
        np.concatenate([cpu, rest[node]]),
        np.concatenate([free, changed], axis=1),
    )
    scores = np.full((MOST, nodes), -1)
    scores[device, node] = score(found[:nodes][node], found[nodes:])
    return scores


@priority("FGD", depends="pods", columns=True)
def fgd(pod: RulePod, nodes: RuleColumns, typical: Typical = ()) -> np.ndarray:
    """The best way to place the pod on each node."""
    free = nodes.each(left).T
    scores = ways(pod, nodes.free("cpu"), free, nodes.each(model), fragmentation(typical))
    best: np.ndarray = np.maximum(scores.max(axis=0), 0)
    return best


@reserve("PickGpu")
def pick_gpu(pod: RulePod, node: RuleNode, typical: Typical = ()) -> dict[str, int] | None:
    """The device of the best way; the first among equals."""
    count, milli = wanted(pod)
    if not count:
        return None
    free = left(node)
    if milli == WHOLE:
        return whole(free, count)
    columns: Any = np.array(free)[:, None]
    cpu, models = np.array([node.free("cpu")]), np.array([model(node)])
    scores = ways(pod, cpu, columns, models, fragmentation(typical))
    return {str(int(scores[:, 0].argmax())): milli}
