"""Amounts of resources as short text."""

from __future__ import annotations

from typing import Final

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
