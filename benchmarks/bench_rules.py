"""What a user's rule costs: for one node against a plain loop, and in columns against both.

    python benchmarks/bench_rules.py [NODES]

Prints the CPU time of one decision's worth of asking, the best of many; the same rule each time:
"four gibibytes of memory left, and not a spot node". All three find out the same: which nodes are
left, and why the others are not.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.cluster.cache.columns import Columns
from podium.engine.rows.rows import ManyRows
from podium.engine.state.accounting import ContainerSums
from podium.objects.kinds.meta import ObjectMeta
from podium.objects.kinds.node import Node, NodeStatus
from podium.objects.kinds.pod import Container, Pod, PodSpec, ResourceRequirements
from podium.profiles.user_rules.adapter import PREDICATE, RuleSpec, UserPredicate
from podium.profiles.user_rules.nodes import RuleNode, RulePod, known_nodes

NODES = 5000
GIB = 1 << 30
REPEATS = 60


def fits(pod: Any, node: Any) -> bool | str:
    """Enough memory left, and no spot node."""
    if node.labels.get("lifecycle") == "spot":
        return "node(s) may be taken away at any time"
    return bool(node.free("memory") >= 4 * GIB) or "node(s) had too little memory left"


def fits_columns(pod: Any, nodes: Any) -> np.ndarray:
    """The same for all nodes at once."""
    found: np.ndarray = ~nodes.has_label("lifecycle", "spot") & (nodes.free("memory") >= 4 * GIB)
    return found


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds for one pod and all nodes."""

    loop: float
    one_node: float
    columns: float

    @property
    def overhead(self) -> float:
        """The rule for one node against the plain loop."""
        return self.one_node / self.loop

    @property
    def gain(self) -> float:
        """The rule in columns against the same for one node."""
        return self.one_node / self.columns


def cluster(size: int) -> tuple[Columns, ManyRows]:
    """Nodes of three kinds, each with a pod."""
    view = Columns(ContainerSums())
    for number in range(size):
        labels = {"lifecycle": "spot" if number % 3 == 0 else "on-demand", "zone": f"z{number % 5}"}
        room: dict[str, str | int | float] = {"cpu": "16", "memory": "64Gi", "pods": 110}
        view.put_node(
            Node(
                metadata=ObjectMeta(name=f"n{number}", labels=labels),
                status=NodeStatus(allocatable=room),
            )
        )
        wants: dict[str, str | int | float] = {"cpu": "1", "memory": f"{number % 64}Gi"}
        container = Container(resources=ResourceRequirements(requests=wants))
        spec = PodSpec(node_name=f"n{number}", containers=[container])
        view.add_pod(Pod(metadata=ObjectMeta(name=f"p{number}"), spec=spec))
    return view, ManyRows(view, view.nodes.order)


def best(runs: Sequence[Callable[[], object]], repeats: int = REPEATS) -> list[float]:
    """The shortest CPU time of each, taken in turns so that all meet the same noise."""
    times = [float("inf")] * len(runs)
    for _ in range(repeats):
        for number, run in enumerate(runs):
            begun = time.process_time()
            run()
            times[number] = min(times[number], time.process_time() - begun)
    return times


def measure(size: int = NODES, repeats: int = REPEATS) -> Costs:
    """All three forms on the same nodes."""
    view, rows = cluster(size)
    pod = view.pods.incoming(Pod(metadata=ObjectMeta(name="new")))
    by_node = UserPredicate(RuleSpec(PREDICATE, "ByNode", fits))
    by_column = UserPredicate(RuleSpec(PREDICATE, "ByColumn", fits_columns, columns=True))
    assert ((by_node.filter(pod, rows) == 0) == (by_column.filter(pod, rows) == 0)).all()
    given, nodes = RulePod(pod, view, class_only=False), known_nodes(view, RuleNode, rows.index)

    def loop() -> tuple[list[str], dict[str, bool | str]]:
        left: list[str] = []
        why: dict[str, bool | str] = {}
        for node in nodes:
            answer = fits(given, node)
            if answer is True:
                left.append(node.name)
            else:
                why[node.name] = answer
        return left, why

    by_hand, one_node = best([loop, lambda: by_node.filter(pod, rows)], repeats)
    (columns,) = best([lambda: by_column.filter(pod, rows)], repeats * 10)
    return Costs(by_hand, one_node, columns)


def main() -> None:
    """Measure and print as JSON."""
    size = NODES // 10 if "--quick" in sys.argv else NODES
    costs = measure(size)
    print(
        json.dumps(
            {
                "nodes": size,
                "loop": costs.loop * 1e3,
                "one_node": costs.one_node * 1e3,
                "columns": costs.columns * 1e3,
            }
        )
    )


if __name__ == "__main__":
    main()
