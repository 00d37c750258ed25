"""A snapshot as one file: what it says of itself, then every object, renamed where asked."""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec

from podium.errors import InputError
from podium.objects.snapshots.anonymizing import anonymize
from podium.objects.snapshots.profile_renaming import renamed_profile
from podium.objects.snapshots.pseudonyms import Pseudonyms
from podium.objects.snapshots.trimming import snapshot_kinds
from podium.render.documents import to_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def written(output: str) -> Iterator[IO[bytes]]:
    """The file, there as a whole or not at all."""
    if output == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(output)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise _unwritable(output, error) from None
    try:
        with os.fdopen(handle, "wb") as plain:
            if output.endswith(".gz"):
                with gzip.GzipFile(fileobj=plain, mode="wb", compresslevel=6, mtime=0) as packed:
                    yield packed  # type: ignore[misc]
            else:
                yield plain
        Path(name).replace(target)
    except OSError as error:
        raise _unwritable(output, error) from None
    finally:
        Path(name).unlink(missing_ok=True)


def _unwritable(output: str, error: OSError) -> InputError:
    reason = (error.strerror or str(error)).lower()
    return InputError(f"cannot be written: {reason}", where=output)


def write(
    folder: Path, stream: IO[bytes], output: str, head: dict[str, Any], *, anonymize: bool
) -> None:
    """Write the *head* and what the *folder* holds, in the form that *output* ends in."""
    if anonymize:
        names = _gathered(folder, head)
        head["profile"] = renamed_profile(head["profile"], names)
    else:
        names = None
    if output.removesuffix(".gz").endswith((".yaml", ".yml")):
        _write_yaml(folder, stream, head, names)
    else:
        _write_json(folder, stream, head, names)


def _gathered(folder: Path, head: dict[str, Any]) -> Pseudonyms:
    """Every name there is, with its new one."""
    names = Pseudonyms()
    renamed_profile(head["profile"], names)
    for _ in _objects(folder, names):
        pass
    names.assign()
    return names


def _objects(folder: Path, names: Pseudonyms | None) -> Iterator[bytes]:
    """The objects kind by kind, as JSON, renamed where there are *names*."""
    for kind in snapshot_kinds():
        file = folder / kind.name
        if not file.exists():
            continue
        with file.open("rb") as lines:
            for line in lines:
                if names is None:
                    yield line.rstrip()
                    continue
                item = msgspec.json.decode(line)
                anonymize(kind.name, item, names)
                yield msgspec.json.encode(item)


def _write_json(
    folder: Path, stream: IO[bytes], head: dict[str, Any], names: Pseudonyms | None
) -> None:
    """A List with an object per line."""
    stream.write(b'{"apiVersion":"v1","kind":"List","items":[\n' + msgspec.json.encode(head))
    for item in _objects(folder, names):
        stream.write(b",\n" + item)
    stream.write(b"\n]}\n")


def _write_yaml(
    folder: Path, stream: IO[bytes], head: dict[str, Any], names: Pseudonyms | None
) -> None:
    """A document per object."""
    stream.write(to_yaml(head).encode())
    for item in _objects(folder, names):
        stream.write(b"---\n" + to_yaml(msgspec.json.decode(item)).encode())
