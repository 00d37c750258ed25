"""Media types of bodies and patches, objects as JSON bytes and back, and timestamps."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
#: The types in which an object may be sent.
OBJECT_TYPES = (JSON, YAML, PROTOBUF)

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(type=dict[str, Any]).decode


@lru_cache(maxsize=1 << 10)
def parse_time(text: str | None) -> float | None:
    """The seconds since 1970 of a timestamp; None if it is absent or unreadable."""
    if not text:
        return None
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


@lru_cache(maxsize=1 << 8)
def _format_second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_time(seconds: float) -> str:
    """The timestamp of a time in seconds since 1970."""
    return _format_second(int(seconds))
