"""Every object that decisions and plans depend on, listed page by page, a file per kind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Final

import msgspec

from podium.kube.client import ApiClient
from podium.kube.discovery import discover
from podium.kube.errors import ApiError
from podium.objects.kinds.registry import KINDS
from podium.objects.snapshots.trimming import trimmed

if TYPE_CHECKING:
    from pathlib import Path

    from podium.kube.access import Access

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
