"""The folder of the history that a lab keeps in memory.

The folder is on a file system in memory where the machine has one, else among the temporary files.
It is deleted when the lab ends. A lab also deletes the folders of labs that were killed, whose
lock no process holds.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from podium.past.format.writing import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX: Final = "podium-lab-"
_LOCK: Final = "lock"
#: A file system in memory, on Linux.
_IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108  the folder below it is private
_MIB: Final = 1 << 20
#: The largest size of a history in memory.
LIMITS: Final = Limits(segment_bytes=4 * _MIB, total_bytes=32 * _MIB)


@contextmanager
def memory_folder(parent: Path | None = None) -> Iterator[str]:
    """A private folder that is deleted at the end of the `with`; *parent* is where to make it."""
    if parent is None:
        usable = _IN_MEMORY.is_dir() and os.access(_IN_MEMORY, os.W_OK)
        parent = _IN_MEMORY if usable else Path(tempfile.gettempdir())
    _delete_abandoned(parent)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    try:
        with (folder / _LOCK).open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield str(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _delete_abandoned(parent: Path) -> None:
    """Delete the folders of programs that ended without doing so."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError), (folder / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
