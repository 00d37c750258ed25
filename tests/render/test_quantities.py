"""Amounts of resources as text."""

from __future__ import annotations

import pytest

from podium.render.plain import format_amount


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 2000, "2"),
        ("cpu", 1500, "1500m"),
        ("cpu", 0, "0"),
        ("memory", 512 << 20, "512Mi"),
        ("memory", 1536 << 20, "1.5Gi"),
        ("memory", -(1 << 30), "-1Gi"),
        ("ephemeral-storage", 1000, "1000"),
        ("hugepages-2Mi", 4 << 20, "4Mi"),
        ("example.com/gpu", 4096, "4096"),
        ("pods", 110, "110"),
    ],
)
def test_amounts_are_short(resource: str, amount: int, text: str) -> None:
    assert format_amount(resource, amount) == text
