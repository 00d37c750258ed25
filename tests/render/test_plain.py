"""Text that is safe to print, lists of names, numbers with nouns, amounts."""

from __future__ import annotations

import pytest

from podium.render.plain import counted, format_amount, listed, printable


def test_control_characters_are_made_visible() -> None:
    assert printable("a\x1b[2Jb\u202ec\n") == "a\\x1b[2Jb\\u202ec\n"


def test_nouns_follow_their_number() -> None:
    assert [counted(n, "node") for n in (0, 1, 2)] == ["0 nodes", "1 node", "2 nodes"]


def test_lists_are_cut() -> None:
    assert listed(["a", "b"], 2) == "a, b"
    assert listed(["a", "b", "c", "d"], 2) == "a, b and 2 more"


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
