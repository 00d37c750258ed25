"""Numbers as signed 64-bit integers hold them."""

from __future__ import annotations

TOP = 1 << 63


def wrap(number: int) -> int:
    """The number as a signed 64-bit integer holds it."""
    if -TOP <= number < TOP:
        return number
    return (number + TOP) % (2 * TOP) - TOP
