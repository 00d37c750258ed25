"""What if? The same engine as a library.

How many more web servers does the example cluster hold, and what stops the next one?

    python examples/library.py
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec

import podium

CLUSTER = Path(__file__).parent / "cluster"


def main() -> None:
    """Place what is pending, then add copies of one pod until none fits."""
    objects = podium.read([str(CLUSTER)])
    profile = podium.default_profile(options=podium.Options(disable_preemption=True))
    simulation = podium.Simulation(profile)
    simulation.load(objects)

    waiting = podium.pending(objects)
    placed = [step for step in simulation.run(waiting) if step.decision.node is not None]
    print(f"{len(placed)} of {len(waiting)} pending pods placed")

    web = next(pod for pod in waiting if pod.labels.get("app") == "web")
    added: Counter[str] = Counter()
    while True:
        number = added.total() + 1
        decision = simulation.attempt(copy_of(web, number))
        if decision.node is None:
            break
        simulation.place(copy_of(web, number), decision)
        added[decision.node] += 1

    print(f"{added.total()} more like {web.name}:")
    for node, count in sorted(added.items()):
        print(f"  {node}  {count}")
    print(decision.message)


def copy_of(pod: podium.Pod, number: int) -> podium.Pod:
    """The same pod under another name."""
    name = f"{pod.name}-copy-{number}"
    metadata = msgspec.structs.replace(pod.metadata, name=name, uid=name)
    return msgspec.structs.replace(pod, metadata=metadata)


if __name__ == "__main__":
    main()
