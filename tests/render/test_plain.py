"""Text that is safe to print."""

from __future__ import annotations

from podium.render.plain import counted, listed, printable


def test_control_characters_are_made_visible() -> None:
    assert printable("a\x1b[2Jb\u202ec\n") == "a\\x1b[2Jb\\u202ec\n"


def test_nouns_follow_their_number() -> None:
    assert [counted(n, "node") for n in (0, 1, 2)] == ["0 nodes", "1 node", "2 nodes"]


def test_lists_are_cut() -> None:
    assert listed(["a", "b"], 2) == "a, b"
    assert listed(["a", "b", "c", "d"], 2) == "a, b and 2 more"
