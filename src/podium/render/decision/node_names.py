"""Names of nodes without what all of them have in common."""

from __future__ import annotations

from os.path import commonprefix
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

#: A shorter ending is not worth a remark.
_SHORTEST: Final = 8


def common_ending(names: Sequence[str]) -> str:
    """The domain that all names end in (`.eu-west-1.compute.internal`); empty if there is none."""
    if len(names) < 2:
        return ""
    shared = commonprefix([name[::-1] for name in names])[::-1]  # noqa: RUF071  on purpose
    _, dot, domain = shared.partition(".")
    return f".{domain}" if dot and len(domain) >= _SHORTEST else ""
