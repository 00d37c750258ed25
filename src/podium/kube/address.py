"""Addresses of API servers in messages: the address of a lab has its token in its path."""

from __future__ import annotations

import re

#: Precedes the token in the address of a lab: over plain HTTP kubectl sends no token otherwise.
TOKEN_PATH = "/token/"  # noqa: S105
_TOKEN = re.compile(rf"{TOKEN_PATH}[^/]*")


def shown(url: str) -> str:
    """The address without a token."""
    return _TOKEN.sub("", url)
