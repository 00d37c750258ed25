"""BestFit: the node with the least cpu and GPU left after the pod."""

from __future__ import annotations

import numpy as np
from gpus import BIGGEST_CPU, BIGGEST_GPU, MILLI, cut, fits_gpus, tightest

from podium.rules import RuleColumns, RuleNode, RulePod, priority, reserve

__all__ = ["best_fit", "fits_gpus", "pick_gpu"]


@priority("BestFit", depends="pods", columns=True)
def best_fit(pod: RulePod, nodes: RuleColumns) -> np.ndarray:
    """100 for a node that is full afterwards, less the more it has left."""
    cpu = nodes.free("cpu") - pod.requests("cpu")
    gpu = nodes.free(MILLI) - pod.requests(MILLI)
    return cut(100 * (1 - (0.5 * cpu / BIGGEST_CPU + 0.5 * gpu / BIGGEST_GPU)))


@reserve("PickGpu")
def pick_gpu(pod: RulePod, node: RuleNode) -> dict[str, int] | None:
    """The tightest device."""
    return tightest(pod, node)
