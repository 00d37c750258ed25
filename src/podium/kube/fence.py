"""A client that sends no write once its replica may not lead any more.

A leader may stall in the middle of its work: another replica leads when it goes on. So the lease is
looked at before every write, not only when it is renewed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

from podium.kube.api import JSON, KubeApi, always
from podium.kube.errors import ApiError

if TYPE_CHECKING:
    import msgspec


class NotLeadingError(ApiError):
    """The request was not sent, because another replica may lead."""

    def __init__(self) -> None:
        super().__init__("not sent: this replica does not hold the lease any more")


class FencedApi(KubeApi):
    """Passes requests on to a client; writes only while *may_write* says so."""

    def __init__(self, client: KubeApi, may_write: Callable[[], bool]) -> None:
        self._client, self._may_write = client, may_write

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout: float = 30.0,
        before_send: Callable[[], None] = always,
    ) -> Coroutine[Any, Any, bytes]:
        """Send a request; `NotLeadingError` for a write that must not be sent.

        A write may wait for a connection, or for a pause that the API server asks for, until the
        lease is lost.
        """
        return self._client.request(
            method,
            path,
            params=params,
            body=body,
            content_type=content_type,
            timeout=timeout,
            before_send=before_send if method == "GET" else self._check,
        )

    def _check(self) -> None:
        if not self._may_write():
            raise NotLeadingError

    def stream(
        self, path: str, params: Mapping[str, str], *, idle_seconds: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a watch."""
        return self._client.stream(path, params, idle_seconds=idle_seconds)

    def watch(
        self,
        path: str,
        params: Mapping[str, str],
        take: Callable[[bytes], None],
        *,
        idle_seconds: float,
        opened: Callable[[], None],
        may_rest: bool = False,
    ) -> Coroutine[Any, Any, None]:
        """Open a watch and call *take* with each piece of its answer."""
        return self._client.watch(
            path, params, take, idle_seconds=idle_seconds, opened=opened, may_rest=may_rest
        )

    def let_watches_rest(self) -> None:
        """Allow watches to read less often."""
        self._client.let_watches_rest()

    def catch_up(self) -> Coroutine[Any, Any, None]:
        """Return when the watches have handed on everything that had arrived by now."""
        return self._client.catch_up()

    @asynccontextmanager
    async def reading(
        self, path: str, params: Mapping[str, str], *, seconds: float, accept: str = JSON
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Read what may be long, in pieces."""
        async with self._client.reading(path, params, seconds=seconds, accept=accept) as pieces:
            yield pieces

    def decoded_list(
        self, path: str, params: Mapping[str, str], decoder: msgspec.json.Decoder[Any]
    ) -> Coroutine[Any, Any, tuple[list[Any], str] | None]:
        """The objects of a whole list and its version; None where a list has to be requested."""
        return self._client.decoded_list(path, params, decoder)
