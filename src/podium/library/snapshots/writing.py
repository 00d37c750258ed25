"""A snapshot of a cluster as one file: a header with the profile, then every object.

Every object that decisions and plans depend on is listed page by page. Commands without FILES read
a live cluster in the same way.
"""

from __future__ import annotations

import asyncio
import gzip
import os
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Final

import msgspec

from podium import __version__
from podium.errors import InputError
from podium.kube.client import ApiClient
from podium.kube.discovery import discover
from podium.kube.errors import ApiError
from podium.library.reading import read
from podium.objects.kinds.registry import KINDS
from podium.objects.snapshots import anonymization
from podium.objects.snapshots.anonymization import renamed_profile
from podium.objects.snapshots.kept_fields import trimmed
from podium.objects.snapshots.pseudonyms import Pseudonyms
from podium.render.documents import to_yaml

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from podium.kube.access import Access
    from podium.objects.reading.collection import Objects

PAGE: Final = 500
#: Pods are listed before nodes, so that every node that has a pod is there.
_FIRST: Final = ("Pod",)
_EXPIRED, _FORBIDDEN = 410, 403
#: Without these there is no answer.
_NEEDED: Final = ("Pod", "Node")


class _Position(msgspec.Struct, frozen=True, rename={"at": "continue"}):
    at: str = ""


class _Page(msgspec.Struct, frozen=True):
    items: list[msgspec.Raw] | None = None
    metadata: _Position = _Position()


_PAGE: Final = msgspec.json.Decoder(_Page)


@dataclass(slots=True)
class Listed:
    """What was listed of a cluster: how many objects of each kind, and what may not be listed."""

    counts: dict[str, int]
    forbidden: list[str] = field(default_factory=list)


async def list_objects(access: Access, folder: Path) -> Listed:
    """Write every object to a file per kind, an object per line.

    Kinds that the user may not list are left out, but for pods and nodes.
    """
    listed = Listed(dict.fromkeys(KINDS, 0))
    async with ApiClient(access) as client:
        served = await discover(client)
        for kind in sorted(KINDS, key=lambda kind: kind not in _FIRST):
            path, version = served.path(kind), served.version(kind)
            if path is None or version is None:
                continue
            try:
                listed.counts[kind] = await _kind(client, path, kind, version, folder / kind)
            except ApiError as error:
                if error.status != _FORBIDDEN or kind in _NEEDED:
                    raise
                listed.forbidden.append(path.rpartition("/")[2])
    return listed


async def _kind(client: ApiClient, path: str, kind: str, version: str, file: Path) -> int:
    """List a kind page by page; a continue token that expired starts it again, up to twice."""
    for tries_left in (2, 1, 0):
        try:
            with file.open("wb") as stream:
                return await _pages(client, path, kind, version, stream)
        except ApiError as error:
            if error.status != _EXPIRED or not tries_left:
                raise
    raise AssertionError("the last try returns or raises")


async def _pages(client: ApiClient, path: str, kind: str, version: str, stream: BinaryIO) -> int:
    count = 0
    async for raw in listed_items(client, path):
        line = trimmed(kind, version, raw)
        if line is not None:
            stream.write(line + b"\n")
            count += 1
    return count


async def listed_items(client: ApiClient, path: str) -> AsyncIterator[msgspec.Raw]:
    """The items of a list as the API server wrote them, asked for page by page."""
    at = ""
    while True:
        params = {"limit": str(PAGE)} | ({"continue": at} if at else {})
        page = _PAGE.decode(await client.request("GET", path, params=params, timeout=120.0))
        for raw in page.items or ():
            yield raw
        at = page.metadata.at
        if not at:
            return


STDOUT: Final = "-"


def write_snapshot(
    access: Access,
    out: str,
    profile: Mapping[str, Any],
    *,
    written_as: str | None = None,
    anonymize: bool = False,
) -> Listed:
    """List what decisions and plans depend on and write it to the file *out*; `-` is stdout.

    *written_as* is `yaml`, a document per object, or `json`, an object per line; by default the
    ending of *out* says which. A file that ends in `.gz` is compressed.
    """
    if written_as is None:
        written_as = "yaml" if out.removesuffix(".gz").endswith((".yaml", ".yml")) else "json"
    with tempfile.TemporaryDirectory(prefix="podium-") as folder:
        listed = asyncio.run(list_objects(access, Path(folder)))
        header: dict[str, Any] = {"apiVersion": "podium/v1", "kind": "Snapshot"}
        header["writtenBy"] = f"podium {__version__}"
        if listed.forbidden:
            header["notRead"] = listed.forbidden
        with opened(out) as stream:
            _write(Path(folder), stream, written_as, header, profile, anonymize=anonymize)
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
    written_as: str,
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
    if written_as == "yaml":
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
                anonymization.anonymize(kind, item, names)
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


def read_cluster(access: Access) -> Objects:
    """Everything that scheduling reads of a cluster, as a snapshot of it would hold it."""
    with tempfile.TemporaryDirectory(prefix="podium-") as folder:
        file = Path(folder, "cluster.json")
        write_snapshot(access, str(file), {})
        return read([str(file)])
