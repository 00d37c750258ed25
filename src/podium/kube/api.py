"""The requests of a scheduler to an API server, whatever carries them.

`KubeApi` has one method per request and leaves two to subclasses: `request` for an exchange and
`stream` for a watch. `client.ApiClient` sends both over HTTP.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from podium.kube.errors import UnreachableError
from podium.kube.watch_pace import WatchPace

T = TypeVar("T")
_Object = dict[str, Any]

JSON = "application/json"
#: For the binary form where there is one; the API server needs half the time for it.
BINARY_OR_JSON = f"application/vnd.kubernetes.protobuf, {JSON}"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
#: Namespace and name that need no quoting in a path, as those of almost all objects.
_PLAIN_KEY = re.compile(r"[0-9A-Za-z_.~-]+/[0-9A-Za-z_.~-]+")
_encode = msgspec.json.Encoder().encode


class _BoundPod(msgspec.Struct, omit_defaults=True, gc=False):
    name: str
    namespace: str
    uid: str = ""


class _Target(msgspec.Struct, gc=False):
    name: str
    kind: str = "Node"


class _Binding(msgspec.Struct, rename="camel", gc=False):
    metadata: _BoundPod
    target: _Target
    api_version: str = "v1"
    kind: str = "Binding"


def of_uid(uid: str) -> dict[str, str]:
    """The metadata of a patch, which is refused if the name is another object's by now."""
    return {"uid": uid} if uid else {}


def always() -> None:
    """Allow a request to be sent."""


class KubeApi(ABC):
    """One API server. Every refusal and every missing answer is an `ApiError`."""

    @abstractmethod
    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout: float = 30.0,  # noqa: ASYNC109  the whole request, wherever it hangs
        before_send: Callable[[], None] = always,
    ) -> bytes:
        """Send one request; the body of the answer.

        *before_send* is called whenever it is about to be sent, after all waiting, and may raise.
        """

    @abstractmethod
    def stream(
        self, path: str, params: Mapping[str, str], *, idle_seconds: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a watch: its answer in pieces, until the server ends it or is silent too long."""

    async def watch(
        self,
        path: str,
        params: Mapping[str, str],
        take: Callable[[bytes], None],
        *,
        idle_seconds: float,
        opened: Callable[[], None],
        may_rest: bool = False,  # noqa: ARG002
    ) -> None:
        """Open a watch and call *take* with each piece of its answer, until the server ends it.

        *opened* is called once the server has accepted the watch. A watch that *may_rest* is
        affected by the `pace`.
        """
        async with self.stream(path, params, idle_seconds=idle_seconds) as pieces:
            opened()
            await hand_each(pieces, take)

    @cached_property
    def pace(self) -> WatchPace:
        """When watches read. Those of most clients never rest."""
        return WatchPace()

    @asynccontextmanager
    async def reading(
        self,
        path: str,
        params: Mapping[str, str],
        *,
        seconds: float,
        accept: str = JSON,  # noqa: ARG002
        begun: str = "",  # noqa: ARG002
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Read what may be long, in pieces: of which each comes in *seconds* at most.

        It comes in one of the media types to *accept*; JSON is always possible. *begun* is the
        handle of a request that may have been sent already.
        """
        text = await self.request("GET", path, params=params, timeout=seconds)

        async def whole() -> AsyncIterator[bytes]:
            yield text

        yield whole()

    async def decoded_list(
        self,
        path: str,  # noqa: ARG002
        params: Mapping[str, str],  # noqa: ARG002
        decoder: msgspec.json.Decoder[Any],  # noqa: ARG002
    ) -> tuple[list[Any], str] | None:
        """The objects of a whole list and its version; None where a list has to be requested.

        An API server in the same process has objects that need not be encoded and decoded.
        """
        return None

    # Objects as plain values ----------------------------------------------------------------------

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Any:
        """Read an object or a list."""
        return decoded(await self.request("GET", path, params=params), f"GET {path}", _Object)

    async def create(self, path: str, obj: Mapping[str, Any]) -> Any:
        """Create an object in the collection at *path*."""
        body = msgspec.json.encode(obj)
        return decoded(await self.request("POST", path, body=body), f"POST {path}", _Object)

    async def put(self, path: str, obj: Mapping[str, Any]) -> Any:
        """Replace an object; refused if it has a resourceVersion that is not the newest."""
        body = msgspec.json.encode(obj)
        return decoded(await self.request("PUT", path, body=body), f"PUT {path}", _Object)

    async def patch(self, path: str, patch: Any, content_type: str = MERGE_PATCH) -> Any:
        """Change part of an object; the whole object afterwards."""
        body = msgspec.json.encode(patch)
        text = await self.request("PATCH", path, body=body, content_type=content_type)
        return decoded(text, f"PATCH {path}", _Object)

    async def delete(self, path: str, options: Mapping[str, Any] | None = None) -> Any:
        """Delete an object."""
        body = msgspec.json.encode(options) if options else None
        return decoded(await self.request("DELETE", path, body=body), f"DELETE {path}", _Object)

    # Pods -----------------------------------------------------------------------------------------

    async def bind(
        self,
        namespace: str,
        name: str,
        uid: str,
        node: str,
        *,
        timeout: float = 30.0,  # noqa: ASYNC109
    ) -> None:
        """Bind a pod to a node; with a *uid*, only if it still is that pod."""
        metadata = _BoundPod(name, namespace, uid)
        body = _encode(_Binding(metadata, _Target(node)))
        await self.request(
            "POST", f"{pod_path(namespace, name)}/binding", body=body, timeout=timeout
        )

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        """Delete a pod, with the grace period it asks for."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            options["preconditions"] = {"uid": uid}
        body = msgspec.json.encode(options)
        await self.request("DELETE", pod_path(namespace, name), body=body)

    async def patch_pod_status(self, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        """Change a pod's status; lists such as its conditions are merged by their keys."""
        await self.request(
            "PATCH",
            f"{pod_path(namespace, name)}/status",
            body=msgspec.json.encode(patch),
            content_type=STRATEGIC_PATCH,
        )


async def hand_each(pieces: AsyncIterator[bytes], take: Callable[[bytes], None]) -> None:
    """Call *take* with each piece of the answer to a watch."""
    async for piece in pieces:
        take(piece)


def decoded(text: bytes, asked: str, into: type[T]) -> T:
    """The value of an answer; `UnreachableError` if it is not that of an API server.

    A proxy between them may answer with a page of its own. Whether the request was carried out is
    not known then, as if no answer had come.
    """
    try:
        return msgspec.json.decode(text, type=into)
    except msgspec.MsgspecError as error:
        raise UnreachableError(f"{asked}: the answer cannot be read: {error}") from None


def pod_path(namespace: str, name: str) -> str:
    """The path of a pod."""
    if _PLAIN_KEY.fullmatch(f"{namespace}/{name}") is None:
        namespace, name = quote(namespace, ""), quote(name, "")
    return f"/api/v1/namespaces/{namespace}/pods/{name}"
