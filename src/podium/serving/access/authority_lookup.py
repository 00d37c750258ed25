"""The authorities of client certificates, read from the cluster at the start and every minute.

A cluster that does not publish them, or does not let this program read them, is no obstacle: tokens
are accepted all the same, and a line of the log says what is missing.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Protocol

from podium.errors import PodiumError
from podium.kube.failure_log import FailureLog
from podium.serving.access.client_certificates import (
    CONFIG_MAP,
    Authorities,
    authorities_in_config_map,
    authorities_in_file,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from podium.serving.access.client_certificates import ServerTls

_SECONDS: Final = 60.0
#: The server waits so long for the first answer before it begins to serve.
_FIRST_SECONDS: Final = 5.0


class ReadingClient(Protocol):
    """The request that reads what the cluster publishes."""

    async def get(self, path: str) -> Any:
        """Read an object."""


class AuthorityLookup:
    """Keeps the authorities that a server trusts up to date."""

    def __init__(
        self,
        client: ReadingClient,
        tls: ServerTls,
        *,
        warn: Callable[[str], None],
        client_ca_file: str = "",
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Trust the authorities of *client_ca_file*, which is read now, or those of the cluster."""
        self._client, self._tls, self._sleep = client, tls, sleep
        self._failures = FailureLog(warn)
        self._users = authorities_in_file(client_ca_file) if client_ca_file else frozenset()
        tls.trust(Authorities(self._users))

    async def first(self) -> None:
        """Read them once, before the server begins to serve."""
        try:
            async with asyncio.timeout(_FIRST_SECONDS):
                await self._read()
        except TimeoutError:
            pass  # the next reading is a minute away

    async def run(self) -> None:
        """Read them again every minute."""
        while True:
            await self._sleep(_SECONDS)
            await self._read()

    async def _read(self) -> None:
        try:
            found = authorities_in_config_map(await self._client.get(CONFIG_MAP), self._users)
        except PodiumError as error:
            text = (
                f"client certificates: {error}; the role extension-apiserver-authentication-reader "
                "in kube-system has the right to read them"
            )
            self._failures.failed("authorities", text)
        else:
            self._failures.succeeded("authorities")
            self._tls.trust(found)
