"""Files, folders and standard input to objects, ready to be scheduled.

What the user wrote is checked first; only then is it completed with what the API server and the
controllers would have added, so that errors speak of what is in the files.
"""

from __future__ import annotations

import gc
import gzip
import os
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from podium.errors import InputError
from podium.objects.completing.defaults import with_defaults
from podium.objects.completing.expand import expand
from podium.objects.reading.collection import Objects
from podium.objects.reading.decode import decode
from podium.objects.reading.validate import validate

_SUFFIXES = (".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz")
_GZIP = b"\x1f\x8b"
_STDIN = "-"


def read(paths: Sequence[str]) -> Objects:
    """The objects of all *paths* (files, folders, `-`: standard input), checked and completed."""
    objects = load(paths)
    validate(objects)
    objects = expand(with_defaults(objects))
    # These objects live until the end; the garbage collector need not look at them again.
    gc.freeze()
    return objects


def load(paths: Sequence[str]) -> Objects:
    """The objects of all *paths* as they were written."""
    objects = Objects()
    for where, data in contents(paths):
        decode(data, where, into=objects)
    return objects


def contents(paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Every file of *paths*: what it is called, and what is in it."""
    for path in _files(paths):
        where = "<stdin>" if path == _STDIN else path
        yield where, _unpacked(_content(path), where)


def _files(paths: Sequence[str]) -> Iterator[str]:
    """Every file once, folders opened; what is named on the command line is taken as it is."""
    if not paths:
        raise InputError("no input", hint="name files, folders, or - for standard input")
    seen = set()
    for path in paths:
        for file in _in_folder(path) if path != _STDIN and Path(path).is_dir() else [path]:
            real = file if file == _STDIN else os.path.realpath(file)
            if real not in seen:
                seen.add(real)
                yield file


def _in_folder(folder: str) -> list[str]:
    """Manifests at any depth, in the order of their paths; hidden files and folders are not."""
    found = []
    for root, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [
            str(Path(root, name))
            for name in names
            if name.endswith(_SUFFIXES) and not name.startswith(".")
        ]
    if not found:
        hint = "they end in .yaml, .yml or .json"
        raise InputError("holds no manifests", where=folder, hint=hint)
    return sorted(found)


def _content(path: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if path == _STDIN else Path(path).read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from None


def _unpacked(data: bytes, where: str) -> bytes:
    if not data.startswith(_GZIP):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"is not a whole gzip file: {error}", where=where) from None


def _refuse(error: OSError) -> None:
    raise _unreadable(str(error.filename), error)


def _unreadable(path: str, error: OSError) -> InputError:
    reason = (error.strerror or str(error)).lower()
    return InputError(f"cannot be read: {reason}", where=path)
