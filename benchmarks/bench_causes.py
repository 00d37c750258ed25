"""What it costs to name the causes of a decision, compared with deciding and explaining it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from measuring import profiles, script

from podium.cluster.simulation import Simulation
from podium.engine.framework.profile import Profile
from podium.library.decision_json import to_json
from podium.library.explained_causes import add_causes
from podium.library.pending_pods import seen_by
from podium.objects.reading.collection import Objects
from podium.objects.reading.decoding import decode

NODES, QUICK = 5000, 200


#: How many different amounts of cpu are in use on nodes: about a hundred, or one for each node.
AMOUNTS = {"common": 100, "all different": NODES}


def cluster(count: int, amounts: int) -> str:
    """Nodes that are all too full for a pod, half of them without the label that it wants."""
    items: list[dict[str, Any]] = []
    for i in range(count):
        labels = {"kubernetes.io/hostname": f"n{i}", "disk": "hdd" if i % 2 else "ssd"}
        room = {"cpu": "8", "memory": "8Gi", "pods": "110"}
        items += [
            {
                "kind": "Node",
                "metadata": {"name": f"n{i}", "labels": labels},
                "status": {"allocatable": room},
            },
            pod(f"p{i}", f"{6001 + i // 2 % amounts % 1999}m", nodeName=f"n{i}"),
        ]
    items.append(pod("new", "2", nodeSelector={"disk": "ssd"}))
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def pod(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    """A pod that requests cpu."""
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    return {"kind": "Pod", "metadata": {"name": name}, "spec": {**spec, "containers": containers}}


def seconds(act: Callable[[], Any]) -> float:
    """Processor time of one call."""
    begun = time.process_time()
    act()
    return time.process_time() - begun


def measured(profile: Profile, objects: Objects) -> dict[str, float]:
    """CPU-milliseconds of an explained decision without and with causes, made afresh."""
    new = objects.pods[-1]
    simulation = Simulation(profile)
    simulation.load(seen_by(objects, {profile.scheduler_name}, without=(new,)))
    columns, found = simulation.cache.columns, []

    def explained() -> None:
        found.append(simulation.attempt(new, recording=True))
        to_json(found[-1])

    first = seconds(explained)
    decided = seconds(explained)
    causes = seconds(lambda: add_causes(columns, new, profile, found[-1]))
    written = seconds(lambda: to_json(found[-1]))
    return {"first": first * 1000, "again": decided * 1000, "causes": (causes + written) * 1000}


def measure(quick: bool) -> dict[str, Any]:  # noqa: FBT001  the one switch there is
    """Amounts -> generation -> the least of several runs, in milliseconds."""
    count = QUICK if quick else NODES
    found: dict[str, Any] = {"nodes": count, "clusters": {}}
    for title, amounts in AMOUNTS.items():
        objects = decode(cluster(count, amounts))
        found["clusters"][title] = {}
        for name, profile in profiles().items():
            runs = [measured(profile, objects) for _ in range(1 if quick else 5)]
            found["clusters"][title][name] = {
                key: round(min(run[key] for run in runs), 2) for key in runs[0]
            }
    return found


if __name__ == "__main__":
    script(measure)
