"""Defaults of claims, their templates, device classes and slices.

Upstream: pkg/apis/resource/v1/defaults.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from podium.objects.kinds.meta import JsonObject


def set_resource_claim_defaults(item: JsonObject) -> None:
    """Set how many devices each request of a claim wants."""
    _set_request_defaults(item.get("spec") or {})


def set_claim_template_defaults(item: JsonObject) -> None:
    """Set the same in the claims that are made from a template."""
    _set_request_defaults((item.get("spec") or {}).get("spec") or {})


def set_slice_defaults(item: JsonObject) -> None:
    """Leave out attributes with several values, whose feature gate is off by default."""
    for device in (item.get("spec") or {}).get("devices") or ():
        device.pop("nodeAllocatableResourceMappings", None)
        for attribute in (device.get("attributes") or {}).values():
            for field in ("bools", "ints", "strings", "versions"):
                attribute.pop(field, None)


def set_taint_times(item: JsonObject, now: str) -> None:
    """Set when the taints of devices were added, where that is not given."""
    for device in (item.get("spec") or {}).get("devices") or ():
        for taint in device.get("taints") or ():
            taint.setdefault("timeAdded", now)


def _set_request_defaults(spec: JsonObject) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        for each in _alternatives(request):
            mode = each.get("allocationMode") or "ExactCount"
            each["allocationMode"] = mode
            if mode == "ExactCount" and not each.get("count"):
                each["count"] = 1


def _alternatives(request: JsonObject) -> Iterator[JsonObject]:
    if request.get("exactly") is not None:
        yield request["exactly"]
    yield from request.get("firstAvailable") or ()
