"""GpuClustering: pods of a kind (sharing, one device, two devices, …) go together."""

from __future__ import annotations

import numpy as np
from gpus import BIGGEST_GPU, MILLI, RESERVED, WHOLE, fits_gpus, tightest, wanted

from podium.rules import RuleColumns, RuleNode, RulePod, priority, reserve

__all__ = ["fits_gpus", "gpu_clustering", "pick_gpu"]


def kind_bit(count: int, milli: int) -> int:
    """A bit for each kind of pod: 1 for sharing, and one for each number of devices."""
    return 1 if milli < WHOLE else 1 << count


def kinds(node: RuleNode) -> int:
    """The bits of all kinds of pods on the node."""
    bits = 0
    for taken in node.reserved(RESERVED).values():
        bits |= kind_bit(len(taken), next(iter(taken.values())))
    return bits


@priority("GpuClustering", depends="pods", columns=True)
def gpu_clustering(pod: RulePod, nodes: RuleColumns) -> np.ndarray:
    """Most for nodes with pods of the same kind only, then for mixed and for empty nodes."""
    count, milli = wanted(pod)
    if not count:
        return nodes.full(0)
    kind, there = kind_bit(count, milli), nodes.each(kinds)
    used = 25 * (BIGGEST_GPU - nodes.free(MILLI)) // BIGGEST_GPU
    company = np.where(there & kind, np.where(there == kind, 75, 50), np.where(there, 0, 25))
    return used + company


@reserve("PickGpu")
def pick_gpu(pod: RulePod, node: RuleNode) -> dict[str, int] | None:
    """The tightest device."""
    return tightest(pod, node)
