"""Every object that scheduling reads, listed page by page and written to a file per kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Final

import msgspec

from podium.kube.client import ApiClient
from podium.kube.discovery import discover
from podium.kube.errors import ApiError
from podium.objects.snapshots.trimming import snapshot_kinds, trimmed

if TYPE_CHECKING:
    from pathlib import Path

    from podium.kube.access import Access

PAGE: Final = 500
#: Pods are listed before nodes, so that every node that has a pod is there.
_FIRST: Final = ("Pod",)
_EXPIRED: Final = 410


class _Position(msgspec.Struct, frozen=True, rename={"at": "continue"}):
    at: str = ""


class _Page(msgspec.Struct, frozen=True):
    items: list[msgspec.Raw] | None = None
    metadata: _Position = _Position()


_PAGE: Final = msgspec.json.Decoder(_Page)


async def list_objects(access: Access, folder: Path) -> dict[str, int]:
    """Write every object to a file per kind, an object per line; the result is how many."""
    kinds = [kind.name for kind in snapshot_kinds()]
    counts = dict.fromkeys(kinds, 0)
    async with ApiClient(access) as client:
        served = await discover(client)
        for kind in sorted(kinds, key=lambda kind: kind not in _FIRST):
            path, version = served.path(kind), served.version(kind)
            if path is not None and version is not None:
                counts[kind] = await _kind(client, path, kind, version, folder / kind)
    return counts


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
    count, at = 0, ""
    while True:
        params = {"limit": str(PAGE)} | ({"continue": at} if at else {})
        page = _PAGE.decode(await client.request("GET", path, params=params, timeout=120.0))
        for raw in page.items or ():
            line = trimmed(kind, version, raw)
            if line is not None:
                stream.write(line + b"\n")
                count += 1
        at = page.metadata.at
        if not at:
            return count
