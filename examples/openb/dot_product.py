"""DotProd: the node whose free resources point least into the direction of the request."""

from __future__ import annotations

import numpy as np
from gpus import BIGGEST_CPU, BIGGEST_GPU, MILLI, cut, fits_gpus, tightest

from podium.rules import RuleColumns, RuleNode, RulePod, priority, reserve

__all__ = ["dot_product", "fits_gpus", "pick_gpu"]


@priority("DotProd", depends="pods", columns=True)
def dot_product(pod: RulePod, nodes: RuleColumns) -> np.ndarray:
    """100 less the product of free and requested shares, over cpu and GPU."""
    cpu = (nodes.free("cpu") / BIGGEST_CPU) * (pod.requests("cpu") / BIGGEST_CPU)
    gpu = (nodes.free(MILLI) / BIGGEST_GPU) * (pod.requests(MILLI) / BIGGEST_GPU)
    return cut(100 * (1 - (cpu + gpu) / 2))


@reserve("PickGpu")
def pick_gpu(pod: RulePod, node: RuleNode) -> dict[str, int] | None:
    """The tightest device."""
    return tightest(pod, node)
