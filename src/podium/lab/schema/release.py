"""The release of Kubernetes whose API is served: that of the models in `kubernetes_asyncio`."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final

#: The minor release if the version of the library cannot be read.
_FALLBACK: Final = 36


@cache
def minor_release() -> int:
    """The minor number of the release: 36 for Kubernetes 1.36.

    The first number of the library's version is the minor release of the API it was made from.
    """
    try:
        first = version("kubernetes_asyncio").partition(".")[0]
    except PackageNotFoundError:
        return _FALLBACK
    return int(first) if first.isdigit() else _FALLBACK
