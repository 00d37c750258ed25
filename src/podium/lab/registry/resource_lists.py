"""Amounts of resources: those that a pod requests, is limited to and uses, added up exactly.

Amounts are integers in billionths, so that sums and comparisons are exact. A text is made of a sum
in the form that its quantity is written in: `2Gi`, `1500m`.

Nothing runs in pods. A pod uses what its containers request, or what its annotations say:
`lab.podium/usage-cpu` and `lab.podium/usage-memory`, for the whole pod. A node uses the sum of its
pods, or what its own annotations say. The metrics API and autoscalers report that.

Upstream: component-helpers/resource/helpers.go (PodRequests, PodLimits).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from podium.objects.kinds.meta import JsonObject
from podium.objects.quantity import QuantityError, canonical, nano

#: Amounts in billionths by the name of the resource.
Amounts = dict[str, int]

_BILLION = 10**9
#: Resources that `spec.resources` of a pod may set for all containers together.
_POD_LEVEL = frozenset({"cpu", "memory"})
_POD_LEVEL_PREFIX = "hugepages-"
_BYTES = ("memory", "storage", "hugepages-")
#: The annotations that say what a pod or node uses, by resource.
ANNOTATIONS: Final = {"cpu": "lab.podium/usage-cpu", "memory": "lab.podium/usage-memory"}


def amounts(quantities: Mapping[str, str | float] | None) -> Amounts:
    """The amounts of a map of quantities."""
    return {name: nano(raw) for name, raw in (quantities or {}).items()}


def text_of(name: str, amount: int) -> str:
    """An amount as a quantity: bytes with a binary suffix, everything else decimal."""
    if amount % _BILLION == 0 and any(part in name for part in _BYTES):
        whole = amount // _BILLION
        if whole and whole % 1024 == 0:
            return canonical(f"{whole // 1024}Ki")
        return canonical(str(whole))
    return canonical(f"{amount}n")


def texts_of(found: Mapping[str, int]) -> dict[str, str]:
    """Amounts as quantities, in the order of their names."""
    return {name: text_of(name, found[name]) for name in sorted(found)}


def add(total: Amounts, more: Mapping[str, int]) -> None:
    """Add *more* to *total*."""
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def raise_to(total: Amounts, least: Mapping[str, int]) -> None:
    """Raise each amount of *total* to that of *least*."""
    for name, amount in least.items():
        total[name] = max(total.get(name, amount), amount)


def pod_amounts(spec: JsonObject, part: str, *, with_overhead: bool) -> Amounts:
    """The `requests` or `limits` (*part*) of a whole pod.

    Containers and restartable init containers add up; an init container needs its own amount and
    that of the restartable ones before it. Resources of the pod itself replace the sums. Overhead
    is added to requests, and to the limits that there are.
    """
    total: Amounts = {}
    for container in spec.get("containers") or ():
        add(total, _of(container, part))
    restartable: Amounts = {}
    initial: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = _of(container, part)
        if container.get("restartPolicy") == "Always":
            add(total, own)
            add(restartable, own)
            own = dict(restartable)
        else:
            add(own, restartable)
        raise_to(initial, own)
    raise_to(total, initial)
    for name, amount in amounts((spec.get("resources") or {}).get(part)).items():
        if name in _POD_LEVEL or name.startswith(_POD_LEVEL_PREFIX):
            total[name] = amount
    if with_overhead:
        overhead = amounts(spec.get("overhead"))
        add(total, overhead if part == "requests" else _only(overhead, total))
    return total


def containers_of(spec: JsonObject) -> Iterable[JsonObject]:
    """The containers of a pod, then its init containers."""
    yield from spec.get("containers") or ()
    yield from spec.get("initContainers") or ()


def _of(container: JsonObject, part: str) -> Amounts:
    return amounts((container.get("resources") or {}).get(part))


def _only(found: Amounts, names: Mapping[str, int]) -> Amounts:
    return {name: amount for name, amount in found.items() if names.get(name)}


def container_usage(pod: JsonObject) -> dict[str, Amounts]:
    """The usage of each container by its name; an annotation is shared by all containers."""
    containers = pod["spec"].get("containers") or ()
    found: dict[str, Amounts] = {}
    annotated = annotated_usage(pod)
    for index, container in enumerate(containers):
        requests = amounts((container.get("resources") or {}).get("requests"))
        own: Amounts = {}
        for name in ANNOTATIONS:
            if name in annotated:
                share, rest = divmod(annotated[name], len(containers))
                own[name] = share + (rest if index == 0 else 0)
            else:
                own[name] = requests.get(name, 0)
        found[container["name"]] = own
    return found


def pod_usage(pod: JsonObject) -> Amounts:
    """The usage of all containers of a pod together."""
    total: Amounts = {}
    for each in container_usage(pod).values():
        add(total, each)
    return total


def annotated_usage(item: JsonObject) -> Amounts:
    """What the annotations of a pod or node say; those that are no quantities are ignored."""
    annotations = item["metadata"].get("annotations") or {}
    found: Amounts = {}
    for name, annotation in ANNOTATIONS.items():
        if annotation in annotations:
            try:
                found[name] = max(nano(annotations[annotation]), 0)
            except QuantityError:
                continue
    return found


def usage_texts(found: Amounts) -> dict[str, str]:
    """CPU and memory as quantities."""
    return {name: text_of(name, found.get(name, 0)) for name in ANNOTATIONS}
