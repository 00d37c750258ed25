"""A reader that has gone away, which is no error of ours: `podium schedule … | head`."""

from __future__ import annotations

import os


class NobodyReadsError(Exception):
    """What is printed has nowhere to go. Not an `OSError`, which click would take for its own."""


def silence() -> None:
    """The interpreter must not notice the closed pipe when it closes stdout itself."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
