"""Addresses of API servers as they may be told: that of a lab has its token in its path."""

from __future__ import annotations

import re

#: Before the token, in the address of a lab: kubectl sends none otherwise over plain HTTP.
TOKEN_PATH = "/token/"  # noqa: S105
_TOKEN = re.compile(rf"{TOKEN_PATH}[^/]*")


def shown(url: str) -> str:
    """The address without a token."""
    return _TOKEN.sub("", url)
