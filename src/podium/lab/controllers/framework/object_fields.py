"""Plain questions to plain objects: keys, conditions, times, owners."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from podium.objects.kinds.meta import JsonObject

NOTHING_YET: Final[JsonObject] = {}


def key_of(item: JsonObject) -> tuple[str, str]:
    """Namespace (empty for none) and name."""
    metadata = item["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def uid_of(item: JsonObject) -> str:
    """Who it is, whatever its name."""
    return str(item["metadata"].get("uid", ""))


def labels_of(item: JsonObject) -> dict[str, str]:
    """The labels of an object."""
    return item["metadata"].get("labels") or {}


def annotation(item: JsonObject, name: str) -> str:
    """The text of an annotation; empty if there is none."""
    return str((item["metadata"].get("annotations") or {}).get(name, ""))


def is_leaving(item: JsonObject) -> bool:
    """Whether it is being deleted."""
    return "deletionTimestamp" in item["metadata"]


def replicas_of(item: JsonObject) -> int:
    """How many pods it wishes for; one unless it says so."""
    replicas = item["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def condition(item: JsonObject, kind: str) -> JsonObject:
    """The condition of that type; empty if there is none."""
    for each in (item.get("status") or NOTHING_YET).get("conditions") or ():
        if each.get("type") == kind:
            found: JsonObject = each
            return found
    return NOTHING_YET


def controller_of(item: JsonObject) -> JsonObject | None:
    """The reference to the owner that manages it."""
    for reference in item["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            found: JsonObject = reference
            return found
    return None


@lru_cache(maxsize=1 << 10)
def moment(text: str | None) -> float | None:
    """A time as objects write it, in seconds since 1970."""
    if not text:
        return None
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


@lru_cache(maxsize=1 << 6)
def _written(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def timestamp(seconds: float) -> str:
    """A time as objects write it: whole seconds, UTC."""
    return _written(int(seconds))
