"""Times as Kubernetes objects write them, as seconds since 1970."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

#: What an absent time is: before every other, as Go's zero time.
NEVER: Final = -math.inf


@lru_cache(maxsize=1 << 12)
def seconds(text: str | None) -> float:
    """Read an RFC 3339 time ("2024-05-01T10:00:00Z"); an absent or empty one is `NEVER`.

    Raises `ValueError` for any other text that is not a time.
    """
    if not text:
        return NEVER
    read = datetime.fromisoformat(text)
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
