"""A snapshot as one file: a header with the profile, then every object, renamed where asked."""

from __future__ import annotations

import asyncio
import gzip
import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import msgspec

from podium import __version__
from podium.errors import InputError
from podium.library.snapshots.listing import Listed, list_objects
from podium.objects.kinds.registry import KINDS
from podium.objects.snapshots import anonymizing
from podium.objects.snapshots.anonymizing import renamed_profile
from podium.objects.snapshots.pseudonyms import Pseudonyms
from podium.render.documents import to_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from podium.kube.access import Access

STDOUT: Final = "-"


def write_snapshot(
    access: Access,
    out: str,
    profile: Mapping[str, Any],
    *,
    form: str | None = None,
    anonymize: bool = False,
) -> Listed:
    """List what decisions and plans depend on and write it to the file *out*; `-` is stdout.

    The *form* is `yaml`, a document per object, or `json`, an object per line; by default the
    ending of *out* says which. A file that ends in `.gz` is compressed.
    """
    if form is None:
        form = "yaml" if out.removesuffix(".gz").endswith((".yaml", ".yml")) else "json"
    with tempfile.TemporaryDirectory(prefix="podium-") as folder:
        listed = asyncio.run(list_objects(access, Path(folder)))
        header: dict[str, Any] = {"apiVersion": "podium/v1", "kind": "Snapshot"}
        header["writtenBy"] = f"podium {__version__}"
        if listed.forbidden:
            header["notRead"] = listed.forbidden
        with opened(out) as stream:
            _write(Path(folder), stream, form, header, profile, anonymize=anonymize)
    return listed


@contextmanager
def opened(out: str) -> Iterator[IO[bytes]]:
    """The file to write to. It replaces one of that name only when it is complete."""
    if out == STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(out)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise _unwritable(out, error) from None
    try:
        with os.fdopen(handle, "wb") as plain:
            if out.endswith(".gz"):
                with gzip.GzipFile(fileobj=plain, mode="wb", compresslevel=6, mtime=0) as packed:
                    yield packed  # type: ignore[misc]
            else:
                yield plain
        Path(name).replace(target)
    except OSError as error:
        raise _unwritable(out, error) from None
    finally:
        Path(name).unlink(missing_ok=True)


def _unwritable(out: str, error: OSError) -> InputError:
    reason = (error.strerror or str(error)).lower()
    return InputError(f"cannot be written: {reason}", where=out)


def _write(
    folder: Path,
    stream: IO[bytes],
    form: str,
    header: dict[str, Any],
    profile: Mapping[str, Any],
    *,
    anonymize: bool,
) -> None:
    names = None
    if anonymize:
        names = _pseudonyms(folder, profile)
        header["anonymized"] = True
        profile = renamed_profile(profile, names)
    header["profile"] = profile
    if form == "yaml":
        _write_yaml(folder, stream, header, names)
    else:
        _write_json(folder, stream, header, names)


def _pseudonyms(folder: Path, profile: Mapping[str, Any]) -> Pseudonyms:
    """Every name in the profile and in the objects, with its new one."""
    names = Pseudonyms()
    renamed_profile(profile, names)
    for _ in _objects(folder, names):
        pass
    names.assign()
    return names


def _objects(folder: Path, names: Pseudonyms | None) -> Iterator[bytes]:
    """The objects kind by kind, as JSON, renamed where there are *names*."""
    for kind in KINDS:
        file = folder / kind
        if not file.exists():
            continue
        with file.open("rb") as lines:
            for line in lines:
                if names is None:
                    yield line.rstrip()
                    continue
                item = msgspec.json.decode(line)
                anonymizing.anonymize(kind, item, names)
                yield msgspec.json.encode(item)


def _write_json(
    folder: Path, stream: IO[bytes], header: Mapping[str, Any], names: Pseudonyms | None
) -> None:
    """Write a List with an object per line."""
    stream.write(b'{"apiVersion":"v1","kind":"List","items":[\n' + msgspec.json.encode(header))
    for item in _objects(folder, names):
        stream.write(b",\n" + item)
    stream.write(b"\n]}\n")


def _write_yaml(
    folder: Path, stream: IO[bytes], header: Mapping[str, Any], names: Pseudonyms | None
) -> None:
    """Write a document per object."""
    stream.write(to_yaml(header).encode())
    for item in _objects(folder, names):
        stream.write(b"---\n" + to_yaml(msgspec.json.decode(item)).encode())
