"""A wall clock that can be set, for programs of a test: libfaketime between them and the system.

Only the wall clock jumps: time passes as it does, and the monotonic clock shows it.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from control_plane.harness import ROOT, MissingError

TOOL = ROOT / "tools" / "faketime"
#: A library that is used instead of Debian's.
GIVEN = "PODIUM_FAKETIME"


def _library() -> str:
    given = os.environ.get(GIVEN)
    if given:
        return given
    tried = subprocess.run([TOOL], capture_output=True, text=True, check=False)
    if tried.returncode:
        raise MissingError(tried.stderr.strip())
    return tried.stdout.splitlines()[-1]


class WallClock:
    """The wall clock of the programs that get its environment."""

    def __init__(self, folder: Path, name: str = "clock") -> None:
        self._path = folder / name
        self.environment = {
            "LD_PRELOAD": _library(),
            "FAKETIME_TIMESTAMP_FILE": str(self._path),
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
        self.set(0)

    def set(self, seconds: int) -> None:
        """So much ahead of the true time, or behind it."""
        written = self._path.with_suffix(".new")
        written.write_text(f"{seconds:+d}\n", "utf-8")
        written.replace(self._path)
