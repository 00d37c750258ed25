"""HTTP proxies: which one a connection goes through, and the tunnel that it opens for TLS."""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
from typing import NamedTuple, Self
from urllib.parse import unquote, urlsplit

from podium.errors import InputError
from podium.kube.access import Access
from podium.kube.credentials import basic

#: The longest head of a proxy's answer.
_MOST_BYTES = 1 << 16


class Proxy(NamedTuple):
    """An HTTP proxy; with *tls*, it is talked to over TLS."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    #: The header with its password, ready to be written; empty without one.
    authorization: str

    @classmethod
    def at(cls, url: str) -> Self:
        """The proxy at an address; http is assumed where it names no scheme."""
        parts = urlsplit(url if "://" in url else f"http://{url}")
        try:
            default = {"http": 80, "https": 443}[parts.scheme]
            port = parts.port or default
        except (KeyError, ValueError):
            port = 0
        if not parts.hostname or not port:
            where = f"{parts.scheme}://{parts.hostname or ''}"  # without its password
            hint = "http://HOST:PORT and https://HOST:PORT are"
            raise InputError(f"the proxy {where} is not supported", hint=hint)
        header = ""
        if parts.username is not None:
            secret = basic(unquote(parts.username), unquote(parts.password or ""))
            header = f"Proxy-Authorization: {secret}\r\n"
        tls = ssl.create_default_context() if parts.scheme == "https" else None
        return cls(parts.hostname, port, tls, header)


def proxy_of(access: Access) -> Proxy | None:
    """The proxy that an access names, or else the environment, such as $HTTPS_PROXY."""
    url = access.proxy or _by_environment(access)
    return Proxy.at(url) if url else None


def _by_environment(access: Access) -> str:
    if sys.platform == "linux" and not any(name.lower().endswith("_proxy") for name in os.environ):
        return ""
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415  rarely needed

    if proxy_bypass(access.host):
        return ""
    return getproxies().get("https" if access.secure else "http", "")


async def tunnel(proxy: Proxy, address: str) -> asyncio.Transport:
    """Open a connection through which the proxy carries everything to *address*."""
    loop = asyncio.get_running_loop()
    transport, answer = await loop.create_connection(
        _TunnelAnswer, proxy.host, proxy.port, ssl=proxy.tls
    )
    try:
        request = f"CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n{proxy.authorization}\r\n"
        transport.write(request.encode("latin-1"))
        status = await answer.status
    except BaseException:
        transport.abort()
        raise
    if not status.startswith("2"):
        transport.abort()
        raise OSError(f"the proxy {proxy.host}:{proxy.port} answered with {status}")
    return transport


class _TunnelAnswer(asyncio.Protocol):
    """Reads the answer of a proxy to CONNECT; the server behind it does not speak first."""

    def __init__(self) -> None:
        #: The code and the reason of the answer.
        self.status: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._head = b""

    def data_received(self, data: bytes) -> None:
        self._head += data
        if b"\r\n\r\n" in self._head and not self.status.done():
            line = self._head.partition(b"\r\n")[0].decode("latin-1")
            self.status.set_result(line.partition(" ")[2])
        elif len(self._head) > _MOST_BYTES:
            self.connection_lost(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.status.done():
            self.status.set_exception(exc or OSError("the proxy closed the connection"))
