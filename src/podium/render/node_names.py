"""Names of nodes without what all of them end in, such as a domain of the cloud."""

from __future__ import annotations

from collections.abc import Iterable


def common_suffix(names: Iterable[str]) -> str:
    """What all names end in, from a dot on; empty if there are fewer than two names."""
    known = set(names)
    if len(known) < 2:
        return ""
    tails = [name.split(".")[1:] for name in known]
    shared: list[str] = []
    for parts in zip(*(reversed(tail) for tail in tails), strict=False):
        if len(set(parts)) > 1:
            break
        shared.insert(0, parts[0])
    return f".{'.'.join(shared)}" if shared else ""
