"""A file system of one mebibyte, for tests of disks that are full. Only root can mount one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SIZE = 1 << 20


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A folder on a file system of its own, with room for `SIZE` bytes."""
    where = folder / "small"
    where.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    made = subprocess.run(
        [mount, "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", where],
        check=False,
        capture_output=True,
    )
    if made.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield where
    finally:
        subprocess.run(["umount", "--lazy", where], check=True)


def fill(folder: Path, leave: int = 0) -> Path:
    """A file that takes all room but *leave* bytes."""
    found = folder / "filler"
    with found.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
        file.truncate(max(file.tell() - leave, 0))
    return found
