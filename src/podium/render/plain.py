"""Plain text: names that are safe to print, lists of names, numbers with nouns, amounts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text with control characters escaped, newlines and tabs excepted."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def counted(count: int, noun: str) -> str:
    """A number with a noun: `1 node`, `2 nodes`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(names: Sequence[str], most: int = 3) -> str:
    """The first names, and the number of the others."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_STEP: Final = 1024


def format_amount(resource: str, amount: int) -> str:
    """An amount with its unit: *amount* is in thousandths of a CPU, in bytes, or a number."""
    if resource == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource in {"memory", "ephemeral-storage"} or resource.startswith("hugepages-"):
        return _bytes(amount)
    return str(amount)


def _bytes(amount: int) -> str:
    scaled, power = float(abs(amount)), 0
    while scaled >= _STEP and power < len(_BINARY) - 1:
        scaled, power = scaled / _STEP, power + 1
    sign = "-" if amount < 0 else ""
    return f"{sign}{scaled:.4g}{_BINARY[power]}"


def common_suffix(names: Iterable[str], *, shortest: int = 0) -> str:
    """What all names end in, from a dot on; empty if it is shorter, or for less than two names."""
    known = set(names)
    if len(known) < 2:
        return ""
    tails = [name.split(".")[1:] for name in known]
    shared: list[str] = []
    for parts in zip(*(reversed(tail) for tail in tails), strict=False):
        if len(set(parts)) > 1:
            break
        shared.insert(0, parts[0])
    suffix = f".{'.'.join(shared)}" if shared else ""
    return suffix if len(suffix) >= shortest else ""
