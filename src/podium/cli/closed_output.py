"""The reader of stdout is gone, as in `podium schedule … | head`."""

from __future__ import annotations

import os


class ClosedOutputError(Exception):
    """The reader of stdout is gone, as in `podium schedule … | head`.

    Not an `OSError`, because click handles those itself.
    """


def discard_output() -> None:
    """Redirect stdout to nowhere: closing a broken pipe at exit would print an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
