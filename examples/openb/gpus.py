"""Devices of the openb trace: which are free on a node, and whether a pod fits on them.

Every policy of the study uses these rules. A pod of whole devices takes the lowest-numbered ones
that are entirely free; what a sharing pod takes differs by policy and is reserved by its file.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.rules import RuleColumns, RuleNode, RulePod, predicate

MILLI = "alibabacloud.com/gpu-milli"
COUNT = "alibabacloud.com/gpu-count"
MODEL = "alibabacloud.com/gpu-card-model"
WHOLE = 1000
#: No node has more devices.
MOST = 8
#: The biggest node: cpu in thousandths of a core, and GPU in thousandths of a device.
BIGGEST_CPU, BIGGEST_GPU = 128_000, 8_000
#: The name of the rule that reserves devices, in the file of each policy.
RESERVED = "PickGpu"


def wanted(pod: RulePod) -> tuple[int, int]:
    """How many devices the pod wants, and how much of each."""
    total = pod.requests(MILLI)
    if not total:
        return 0, 0
    count = int(pod.labels[COUNT])
    return count, total // count


def left(node: RuleNode) -> list[int]:
    """What each device of the node has left; 0 for devices that it does not have."""
    devices = int(node.labels.get(COUNT, "0"))
    free = [WHOLE] * devices + [0] * (MOST - devices)
    for taken in node.reserved(RESERVED).values():
        for device, milli in taken.items():
            free[int(device)] -= milli
    return free


@predicate("FitsGpus", reason="node(s) had too few free GPUs", depends="pods", columns=True)
def fits_gpus(pod: RulePod, nodes: RuleColumns) -> np.ndarray:
    """So many devices have enough left."""
    count, milli = wanted(pod)
    if not count:
        return nodes.full(value=True)
    enough: np.ndarray = (nodes.each(left) >= milli).sum(axis=1) >= count
    return enough


def whole(free: list[int], count: int) -> dict[str, int]:
    """The lowest-numbered devices that are entirely free."""
    entire = [device for device, milli in enumerate(free) if milli == WHOLE]
    return {str(device): WHOLE for device in entire[:count]}


def tightest(pod: RulePod, node: RuleNode) -> dict[str, int] | None:
    """The devices of a pod; a sharing pod takes the device with the least left that is enough."""
    count, milli = wanted(pod)
    if not count:
        return None
    free = left(node)
    if milli == WHOLE:
        return whole(free, count)
    least = min((each, device) for device, each in enumerate(free) if each >= milli)
    return {str(least[1]): milli}


def cut(scores: Any) -> np.ndarray:
    """Scores without what is behind the point."""
    found: np.ndarray = np.asarray(scores).astype(np.int64)
    return found
