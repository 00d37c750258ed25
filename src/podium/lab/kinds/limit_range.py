"""Limit ranges: defaults, validation, table.

Upstream: pkg/apis/core.
"""

from __future__ import annotations

from collections.abc import Mapping

from podium.lab.kinds.kind import KindStrategy
from podium.objects.kinds.meta import JsonObject


def set_limit_range_defaults(item: JsonObject) -> None:
    """Set the defaults of container limits: `max` for the limit, and that for the request."""
    for limit in (item.get("spec") or {}).get("limits") or ():
        if limit.get("type") != "Container":
            continue
        default = limit.setdefault("default", {})
        for name, amount in (limit.get("max") or {}).items():
            default.setdefault(name, amount)
        asked = limit.setdefault("defaultRequest", {})
        for name, amount in default.items():
            asked.setdefault(name, amount)
        for name, amount in (limit.get("min") or {}).items():
            asked.setdefault(name, amount)


KINDS: Mapping[str, KindStrategy] = {
    "LimitRange": KindStrategy(set_defaults=set_limit_range_defaults),
}
