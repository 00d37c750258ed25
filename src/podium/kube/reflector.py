"""Lists the objects of one kind, then watches them.

A watch that ends is continued where it stopped; one that fell too far behind starts with a new
list. No answer of the API server ends a reflector: it waits with exponential backoff and jitter,
and tries again.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import msgspec

from podium.kube.api import BINARY_OR_JSON, JSON, KubeApi
from podium.kube.errors import ApiError, Status, words
from podium.kube.failure_log import FailureLog
from podium.kube.list_text import SPAN_BYTES, ComingList, ListMeta, ListPage, ListText, page_decoder
from podium.objects.kinds.meta import Object
from podium.objects.protobuf.wire import MAGIC
from podium.objects.reading.garbage import without_gc

if TYPE_CHECKING:
    from podium.objects.kinds.kind import Reports

_GONE = 410
#: The server is asked to end a watch after this time, or up to half as much again, with a bookmark.
#: Silence beyond that and the grace time ends it from here.
_WATCH_SECONDS, _GRACE_SECONDS = 120.0, 20.0
#: A watch that ends sooner is followed by a pause, like an error.
_SHORT_SECONDS = 1.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.25, 10.0
LIST_SECONDS = 60.0
#: So many objects are asked for at once.
PAGE = 500
#: The steps whose failures are logged.
_LIST, _WATCH = "list", "watch"

Kind = TypeVar("Kind", bound=Object)
Fed_contra = TypeVar("Fed_contra", bound=Object, contravariant=True)


class Sink(Protocol[Fed_contra]):
    """Receives the objects that a reflector reads; its methods return at once."""

    def replace(self, items: list[Any], /) -> None:
        """Replace all objects by those of a list."""

    def put(self, item: Fed_contra, /) -> None:
        """Add or change an object."""

    def drop(self, item: Fed_contra, /) -> None:
        """Remove an object; *item* is its last version."""


class _Metadata(msgspec.Struct, frozen=True, rename="camel", gc=False):
    resource_version: str = ""
    namespace: str = ""
    name: str = ""


class _Head(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata = _Metadata()


class _Event(msgspec.Struct, frozen=True, gc=False):
    type: str
    object: msgspec.Raw


#: How an event begins that adds or changes an object; the object and "}" follow.
_PUT = re.compile(rb'\{"type":"(?:ADDED|MODIFIED)","object":(?=\{.*\}\}\Z)', re.DOTALL)
_event = msgspec.json.Decoder(_Event)
_head = msgspec.json.Decoder(_Head)
_status = msgspec.json.Decoder(Status)


class Reflector(Generic[Kind]):
    """Keeps a sink up to date with the objects at one path of an API server."""

    def __init__(
        self,
        client: KubeApi,
        path: str,
        decoder: msgspec.json.Decoder[Kind],
        sink: Sink[Kind],
        *,
        page: int = PAGE,
        from_memory: bool = True,
        span_bytes: int = SPAN_BYTES,
        after: Sequence[Reflector[Any]] = (),
        reports: Reports[Kind] | None = None,
        may_be_binary: bool = False,
        params: Mapping[str, str] | None = None,
        begun: str = "",
        warn: Callable[[str], None] = lambda _: None,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        first_pause: float = _FIRST_PAUSE_SECONDS,
        watch_seconds: float = _WATCH_SECONDS,
        grace_seconds: float = _GRACE_SECONDS,
    ) -> None:
        """Read the objects at *path*; *params* select some of them, such as a fieldSelector.

        With *from_memory* the first list may be a little old, and comes sooner; as much of it as
        *span_bytes* is decoded at once. The sink gets a list when each of *after* has listed.
        *reports* decodes what a watch adds or changes, in place of the *decoder*. The first list
        is asked for in the binary form if it *may_be_binary*; *begun* is the handle under which it
        may have been asked for before.
        """
        self.path = path
        #: Set after the first list.
        self.synced = asyncio.Event()
        #: The resourceVersion that the watch continues from; empty before a list.
        self.version = ""
        self._client, self._after = client, after
        self._decoder, self._reports = decoder, reports
        self._read = decoder.decode if reports is None else reports.decode
        self._sink = sink
        self._params = dict(params or {})
        self._page = page
        self._may_be_binary, self._begun = may_be_binary, begun
        self._in_pages = True
        self._from_memory, self._span_bytes = from_memory, span_bytes
        self._failures = FailureLog(warn)
        self._rng = rng or random.Random()  # noqa: S311  nothing secret about a pause
        self._sleep, self._clock = sleep, clock
        self._first_pause = first_pause
        self._watch_seconds, self._grace_seconds = watch_seconds, grace_seconds
        self._pause = first_pause
        self._is_stale = False
        #: Whether the API server has answered the last watch.
        self._watched = False

    def list_again(self) -> None:
        """Begin with a new list at the next event or at the end of the watch."""
        self._is_stale = True

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            asked_for, began, step = 0.0, self._clock(), _LIST
            try:
                if self._is_stale or not self.version:
                    await self._list()
                began, step = self._clock(), _WATCH
                await self._watch()
                if self._clock() - began > _SHORT_SECONDS:
                    self._failures.succeeded(_WATCH)
                    continue
            except ApiError as error:
                if self._watched and self._clock() - began > _SHORT_SECONDS:
                    self._pause = self._first_pause  # what went wrong before is over
                    self._failures.succeeded(_WATCH)
                asked_for = error.retry_after or 0.0
                if error.status == _GONE:
                    self.version = ""
                    self._failures.succeeded(_WATCH)
                else:
                    self._failures.failed(step, f"{self.path}: {error}; trying again")
            except Exception as error:  # noqa: BLE001  no error ends the watch
                self.version = ""  # an object that was read may be at fault: list again
                self._failures.failed(step, f"{self.path}: {words(error)}; listing again")
            self._watched = False
            await self._sleep(max(self._jittered(self._pause), asked_for))
            self._pause = min(self._pause * 2, _LONGEST_PAUSE_SECONDS)

    def _jittered(self, seconds: float) -> float:
        return seconds * self._rng.uniform(0.5, 1.5)

    async def _list(self) -> None:
        if self._reports is not None:
            self._reports.clear()  # of an object that is gone no event may tell
        known = await self._client.decoded_list(self.path, self._params, self._decoder)
        if known is not None:
            self._is_stale = False
            items, version = known
            self._sink.replace(items)
            self.version = version
            self.synced.set()
            return
        await self._list_in_pages()

    async def _list_in_pages(self) -> None:
        items: list[Kind] = []
        about = ListMeta()
        is_first, self._from_memory = self._from_memory, False
        if is_first:
            items, about = await self._first_page()
            # What is in memory comes in any order; decisions depend on that of etcd.
            items.sort(key=attrgetter("key"))
        if not is_first or about.continue_:
            async for page in self._pages(about.continue_):
                with without_gc():
                    items += filter(None, map(self._decoded, page.items or ()))
                about = page.metadata
        self._in_pages = True
        self._is_stale = False
        self._failures.succeeded(_LIST)
        for each in self._after:
            await each.synced.wait()
        with without_gc():
            self._sink.replace(items)
        self.version = about.resource_version
        self.synced.set()

    async def _first_page(self) -> tuple[list[Kind], ListMeta]:
        """The list that the API server has in memory, all of it at once, decoded as it comes.

        An API server answers this request several times faster than one for a page. The answer may
        be a little old; the watch from there on reports what is missing. Only the first list may be
        old. Where the API server keeps nothing in memory, it is a page.
        """
        params = first_list_params(self._params, self._page)
        accept = BINARY_OR_JSON if self._may_be_binary else JSON
        reading = self._client.reading(
            self.path, params, seconds=LIST_SECONDS, accept=accept, begun=self._begun
        )
        async with reading as pieces:
            beginning = b""
            async for piece in pieces:
                beginning += piece
                if len(beginning) >= len(MAGIC):
                    break
            found = self._coming_list(is_binary=beginning.startswith(MAGIC))
            found.feed(beginning)
            async for piece in pieces:
                found.feed(piece)
        return found.result()

    def _coming_list(self, *, is_binary: bool) -> ComingList[Kind]:
        """What decodes a list as it comes."""
        if not is_binary:
            return ListText(self._decoder, self._decoded, self._span_bytes)
        from podium.kube.protobuf.lists import BinaryList  # noqa: PLC0415  brings NumPy

        return BinaryList(self._decoder.type)

    async def _pages(self, token: str) -> AsyncIterator[ListPage]:
        """The pages from a token on; the API server prepares the next while one is decoded."""
        page = await self._page_after(token)
        while page.metadata.continue_:
            following = asyncio.create_task(self._page_after(page.metadata.continue_))
            try:
                await asyncio.sleep(0)  # so that the request is sent
                yield page
                page = await following
            finally:
                following.cancel()
        yield page

    async def _page_after(self, token: str) -> ListPage:
        """The page of the list that a token of the page before stands for; the first without."""
        params = {**self._params, "limit": str(self._page)} if self._in_pages else {**self._params}
        if token:
            params["continue"] = token
        try:
            text = await self._client.request("GET", self.path, params=params, timeout=LIST_SECONDS)
        except ApiError as error:
            if error.status == _GONE:
                self._in_pages = False  # it changes faster than it can be read in pages
            raise
        with without_gc():
            return page_decoder.decode(text)

    async def _watch(self) -> None:
        """Hand every event to the sink, until the server ends the watch."""
        seconds = int(self._watch_seconds * self._rng.uniform(1, 1.5))
        params = {
            **self._params,
            "watch": "1",
            "resourceVersion": self.version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        idle = seconds + self._grace_seconds
        await self._client.watch(
            self.path,
            params,
            Lines(self._take).feed,
            idle_seconds=idle,
            opened=self._accepted,
            # Reports come one shortly after the other, and few of them change a decision.
            may_rest=self._reports is not None,
        )

    def _accepted(self) -> None:
        """Note that the API server has accepted the watch."""
        self._watched = True

    def _take(self, line: bytes) -> None:
        if self._is_stale:
            raise ApiError("an object could not be reported", status=_GONE)
        if self._take_usual(line):
            return
        event = _event.decode(line)
        kind = event.type
        if kind == "BOOKMARK":
            self.version = _head.decode(event.object).metadata.resource_version or self.version
        elif kind == "ERROR":
            status = _status.decode(event.object)
            message = status.message or "the watch failed"
            raise ApiError(message, status=status.code, reason=status.reason)
        else:
            item = self._decoded(event.object)
            if item is None and kind == "DELETED":
                # What the sink knows under that name is found by its absence from a new list.
                raise ApiError("a deleted object cannot be decoded", status=_GONE)
            if item is None:
                self.version = _head.decode(event.object).metadata.resource_version
                return
            if kind == "DELETED":
                if self._reports is not None:
                    self._reports.forget(item)
                self._sink.drop(item)
            else:
                self._sink.put(item)
            self.version = item.metadata.resource_version
        self._pause = self._first_pause
        self._failures.succeeded(_WATCH)

    def _take_usual(self, line: bytes) -> bool:
        """Take a line in the form in which API servers write almost all of them.

        The object is decoded without looking for its end first. Whatever is not as expected is
        left to the decoder of events.
        """
        start = _PUT.match(line)
        if start is None:
            return False
        try:
            item = self._read(memoryview(line)[start.end() : -1])
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
        self._sink.put(item)
        self.version = item.metadata.resource_version
        self._pause = self._first_pause
        if self._failures:
            self._failures.succeeded(_WATCH)
        return True

    def _decoded(self, raw: msgspec.Raw) -> Kind | None:
        """The object; None, after a warning, if it cannot be decoded."""
        try:
            return self._decoder.decode(raw)
        except msgspec.ValidationError as error:
            about = _head.decode(raw).metadata
            name = f"{about.namespace}/{about.name}" if about.namespace else about.name
            self._failures.failed(("object", name), f"{self.path}: {name}: {error}; ignored")
            return None


def first_list_params(params: Mapping[str, str], page: int = PAGE) -> dict[str, str]:
    """The parameters of a first list, which may come from the memory of the API server."""
    return {**params, "limit": str(page), "resourceVersion": "0"}


class Lines:
    """Puts the lines of a stream together, of which a long one comes in many pieces."""

    __slots__ = ("_begun", "_take")

    def __init__(self, take: Callable[[bytes], None]) -> None:
        """Call *take* with every line that is complete, unless it is empty."""
        self._take = take
        self._begun: list[bytes] = []

    def feed(self, piece: bytes) -> None:
        """Take the next piece; each line in it is handed on, what follows the last is kept."""
        first, *others = piece.split(b"\n")
        if self._begun:
            self._begun.append(first)
            if not others:
                return
            first = b"".join(self._begun)
            self._begun = []
        if others:
            rest = others.pop()
            for line in (first, *others):
                if line:
                    self._take(line)
        else:
            rest = first
        if rest:
            self._begun.append(rest)
