"""What pods and nodes of the lab use, as the metrics API and autoscalers report it.

Nothing runs in pods. A pod uses what its containers request, or what its annotations say:
`lab.podium/usage-cpu` and `lab.podium/usage-memory`, for the whole pod. A node uses the sum of its
pods, or what its own annotations say.
"""

from __future__ import annotations

from typing import Final

from podium.lab.registry.resource_lists import Amounts, add, amounts, text_of
from podium.objects.kinds.meta import JsonObject
from podium.objects.quantity import QuantityError, nano

#: The annotations that say what a pod or node uses, by resource.
ANNOTATIONS: Final = {"cpu": "lab.podium/usage-cpu", "memory": "lab.podium/usage-memory"}


def container_usage(pod: JsonObject) -> dict[str, Amounts]:
    """The usage of each container by its name; an annotation is shared by all containers."""
    containers = pod["spec"].get("containers") or ()
    found: dict[str, Amounts] = {}
    told = annotated_usage(pod)
    for index, container in enumerate(containers):
        requests = amounts((container.get("resources") or {}).get("requests"))
        own: Amounts = {}
        for name in ANNOTATIONS:
            if name in told:
                share, rest = divmod(told[name], len(containers))
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
