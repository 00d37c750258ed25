"""The pod or the node that a name stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.errors import InputError
from podium.objects.kinds.registry import REPLICA_SET
from podium.profiles.similar_names import most_similar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from podium.objects.kinds.meta import Object
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects

_WORKLOADS: Final = (
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "Job",
    "ReplicationController",
)
_LISTED: Final = 10
#: Comparing a name with more names than this would take longer than the decision.
_SEARCHED: Final = 20_000


def pod_named(objects: Objects, name: str) -> Pod:
    """The one pod called `NAME` or `NAMESPACE/NAME`; an error says what the name is otherwise."""
    found = [pod for pod in objects.pods if _has_name(pod, name)]
    if len(found) == 1:
        return found[0]
    if found:
        keys = ", ".join(sorted(pod.key for pod in found))
        raise InputError(f"{name} is in {len(found)} namespaces", hint=f"name one: {keys}")
    raise _not_found(objects, name)


def sample_pod(objects: Objects, name: str) -> Pod:
    """The pod of this name, or the first pod of the workload of this name."""
    if not any(_has_name(pod, name) for pod in objects.pods):
        for kind in _WORKLOADS:
            for owner in objects.of(kind):
                if _has_name(owner, name):
                    for pod in _pods_of(objects, owner, kind):
                        return pod
    return pod_named(objects, name)


def _has_name(item: Object, name: str) -> bool:
    return name in {item.name, item.key}


def _not_found(objects: Objects, name: str) -> InputError:
    for kind in _WORKLOADS:
        for owner in objects.of(kind):
            if _has_name(owner, name):
                pods = sorted(pod.key for pod in _pods_of(objects, owner, kind))
                return InputError(f"{name} is a {kind}, not a pod", hint=_pods_hint(pods))
    known = [pod.key if "/" in name else pod.name for pod in objects.pods[:_SEARCHED]]
    hint = _hint(name, known, "the input holds no pods")
    return InputError(f"there is no pod {name}", hint=hint)


def _pods_hint(pods: list[str]) -> str:
    if not pods:
        return "it has no pods"
    more = f" and {len(pods) - _LISTED} more" if len(pods) > _LISTED else ""
    return f"name one of its pods: {', '.join(pods[:_LISTED])}{more}"


def _pods_of(objects: Objects, owner: Object, kind: str) -> Iterator[Pod]:
    """The pods that a workload owns, directly or by its replica sets."""
    owners = {(kind, owner.key)}
    if kind == "Deployment":
        owners = {
            ("ReplicaSet", each.key) for each in objects.of(REPLICA_SET) if _owner(each) in owners
        }
    yield from (pod for pod in objects.pods if _owner(pod) in owners)


def _owner(item: Object) -> tuple[str, str]:
    owner = item.metadata.controller()
    return (owner.kind, f"{item.namespace}/{owner.name}") if owner else ("", "")


def check_node(objects: Objects, name: str) -> None:
    """Refuse a node that is not in the input."""
    names = [node.name for node in objects.nodes]
    if name not in names:
        hint = _hint(name, names, "the input holds no nodes")
        raise InputError(f"there is no node {name}", hint=hint)


def _hint(name: str, known: Iterable[str], otherwise: str) -> str:
    known = list(known)
    near = most_similar(name, known)
    if near:
        return f"did you mean {near}?"
    some = sorted(known)[:3]
    return (
        f"there are {', '.join(some)}{', …' if len(known) > len(some) else ''}"
        if some
        else otherwise
    )
