"""Rules of users: a slot of a node for some pods, and a wait before binding at some times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from podium.rules import permit, predicate, reserve

SLOTS = (0, 1)
ANNOTATION = "example.com/slot"
#: The time of the world that runs.
now: list[Callable[[], float]] = [lambda: 0.0]


def free(node: Any) -> list[int]:
    """The slots of a node that no pod has."""
    taken = set(node.reserved("PickSlot").values())
    return [number for number in SLOTS if number not in taken]


@predicate("HasSlot", reason="node(s) had no free slot", depends="pods")
def has_slot(pod: Any, node: Any) -> bool:
    """A pod that wants a slot needs a node with a free one."""
    return pod.labels.get("slot") != "yes" or bool(free(node))


@reserve("PickSlot", annotation=ANNOTATION)
def pick_slot(pod: Any, node: Any) -> int | None:
    """The first free slot."""
    return free(node)[0] if pod.labels.get("slot") == "yes" else None


@permit("Calm")
def calm(pod: Any, node: Any) -> bool | float:
    """Pods with a slot wait in every third second."""
    del node
    waits = pod.labels.get("slot") == "yes" and not int(now[0]()) % 3
    return 2.5 if waits else True
