"""Texts in tables: ages, selectors, lists, as kubectl's readers know them.

Upstream: apimachinery/pkg/util/duration, pkg/labels, apis/meta/v1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from podium.lab.api.status import JsonDict

NONE, UNKNOWN, UNSET = "<none>", "<unknown>", "<unset>"
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


def seconds_of(timestamp: Any) -> float | None:
    """A time of the API in seconds; none if there is none."""
    if not isinstance(timestamp, str) or not timestamp:
        return None
    try:
        read = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


def since(timestamp: Any, now: float) -> str:
    """How long ago that was."""
    then = seconds_of(timestamp)
    return UNKNOWN if then is None else human(now - then)


def age(object_: JsonDict, now: float) -> str:
    """How long the object has been there."""
    return since(metadata(object_).get("creationTimestamp"), now)


#: Below a duration: the unit, and the smaller unit that is told as well, if any.
_SCALE = (
    (10 * _MINUTE, (_MINUTE, "m"), (1, "s")),
    (3 * _HOUR, (_MINUTE, "m"), None),
    (8 * _HOUR, (_HOUR, "h"), (_MINUTE, "m")),
    (2 * _DAY, (_HOUR, "h"), None),
    (8 * _DAY, (_DAY, "d"), (_HOUR, "h")),
    (2 * _YEAR, (_DAY, "d"), None),
    (8 * _YEAR, (_YEAR, "y"), (_DAY, "d")),
)


def human(seconds: float) -> str:
    """A duration with two or three figures that matter."""
    whole = int(seconds)
    if whole < 2 * _MINUTE:
        return "<invalid>" if whole < -1 else f"{max(whole, 0)}s"
    for bound, (unit, letter), smaller in _SCALE:
        if whole < bound:
            rest = whole % unit // smaller[0] if smaller else 0
            also = f"{rest}{smaller[1]}" if smaller and rest else ""
            return f"{whole // unit}{letter}{also}"
    return f"{whole // _YEAR}y"


def metadata(object_: JsonDict) -> JsonDict:
    """The metadata, empty if there is none."""
    return part(object_, "metadata")


def part(object_: Any, *path: str) -> JsonDict:
    """The object at a path, empty if there is none."""
    for name in path:
        object_ = object_.get(name) if isinstance(object_, dict) else None
    return object_ if isinstance(object_, dict) else {}


def items(object_: Any, *path: str) -> list[Any]:
    """The objects of a list at a path, empty if there is none."""
    found = part(object_, *path[:-1]).get(path[-1])
    return found if isinstance(found, list) else []


def number(object_: JsonDict, *path: str) -> int:
    """The number at a path, 0 if there is none."""
    found = part(object_, *path[:-1]).get(path[-1])
    return found if isinstance(found, int) else 0


def text(object_: JsonDict, *path: str, default: str = "") -> str:
    """The text at a path."""
    found = part(object_, *path[:-1]).get(path[-1])
    return default if found is None or found == "" else str(found)


def labels(found: Mapping[str, Any]) -> str:
    """Labels in a row."""
    return ",".join(f"{key}={found[key]}" for key in sorted(found)) or NONE


def selector(found: JsonDict) -> str:
    """A label selector in a row."""
    written = [(key, f"{key}={value}") for key, value in part(found, "matchLabels").items()]
    for each in items(found, "matchExpressions"):
        key, operator = str(each.get("key")), each.get("operator")
        values = ",".join(sorted(map(str, each.get("values") or [])))
        forms = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }
        written.append((key, forms.get(str(operator), key)))
    return ",".join(form for _, form in sorted(written, key=lambda each: each[0]))


def containers(template: JsonDict) -> tuple[str, str]:
    """Names and images of the containers of a template."""
    found = items(template, "spec", "containers")
    names = ",".join(str(each.get("name", "")) for each in found)
    return names, ",".join(str(each.get("image", "")) for each in found)


def at_most_three(found: Iterable[str], *, empty: str = UNSET) -> str:
    """The first three, and how many more there are."""
    listed = list(found)
    shown = ",".join(listed[:3])
    more = f" + {len(listed) - 3} more..." if len(listed) > 3 else ""
    return shown + more or empty


def condition(object_: JsonDict, kind: str) -> str:
    """The status of a condition, empty if there is no such condition."""
    for each in items(object_, "status", "conditions"):
        if each.get("type") == kind:
            return str(each.get("status", ""))
    return ""
