"""Random: any node that fits, and any device that has enough left.

All nodes get the same score, so that the rule for ties decides: `random:SEED`.
"""

from __future__ import annotations

import random

import numpy as np
from gpus import WHOLE, fits_gpus, left, wanted, whole

from podium.rules import RuleColumns, RuleNode, RulePod, priority, reserve

__all__ = ["fits_gpus", "pick_gpu", "same_score"]


@priority("SameScore", depends="node", columns=True)
def same_score(pod: RulePod, nodes: RuleColumns) -> np.ndarray:  # noqa: ARG001
    """All nodes are equal."""
    return nodes.full(0)


@reserve("PickGpu")
def pick_gpu(pod: RulePod, node: RuleNode) -> dict[str, int] | None:
    """One of the devices with enough left; the name of the pod decides which."""
    count, milli = wanted(pod)
    if not count:
        return None
    free = left(node)
    if milli == WHOLE:
        return whole(free, count)
    enough = [device for device, each in enumerate(free) if each >= milli]
    return {str(random.Random(pod.name).choice(enough)): milli}  # noqa: S311 - no secret
