"""The study of the openb trace: the pods of a run, the typical pods, and what is measured."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
from go_random import GoRandom

if TYPE_CHECKING:
    import podium
    import podium_research

#: Pods arrive until they have asked for this share of the GPUs.
ARRIVING = 1.3
MILLI = "alibabacloud.com/gpu-milli"
COUNT = "alibabacloud.com/gpu-count"
#: Draws of the published program between the pods and the nodes.
DRAWN_IN_BETWEEN = 10
#: Typical pods cover this share of all pods.
COVERED = 0.95
#: The percentages of arrived GPU at which the allocation is published.
PUBLISHED_AT = (90, 100, 110, 120, 130)


def requests(pod: podium.Pod) -> dict[str, str]:
    """What the pod requests, as it is written."""
    found = {}
    for container in pod.spec.containers or ():
        asked = (container.resources.requests if container.resources else None) or {}
        found.update({name: str(amount) for name, amount in asked.items()})
    return found


def gpu(pod: podium.Pod) -> tuple[int, int]:
    """How many devices the pod wants, and how much of each."""
    total = int(requests(pod).get(MILLI, "0"))
    count = int(pod.labels[COUNT]) if total else 0
    return count, total // count if count else 0


def capacity(trace: podium_research.Trace) -> int:
    """The GPU of all nodes."""
    return sum(int(str((each.node.status.allocatable or {}).get(MILLI, 0))) for each in trace.nodes)


def arrivals(trace: podium_research.Trace, seed: int) -> podium_research.Trace:
    """The pods and nodes of one run, in the order that a seed of the published program gives.

    The trace is shuffled. Then pods are removed at random, or copies of random pods are added, so
    that the pods ask for 130 % of the GPUs.
    """
    goal = ARRIVING * capacity(trace)
    base = sorted(trace.pods, key=lambda each: each.pod.name)
    sizes = {id(each): gpu(each.pod) for each in base}
    draws = GoRandom(seed)
    draws.int63()
    order = list(base)
    draws.shuffle(order)
    total = sum(count * milli for count, milli in sizes.values())
    if total > goal:
        while total > goal:
            count, milli = sizes[id(order.pop(draws.below(len(order))))]
            total -= count * milli
    else:
        while True:
            pod = base[draws.below(len(base))]
            count, milli = sizes[id(pod)]
            if total + milli > goal:
                break
            order.append(pod)
            total += count * milli
    for _ in range(DRAWN_IN_BETWEEN):
        draws.int63()
    nodes = sorted(trace.nodes, key=lambda each: each.node.name)
    ranks = draws.permutation(len(nodes))
    ranked = sorted(zip(ranks, nodes, strict=True), key=lambda pair: pair[0])
    pods = [_arriving(each, place) for place, each in enumerate(order)]
    return trace.with_order([node for _, node in ranked], pods)


def _arriving(each: podium_research.TracePod, place: int) -> podium_research.TracePod:
    """The pod as the one that arrives at this place: it never leaves, and copies have own names."""
    name = f"{each.pod.name}-{place}"
    metadata = msgspec.structs.replace(each.pod.metadata, name=name, uid=name)
    pod = msgspec.structs.replace(each.pod, metadata=metadata)
    return replace(each, pod=pod, arrives=float(place), leaves=None, seconds=None)


def _spec(pod: podium.Pod) -> tuple[int, int, int, tuple[str, ...]]:
    """Cpu, thousandths of each device, number of devices, and models."""
    count, milli = gpu(pod)
    models: tuple[str, ...] = ()
    if pod.spec.affinity and pod.spec.affinity.node_affinity:
        required = pod.spec.affinity.node_affinity.required
        for term in (required.node_selector_terms if required else None) or ():
            for expression in term.match_expressions or ():
                models = tuple(expression.values or ())
    return int(requests(pod)["cpu"].removesuffix("m")), milli, count, models


def typical_pods(trace: podium_research.Trace) -> dict[str, dict[str, Any]]:
    """The arguments of FGD's rules: the typical pods of a workload, and their shares."""
    counts = Counter(_spec(each.pod) for each in trace.pods)
    ranked = sorted(
        counts.items(), key=lambda pair: (pair[1], *pair[0][:3], "|".join(pair[0][3])), reverse=True
    )
    typical, covered, pods = [], 0, len(trace.pods)
    for spec, count in ranked:
        if covered >= COVERED * pods:
            break
        typical.append((spec, count))
        covered += count
    share = covered / pods
    made = tuple((*spec, count / pods / share) for spec, count in typical)
    return {"FGD": {"typical": made}, "PickGpu": {"typical": made}}


class Allocation:
    """The GPU allocation at percentages of arrived GPU, as the study publishes it."""

    def __init__(self, trace: podium_research.Trace) -> None:
        self._percent = capacity(trace) / 100
        self._arrived = self._used = self._rejected = 0
        #: Rounded percentage of arrived GPU -> the allocations noted while it held.
        self._noted: dict[int, list[float]] = {}

    def step(self, step: podium.Step) -> None:
        """Note the allocation after one decision."""
        count, milli = gpu(step.pod)
        self._arrived += count * milli
        if step.decision.node is not None:
            self._used += count * milli
        else:
            self._rejected += 1
        percent = round(self._arrived / self._percent)
        self._noted.setdefault(percent, []).append(round(self._used / self._percent, 2))

    def figures(self) -> dict[str, float]:
        """The mean allocation at each published percentage, and how many pods fit nowhere."""
        found: dict[str, float] = {}
        for percent in PUBLISHED_AT:
            noted = self._noted.get(percent) or [
                each for near in (-1, 0, 1) for each in self._noted.get(percent + near, ())
            ]
            found[f"at{percent}"] = round(sum(noted) / len(noted), 2)
        return {**found, "rejected": self._rejected}
