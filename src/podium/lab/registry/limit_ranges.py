"""Limit ranges at admission: default requests and limits, and the bounds that a pod must keep.

A limit range changes what is scheduled: a container that requests nothing gets the default request
of its namespace. Pods are checked when they are created, claims also when they are updated.

Upstream: plugin/pkg/admission/limitranger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from podium.lab.api.status import forbidden
from podium.lab.registry.resource_lists import (
    Amounts,
    amounts,
    containers_of,
    pod_amounts,
    text_of,
)
from podium.objects.kinds.meta import JsonObject
from podium.objects.quantity import nano

if TYPE_CHECKING:
    from podium.lab.registry.registry import Registry

_ANNOTATION: Final = "kubernetes.io/limit-ranger"
_BILLION: Final = 10**9
_CLAIM: Final = "PersistentVolumeClaim"


def limits_of(registry: Registry, namespace: str) -> list[list[JsonObject]]:
    """The limits of each limit range in a namespace, in the order of their names."""
    records = registry.store.table("limitranges").in_namespace(namespace)
    return [
        (records[key].object().get("spec") or {}).get("limits") or [] for key in sorted(records)
    ]


def set_default_resources(registry: Registry, pod: JsonObject) -> None:
    """Give containers the default requests and limits of their namespace, and annotate the pod."""
    spec, metadata = pod["spec"], pod["metadata"]
    for limits in limits_of(registry, metadata["namespace"]):
        set_parts: list[str] = []
        for what, containers in (
            ("container", spec.get("containers") or ()),
            ("init container", spec.get("initContainers") or ()),
        ):
            for container in containers:
                set_parts += _set_defaults(container, limits, what)
        if set_parts:
            text = "LimitRanger plugin set: " + "; ".join(set_parts)
            metadata.setdefault("annotations", {})[_ANNOTATION] = text


def _set_defaults(container: JsonObject, limits: list[JsonObject], what: str) -> list[str]:
    """Set the defaults of one container; a text for requests and one for limits if any were set."""
    texts = []
    for part, field, word in (
        ("requests", "defaultRequest", "request"),
        ("limits", "default", "limit"),
    ):
        defaults = _container_defaults(limits, field)
        resources = container.setdefault("resources", {})
        missing = sorted(defaults.keys() - (resources.get(part) or {}).keys())
        if missing:
            wanted = resources.setdefault(part, {})
            wanted.update({name: defaults[name] for name in missing})
            texts.append(f"{', '.join(missing)} {word} for {what} {container.get('name', '')}")
    return texts


def _container_defaults(limits: list[JsonObject], field: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for limit in limits:
        if limit.get("type") == "Container":
            found.update(limit.get(field) or {})
    return found


def check_pod(registry: Registry, pod: JsonObject) -> None:
    """Refuse a new pod that does not keep the bounds of its namespace."""
    for limits in limits_of(registry, pod["metadata"]["namespace"]):
        problems = list(_pod_problems(pod["spec"], limits))
        if problems:
            raise forbidden("pods", pod["metadata"].get("name", ""), _together(problems))


def check_claim(registry: Registry, claim: JsonObject) -> None:
    """Refuse a claim that requests less or more storage than its namespace allows."""
    requests = amounts(((claim.get("spec") or {}).get("resources") or {}).get("requests"))
    for limits in limits_of(registry, claim["metadata"]["namespace"]):
        problems: list[str] = []
        for limit in limits:
            if limit.get("type") == _CLAIM:
                problems += _below_minimum(limit, requests, {})
                problems += _requested_above(limit, requests)
        if problems:
            name = claim["metadata"].get("name", "")
            raise forbidden("persistentvolumeclaims", name, _together(problems))


def _together(problems: list[str]) -> str:
    """Several errors as Go prints an aggregate; equal ones once."""
    texts = list(dict.fromkeys(problems))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _pod_problems(spec: JsonObject, limits: list[JsonObject]) -> Iterator[str]:
    for limit in limits:
        if limit.get("type") == "Container":
            for container in containers_of(spec):
                resources = container.get("resources") or {}
                asked, most = amounts(resources.get("requests")), amounts(resources.get("limits"))
                yield from _problems(limit, asked, most)
        elif limit.get("type") == "Pod":
            asked = pod_amounts(spec, "requests", with_overhead=False)
            most = pod_amounts(spec, "limits", with_overhead=False)
            yield from _problems(limit, asked, most)


def _problems(limit: JsonObject, requests: Amounts, most: Amounts) -> Iterator[str]:
    yield from _below_minimum(limit, requests, most)
    yield from _above_maximum(limit, requests, most)
    yield from _above_ratio(limit, requests, most)


def _bounds(limit: JsonObject, field: str) -> Mapping[str, str]:
    found: Mapping[str, str] = limit.get(field) or {}
    return {name: found[name] for name in sorted(found)}


def _below_minimum(limit: JsonObject, requests: Amounts, most: Amounts) -> Iterator[str]:
    for name, bound in _bounds(limit, "min").items():
        least = nano(bound)
        about = f"minimum {name} usage per {limit['type']} is {bound}"
        if name not in requests:
            yield f"{about}.  No request is specified"
        elif requests[name] < least:
            yield f"{about}, but request is {text_of(name, requests[name])}"
        elif name in most and most[name] < least:
            yield f"{about}, but limit is {text_of(name, most[name])}"


def _above_maximum(limit: JsonObject, requests: Amounts, most: Amounts) -> Iterator[str]:
    for name, bound in _bounds(limit, "max").items():
        highest = nano(bound)
        about = f"maximum {name} usage per {limit['type']} is {bound}"
        if name not in most:
            yield f"{about}.  No limit is specified"
        elif most[name] > highest:
            yield f"{about}, but limit is {text_of(name, most[name])}"
        elif name in requests and requests[name] > highest:
            yield f"{about}, but request is {text_of(name, requests[name])}"


def _requested_above(limit: JsonObject, requests: Amounts) -> Iterator[str]:
    for name, bound in _bounds(limit, "max").items():
        about = f"maximum {name} usage per {limit['type']} is {bound}"
        if name not in requests:
            yield f"{about}.  No request is specified"
        elif requests[name] > nano(bound):
            yield f"{about}, but request is {text_of(name, requests[name])}"


def _above_ratio(limit: JsonObject, requests: Amounts, most: Amounts) -> Iterator[str]:
    for name, bound in _bounds(limit, "maxLimitRequestRatio").items():
        about = f"{name} max limit to request ratio per {limit['type']} is {bound}"
        if not requests.get(name):
            yield f"{about}, but no request is specified or request is 0"
        elif not most.get(name):
            yield f"{about}, but no limit is specified or limit is 0"
        elif most[name] * _BILLION > nano(bound) * requests[name]:
            yield f"{about}, but provided ratio is {most[name] / requests[name]:f}"
