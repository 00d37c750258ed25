"""Paths of fields as error sentences write them: `spec.containers[0].resources`."""

from __future__ import annotations

import re

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")


def joined(path: str, key: str) -> str:
    """*path* and a key below it: `requests.cpu`, `requests["nvidia.com/gpu"]`."""
    if not _PLAIN_KEY.fullmatch(key):
        return f'{path}["{key}"]'
    return f"{path}.{key}" if path else key
