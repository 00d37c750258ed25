"""What else follows from an edit that would make a pod fit, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.library.lookup import Owners
from podium.objects.quantity import milli, value
from podium.render.plain import counted
from podium.render.quantities import format_amount
from podium.what_if.fix.commands import FOLLOWED, NOT_FOLLOWED, is_allowed, workload_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects
    from podium.what_if.fix.json_patch import Operation

#: What a node has besides what the pod asks for, in this order.
_SHOWN: Final = ("cpu", "memory", "pods")


def of_edit(action: str, pod: Pod, patch: Sequence[Operation], objects: Objects) -> tuple[str, ...]:
    """What follows from an edit of a pod or of the template of its workload."""
    kind, name = workload_of(pod, objects)
    found = []
    if action == "gate":
        found.append(
            "the controller that set a gate removes it; by hand, what it waits for is skipped"
        )
    if kind in FOLLOWED:
        count = _running(pod, kind, name, objects)
        if count:
            found.append(f"this restarts {counted(count, 'pod')} of {kind.lower()}/{name}")
    elif kind in NOT_FOLLOWED:
        found.append(f"the other pods of {kind.lower()}/{name} stay as they are")
    elif not all(is_allowed(each) for each in patch):
        found.append("the pod is deleted and created anew")
        if kind:
            found.append(f"{kind} {name} creates pods from its own template, which stays as it is")
    return tuple(found)


def _running(pod: Pod, kind: str, name: str, objects: Objects) -> int:
    wanted, owners = (kind, pod.namespace, name), Owners(objects)
    return sum(
        bool(each.spec.node_name) and not each.finished and not each.terminating
        for each in objects.pods
        if owners.workload(each) == wanted
    )


def of_eviction(pods: Sequence[Pod]) -> tuple[str, ...]:
    """What follows from the eviction of pods."""
    bare = sorted(pod.key for pod in pods if pod.metadata.controller() is None)
    return (f"no controller creates {', '.join(bare)} anew",) if bare else ()


def needs(pod: Pod, node: Node) -> str:
    """What a new node must have for a pod, in a few words."""
    allocatable = node.status.allocatable or {}
    asked = {
        name
        for container in pod.spec.containers or ()
        for name in ((container.resources and container.resources.requests) or {})
    }
    names = [*_SHOWN, *sorted(asked - {*_SHOWN})]
    parts = [
        f"{name} {format_amount(name, milli(text) if name == 'cpu' else value(text))}"
        for name in names
        if (text := allocatable.get(name)) is not None
    ]
    labels = sorted((pod.spec.node_selector or {}).items())
    parts += [f"the label {key}={text}" for key, text in labels if node.labels.get(key) == text]
    parts += [
        f"the taint {taint.key}{f'={taint.value}' if taint.value else ''}:{taint.effect}"
        for taint in node.spec.taints or ()
    ]
    return ", ".join(parts)
