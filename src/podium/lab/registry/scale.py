"""The `Scale` of a workload: its number of replicas, read and written alone.

Upstream: pkg/registry/apps/*/storage (ScaleREST).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from podium.lab.api.encoding import APPLY_PATCH, PATCH_TYPES
from podium.lab.api.field_errors import invalid_value
from podium.lab.api.options import WriteOptions
from podium.lab.api.resources import Resource
from podium.lab.api.status import (
    bad_request,
    conflict,
    invalid,
    unsupported_media_type,
)
from podium.lab.patch.patches import apply_patch
from podium.lab.registry.metadata import version_precondition
from podium.lab.schema.typed_bodies import read_object, to_json
from podium.objects.kinds.meta import JsonObject, LabelSelector

if TYPE_CHECKING:
    from podium.lab.registry.registry import Registry

_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(item: JsonObject, resource: Resource) -> JsonObject:
    """The `Scale` of a workload, or of a custom object whose definition says where it is."""
    if resource.custom is not None:
        return _custom_scale(item, resource.custom.scale or {})
    metadata, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in _METADATA if name in metadata},
        "spec": {"replicas": spec.get("replicas", 0)},
        "status": {
            "replicas": status.get("replicas", 0),
            "selector": _selector_text(spec.get("selector")),
        },
    }


def _custom_scale(item: JsonObject, paths: JsonObject) -> JsonObject:
    metadata = item["metadata"]
    status: JsonObject = {"replicas": _at(item, paths.get("statusReplicasPath")) or 0}
    selector = _at(item, paths.get("labelSelectorPath"))
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in _METADATA if name in metadata},
        "spec": {"replicas": _at(item, paths.get("specReplicasPath")) or 0},
        "status": status,
    }


def _at(item: JsonObject, path: str | None) -> Any:
    """The value at a path of fields (`.spec.replicas`); `None` if there is none."""
    found: Any = item
    for name in (path or "").strip(".").split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _set_replicas(item: JsonObject, resource: Resource, replicas: int) -> None:
    path = ".spec.replicas"
    if resource.custom is not None and resource.custom.scale:
        path = resource.custom.scale.get("specReplicasPath") or path
    *parents, last = path.strip(".").split(".")
    target = item
    for name in parents:
        target = target.setdefault(name, {})
    target[last] = replicas


def _selector_text(selector: JsonObject | None) -> str:
    """A selector in the syntax of `kubectl get --selector`."""
    if not selector:
        return ""
    if not {"matchLabels", "matchExpressions"} & selector.keys():
        selector = {"matchLabels": selector}
    read = msgspec.convert(selector, LabelSelector)
    terms = [f"{key}={value}" for key, value in sorted((read.match_labels or {}).items())]
    for each in read.match_expressions or ():
        values = ",".join(sorted(each.values or ()))
        terms.append(
            {
                "In": f"{each.key} in ({values})",
                "NotIn": f"{each.key} notin ({values})",
                "Exists": each.key,
                "DoesNotExist": f"!{each.key}",
            }.get(each.operator, each.key)
        )
    return ",".join(terms)


def patch_scale(content_type: str, current: JsonObject, patch: Any) -> JsonObject:
    """A `Scale` after a patch of any type but server-side apply."""
    if content_type == APPLY_PATCH:
        raise unsupported_media_type([each for each in PATCH_TYPES if each != APPLY_PATCH])
    new = apply_patch("Scale", content_type, current, patch)
    return read_object("Scale", "autoscaling/v1", to_json(new))


def update_scale(
    registry: Registry,
    resource: Resource,
    place: tuple[str, str],
    scale: JsonObject,
    options: WriteOptions,
) -> JsonObject:
    """Set the replicas of a workload to those of *scale*; *place* is its namespace and name."""
    namespace, name = place
    metadata = scale.get("metadata") or {}
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise bad_request("spec.replicas: expected a whole number")
    if replicas < 0:
        problem = invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid("Scale", "autoscaling", name, [problem])
    if metadata.get("name") and metadata["name"] != name:
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL "
            f"({name})"
        )
    old = registry.get(resource.storage, name, namespace)
    version = version_precondition(metadata)
    if version and version != old["metadata"]["resourceVersion"]:
        raise conflict(resource.qualified, name)

    def change(item: JsonObject) -> JsonObject:
        _set_replicas(item, resource, replicas)
        return item

    made = registry.modify(resource.storage, name, namespace, change=change, options=options)
    return scale_of(made, resource)
