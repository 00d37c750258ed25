"""Decisions as JSON lines in a file that is rotated when it is full.

`FILE` is written to; `FILE.1` is the one before it, up to the number that is kept. A full disk ends
the writing, not the scheduler.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from podium.errors import InputError
from podium.past.format.private_files import private
from podium.render.documents import to_json_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.past.decisions.decision_log import LoggedAttempt

MOST_BYTES: Final = 64 << 20
KEPT: Final = 3


class DecisionFile:
    """Appends entries of the decision log, one per line, without lists of nodes."""

    def __init__(
        self,
        path: str,
        warn: Callable[[str], None],
        *,
        most_bytes: int = MOST_BYTES,
        kept: int = KEPT,
    ) -> None:
        self._path, self._warn = Path(path), warn
        self._most_bytes, self._kept = most_bytes, kept
        self._file: BinaryIO | None = None
        try:
            self._open()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InputError(f"cannot be written: {reason}", where=path) from None

    def _open(self) -> None:
        self._file = open(self._path, "ab", opener=private)  # noqa: SIM115
        self._written = self._file.tell()

    def write(self, entry: LoggedAttempt) -> None:
        """Append one entry, rotating the file first if it would grow too large."""
        if self._file is None:
            return
        line = to_json_line(entry.as_json(whole=False)).encode()
        try:
            if self._written and self._written + len(line) > self._most_bytes:
                self._rotate()
            self._file.write(line)
        except OSError as error:
            self._give_up(error)
            return
        self._written += len(line)

    def _rotate(self) -> None:
        assert self._file is not None
        self._file.close()
        for number in range(self._kept, 0, -1):
            older = self._numbered(number)
            newer = self._numbered(number - 1)
            if newer.exists():
                newer.replace(older)
        if not self._kept:
            self._path.unlink()
        self._open()

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path

    def _give_up(self, error: OSError) -> None:
        reason = (error.strerror or str(error)).lower()
        self._warn(f"decisions are not written to {self._path} any more: {reason}")
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                file.close()

    def flush(self) -> None:
        """Write what is buffered."""
        if self._file is not None:
            try:
                self._file.flush()
            except OSError as error:
                self._give_up(error)

    def close(self) -> None:
        """Write what is buffered, and close the file."""
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None
