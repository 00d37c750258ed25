"""What the registry does for claims and slices besides defaults and validation.

Upstream: pkg/registry/resource.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.lab.api.field_errors import forbidden_field
from podium.lab.api.status import invalid
from podium.objects.kinds.meta import JsonObject

if TYPE_CHECKING:
    from podium.lab.api.resources import Resource
    from podium.lab.registry.registry import Registry

#: Namespaces with this label may use devices that others use, to watch them.
_ADMIN_LABEL: Final = "resource.kubernetes.io/admin-access"


def check_admin_access(registry: Registry, resource: Resource, item: JsonObject) -> None:
    """Refuse a claim or template with admin access in a namespace that does not allow it."""
    spec = item.get("spec") or {}
    if resource.kind == "ResourceClaimTemplate":
        spec = spec.get("spec") or {}
    for index, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        if (request.get("exactly") or {}).get("adminAccess"):
            path = f"spec.devices.requests[{index}].adminAccess"
            _refuse_without_label(registry, resource, item, path)
            return


def check_granted_admin_access(registry: Registry, resource: Resource, item: JsonObject) -> None:
    """Refuse an allocation with admin access in a namespace that does not allow it."""
    devices = ((item.get("status") or {}).get("allocation") or {}).get("devices") or {}
    for index, result in enumerate(devices.get("results") or ()):
        if result.get("adminAccess"):
            path = f"status.allocation.devices.results[{index}].adminAccess"
            _refuse_without_label(registry, resource, item, path)
            return


def _refuse_without_label(
    registry: Registry, resource: Resource, item: JsonObject, path: str
) -> None:
    about = item["metadata"]
    namespace = registry.find("namespaces", about.get("namespace", "")) or {"metadata": {}}
    if (namespace["metadata"].get("labels") or {}).get(_ADMIN_LABEL) == "true":
        return
    what = (
        f"admin access to devices requires the `{_ADMIN_LABEL}: true` label on the containing "
        "namespace"
    )
    name = about.get("name") or about.get("generateName") or ""
    raise invalid(resource.kind, resource.group, name, [forbidden_field(path, what)])
