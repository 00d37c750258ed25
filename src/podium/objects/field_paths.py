"""Paths of fields: `spec.containers[0].resources` in sentences, `/spec/containers/0` in patches."""

from __future__ import annotations

import re

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")


def joined(path: str, key: str) -> str:
    """*path* and a key below it: `requests.cpu`, `requests["nvidia.com/gpu"]`."""
    if not _PLAIN_KEY.fullmatch(key):
        return f'{path}["{key}"]'
    return f"{path}.{key}" if path else key


def pointer(path: str, key: str) -> str:
    """*path* and a key below it as a JSON pointer (RFC 6901): `/metadata/labels/a~1b`."""
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"


def pointer_keys(text: str) -> list[str]:
    """The keys of a JSON pointer."""
    return [key.replace("~1", "/").replace("~0", "~") for key in text.split("/")[1:]]
