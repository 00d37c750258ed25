"""A small, stubborn reader of an API server: nodes and pods, listed once and watched ever after.

A watch that ends is taken up where it stopped; one that fell too far behind starts with a new
list. Nothing that the API server does ends it: it waits a little and tries again.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import aiohttp
import msgspec

from podium.errors import ConfigError
from podium.extender.reasons import words
from podium.objects.node import Node
from podium.objects.pod import Pod

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable
    from typing import Self

    from podium.extender.knowledge import Knowledge

_PAGE = 500
_GONE = 410
#: A watch is ended by the server after this time, and taken up again.
_WATCH_SECONDS = 290
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.25, 10.0

_Kind = TypeVar("_Kind", Node, Pod)


@dataclass(frozen=True, slots=True)
class ApiServer:
    """Where it is and how to be let in."""

    url: str
    token: str = ""
    #: Read again for every request, so that it may be renewed.
    token_file: str = ""
    ca_file: str = ""
    insecure: bool = False

    def ssl(self) -> ssl.SSLContext | bool:
        """How to check its certificate."""
        if not self.url.lower().startswith("https:"):
            return True
        try:
            context = ssl.create_default_context(cafile=self.ca_file or None)
        except (OSError, ValueError) as error:
            raise ConfigError(f"--ca {self.ca_file}: {error}") from error
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def headers(self) -> dict[str, str]:
        """Who we are."""
        token = self.token
        if self.token_file:
            try:
                token = Path(self.token_file).read_text("utf-8").strip()
            except OSError as error:
                raise WatchError(f"{self.token_file}: {error.strerror}") from error
        return {"Authorization": f"Bearer {token}"} if token else {}


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    items: list[msgspec.Raw] | None = None


class _Object(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    code: int = 0
    message: str = ""


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


class WatchError(Exception):
    """The API server did not answer as hoped; the sentence says how."""


class _OutdatedError(WatchError):
    """What comes next is not known any more; only a new list helps."""


@dataclass(frozen=True, slots=True)
class Resource(Generic[_Kind]):
    """What is watched, and who is told."""

    path: str
    decoder: msgspec.json.Decoder[_Kind]
    replace: Callable[[Iterable[_Kind]], None]
    put: Callable[[_Kind], None]
    drop: Callable[[_Kind], None]


class Watcher:
    """Keeps the knowledge up to date, and binds pods. To be used in an `async with`."""

    def __init__(
        self, server: ApiServer, knowledge: Knowledge, tell: Callable[[str], None]
    ) -> None:
        self._server = server
        self._knowledge = knowledge
        self._tell = tell
        self._session: aiohttp.ClientSession | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._listed: set[str] = set()
        nodes = Resource(
            "/api/v1/nodes",
            msgspec.json.Decoder(Node),
            knowledge.replace_nodes,
            knowledge.put_node,
            lambda node: knowledge.drop_node(node.name),
        )
        pods = Resource(
            "/api/v1/pods",
            msgspec.json.Decoder(Pod),
            knowledge.replace_pods,
            knowledge.put_pod,
            lambda pod: knowledge.drop_pod(pod.uid),
        )
        self._resources: tuple[Resource[Any], ...] = (nodes, pods)

    @property
    def ready(self) -> bool:
        """Whether everything was listed once."""
        return len(self._listed) == len(self._resources)

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=self._server.ssl())
        limit = aiohttp.ClientTimeout(total=None, sock_connect=10)
        self._session = aiohttp.ClientSession(connector=connector, timeout=limit)
        self._tasks = [asyncio.create_task(self._follow(each)) for each in self._resources]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> str:
        """Bind a pod; why it did not work, or nothing."""
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
        metadata = {"name": name, "namespace": namespace} | ({"uid": uid} if uid else {})
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        try:
            async with self._http.post(
                self._url(path),
                data=msgspec.json.encode(binding),
                headers={**self._server.headers(), "Content-Type": "application/json"},
                timeout=aiohttp.ClientTimeout(total=30),
            ) as response:
                if response.status in {200, 201}:
                    self._knowledge.bound(uid, node)
                    return ""
                return _message(response.status, await response.read())
        except (aiohttp.ClientError, OSError, TimeoutError, WatchError) as error:
            return f"binding {namespace}/{name}: {words(error)}"

    # Following ------------------------------------------------------------------------------------

    async def _follow(self, resource: Resource[Any]) -> None:
        version, pause = "", _FIRST_PAUSE_SECONDS
        while True:
            try:
                if not version:
                    version = await self._list(resource)
                async for seen in self._watch(resource, version):
                    version, pause = seen, _FIRST_PAUSE_SECONDS
                await asyncio.sleep(_FIRST_PAUSE_SECONDS)  # in case it ends each time at once
                continue
            except _OutdatedError:
                version = ""
            except Exception as error:  # noqa: BLE001 - whatever it is, the watch goes on
                if not isinstance(error, aiohttp.ClientError | OSError | WatchError):
                    version = ""  # something in what was read: begin again
                self._tell(f"{self._server.url}{resource.path}: {words(error)}; trying again")
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    async def _list(self, resource: Resource[Any]) -> str:
        items: list[Any] = []
        more: dict[str, str] = {"limit": str(_PAGE)}
        while True:
            async with self._get(resource.path, more, total=60) as response:
                body = await response.read()
                _check(response.status, body)
            page = msgspec.json.decode(body, type=_Page)
            items += [resource.decoder.decode(item) for item in page.items or ()]
            if not page.metadata.continue_:
                break
            more["continue"] = page.metadata.continue_
        resource.replace(items)
        self._listed.add(resource.path)
        return page.metadata.resource_version

    async def _watch(self, resource: Resource[Any], version: str) -> AsyncIterator[str]:
        """Pass every event on; the version to go on from after each."""
        wanted = {
            "watch": "1",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_SECONDS),
        }
        async with self._get(resource.path, wanted, total=_WATCH_SECONDS + 30) as response:
            if response.status != 200:
                _check(response.status, await response.read())
            rest = b""
            async for chunk in response.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if line.strip():
                        version = self._pass_on(resource, line) or version
                        yield version

    def _pass_on(self, resource: Resource[Any], line: bytes) -> str:
        event = msgspec.json.decode(line, type=_Event)
        about = msgspec.json.decode(event.object, type=_Object)
        if event.type == "ERROR":
            if about.code == _GONE:
                raise _OutdatedError(about.message)
            raise WatchError(about.message or "the watch failed")
        if event.type in {"ADDED", "MODIFIED"}:
            resource.put(resource.decoder.decode(event.object))
        elif event.type == "DELETED":
            resource.drop(resource.decoder.decode(event.object))
        return about.metadata.resource_version

    @property
    def _http(self) -> aiohttp.ClientSession:
        assert self._session is not None, "use it in an async with"
        return self._session

    def _get(self, path: str, query: dict[str, str], *, total: float) -> Any:
        return self._http.get(
            self._url(path),
            params=query,
            headers=self._server.headers(),
            timeout=aiohttp.ClientTimeout(total=total, sock_connect=10),
        )

    def _url(self, path: str) -> str:
        return f"{self._server.url.rstrip('/')}{path}"


def _check(status: int, body: bytes) -> None:
    if status == _GONE:
        raise _OutdatedError(_message(status, body))
    if status != 200:
        raise WatchError(_message(status, body))


def _message(status: int, body: bytes) -> str:
    """What the API server says, or the code if it says nothing."""
    try:
        said = msgspec.json.decode(body, type=_Object).message
    except msgspec.MsgspecError:
        said = ""
    return said or f"answered with code {status}"
