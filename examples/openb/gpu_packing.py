"""GpuPacking: devices in use first, then free devices of nodes in use, then unused nodes."""

from __future__ import annotations

import numpy as np
from gpus import COUNT, WHOLE, fits_gpus, left, tightest, wanted

from podium.rules import RuleColumns, RuleNode, RulePod, priority, reserve

__all__ = ["fits_gpus", "gpu_packing", "pick_gpu"]


def devices(node: RuleNode) -> int:
    """How many devices the node has."""
    return int(node.labels.get(COUNT, "0"))


@priority("GpuPacking", depends="pods", columns=True)
def gpu_packing(pod: RulePod, nodes: RuleColumns) -> np.ndarray:
    """The tightest device in use best; the fewer free devices are taken, the better."""
    count, milli = wanted(pod)
    if not count:
        return nodes.full(0)
    free, number = nodes.each(left), nodes.each(devices)
    # The devices that are enough, in order of least left; the others come last.
    chosen = np.sort(np.where(free >= milli, free, WHOLE + 1), axis=1)[:, :count]
    entire = (chosen == WHOLE).sum(axis=1)
    shared = np.maximum(100 - (chosen[:, 0] * 100 // WHOLE) // 10, 50)
    packed = np.where(entire > 0, np.maximum(50 - entire, 33), shared)
    return np.where((free == WHOLE).sum(axis=1) == number, 33 - number, packed)


@reserve("PickGpu")
def pick_gpu(pod: RulePod, node: RuleNode) -> dict[str, int] | None:
    """The tightest device."""
    return tightest(pod, node)
