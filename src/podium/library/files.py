"""Text files, line by line or whole: policies, configurations, recordings."""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from podium.errors import InputError
from podium.objects.reading.encoding import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

STDIN = "-"


def text_from(path: str) -> str:
    """The text of a file, or of standard input (`-`)."""
    try:
        data = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
        return text_of(data)
    except OSError as error:
        raise unreadable(path, error) from None
    except InputError as error:
        raise error.located(where=path) from None


def lines_of(path: str) -> Iterator[tuple[int, bytes]]:
    """The lines of a file, counted from 1 and without the empty ones; `.gz` is unpacked."""
    opened = gzip.open if path.endswith(".gz") else open
    try:
        if path == STDIN:
            yield from _numbered(sys.stdin.buffer)
            return
        with opened(path, "rb") as file:
            yield from _numbered(file)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        what = str(error)[:1].lower() + str(error)[1:]
        raise InputError(f"is not a whole gzip file: {what}", where=path) from None
    except OSError as error:
        raise unreadable(path, error) from None


def _numbered(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, line


def opened_folders(paths: Sequence[str], suffixes: tuple[str, ...], hint: str) -> list[str]:
    """The files in *paths*, and the files with these endings in folders of *paths*, each once."""
    found: dict[str, str] = {}
    for path in paths:
        for file in _within(path, suffixes, hint) if Path(path).is_dir() else [path]:
            found.setdefault(os.path.realpath(file), file)
    return list(found.values())


def _within(folder: str, suffixes: tuple[str, ...], hint: str) -> list[str]:
    found = sorted(
        str(file)
        for file in Path(folder).rglob("*")
        if file.name.endswith(suffixes) and not file.name.startswith(".")
    )
    if not found:
        raise InputError("holds nothing to read", where=folder, hint=hint)
    return found


def unreadable(path: str, error: OSError) -> InputError:
    """The error for a file that cannot be opened."""
    reason = (error.strerror or str(error)).lower()
    return InputError(f"cannot be read: {reason}", where=path)
