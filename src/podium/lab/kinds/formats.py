"""Ages, durations, selectors and lists as `kubectl get` prints them.

Upstream: apimachinery/pkg/util/duration, pkg/labels, apis/meta/v1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from podium.lab.kinds.object_fields import list_at, metadata_of, object_at
from podium.objects.kinds.meta import JsonObject

NONE, UNKNOWN, UNSET = "<none>", "<unknown>", "<unset>"
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


def parse_time(timestamp: Any) -> float | None:
    """A timestamp of the API in seconds since 1970, `None` if it is absent or malformed."""
    if not isinstance(timestamp, str) or not timestamp:
        return None
    try:
        read = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


def time_since(timestamp: Any, now: float) -> str:
    """The duration from a timestamp until now."""
    then = parse_time(timestamp)
    return UNKNOWN if then is None else duration(now - then)


def age(item: JsonObject, now: float) -> str:
    """The duration since an object was created."""
    return time_since(metadata_of(item).get("creationTimestamp"), now)


#: For durations below a bound: their unit, and a smaller unit for the rest, if it is printed.
_UNITS = (
    (10 * _MINUTE, (_MINUTE, "m"), (1, "s")),
    (3 * _HOUR, (_MINUTE, "m"), None),
    (8 * _HOUR, (_HOUR, "h"), (_MINUTE, "m")),
    (2 * _DAY, (_HOUR, "h"), None),
    (8 * _DAY, (_DAY, "d"), (_HOUR, "h")),
    (2 * _YEAR, (_DAY, "d"), None),
    (8 * _YEAR, (_YEAR, "y"), (_DAY, "d")),
)


def duration(seconds: float) -> str:
    """A duration with two or three significant figures."""
    whole = int(seconds)
    if whole < 2 * _MINUTE:
        return "<invalid>" if whole < -1 else f"{max(whole, 0)}s"
    for bound, (unit, letter), smaller in _UNITS:
        if whole < bound:
            rest = whole % unit // smaller[0] if smaller else 0
            rest_text = f"{rest}{smaller[1]}" if smaller and rest else ""
            return f"{whole // unit}{letter}{rest_text}"
    return f"{whole // _YEAR}y"


def labels_text(labels: Mapping[str, Any]) -> str:
    """Labels as a comma-separated list of `key=value`."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) or NONE


def selector_text(selector: JsonObject) -> str:
    """A label selector in the syntax of `kubectl get --selector`."""
    terms = [(key, f"{key}={value}") for key, value in object_at(selector, "matchLabels").items()]
    for each in list_at(selector, "matchExpressions"):
        key, operator = str(each.get("key")), each.get("operator")
        values = ",".join(sorted(map(str, each.get("values") or [])))
        forms = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }
        terms.append((key, forms.get(str(operator), key)))
    return ",".join(term for _, term in sorted(terms, key=lambda each: each[0]))


def container_cells(template: JsonObject) -> tuple[str, str]:
    """The names and the images of the containers of a pod template."""
    found = list_at(template, "spec", "containers")
    names = ",".join(str(each.get("name", "")) for each in found)
    return names, ",".join(str(each.get("image", "")) for each in found)


def first_three(values: Iterable[str], *, empty: str = UNSET) -> str:
    """The first three values and the number of the others."""
    listed = list(values)
    shown = ",".join(listed[:3])
    more = f" + {len(listed) - 3} more..." if len(listed) > 3 else ""
    return shown + more or empty
