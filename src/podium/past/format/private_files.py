"""Files for the eyes of their owner: they tell what runs in a cluster, and where."""

from __future__ import annotations

import os
from contextlib import suppress

_OWNER_ALONE = 0o600


def private(path: str, flags: int) -> int:
    """An opener for `open`: the file is readable for its owner alone, also if it was there."""
    descriptor = os.open(path, flags, _OWNER_ALONE)
    with suppress(OSError):  # a device, or a file of another owner that may be written
        os.fchmod(descriptor, _OWNER_ALONE)
    return descriptor
