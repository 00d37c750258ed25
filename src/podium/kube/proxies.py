"""HTTP proxies: which one a connection goes through, and the tunnel that it opens for TLS."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import ssl
from typing import NamedTuple, Self
from urllib.parse import unquote, urlsplit

from podium.errors import InputError
from podium.kube.access import Access
from podium.kube.credentials import basic
from podium.kube.http_rules import is_host

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
        where = ""
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            where = f" {parts.scheme}://{parts.hostname or ''}"  # without its password
            default = {"http": 80, "https": 443}[parts.scheme]
            host, port = parts.hostname or "", parts.port or default
        except (KeyError, ValueError):
            host, port = "", 0
        if not is_host(host):
            hint = "http://HOST:PORT and https://HOST:PORT are"
            raise InputError(f"the proxy{where} is not supported", hint=hint)
        header = ""
        if parts.username is not None:
            secret = basic(unquote(parts.username), unquote(parts.password or ""))
            header = f"Proxy-Authorization: {secret}\r\n"
        tls = ssl.create_default_context() if parts.scheme == "https" else None
        return cls(host, port, tls, header)


def proxy_of(access: Access) -> Proxy | None:
    """The proxy that an access names, or else the environment, such as $HTTPS_PROXY."""
    url = access.proxy or _by_environment(access)
    return Proxy.at(url) if url else None


def _by_environment(access: Access) -> str:
    """The proxy of the environment; none for this machine and for what $NO_PROXY names."""
    url = _variable("HTTPS_PROXY" if access.secure else "HTTP_PROXY")
    return "" if not url or _is_excluded(access, _variable("NO_PROXY")) else url


def _variable(name: str) -> str:
    return os.environ.get(name) or os.environ.get(name.lower(), "")


def _is_excluded(access: Access, excluded: str) -> bool:
    """Whether clients of Kubernetes talk to a server directly; *excluded* is $NO_PROXY."""
    host = access.host.lower()
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    for each in excluded.lower().split(","):
        name = each.strip()
        if name == "*" or (address is not None and _is_within(address, name)):
            return True
        name, _, port = name.partition(":")
        domain = name.removeprefix("*").removeprefix(".")
        is_named = host.endswith(f".{domain}") or host == name
        if domain and is_named and port in {"", str(access.port)}:
            return True
    return False


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_within(address: ipaddress.IPv4Address | ipaddress.IPv6Address, network: str) -> bool:
    """Whether an address is in a network such as `10.0.0.0/8`, or is the one that is named."""
    try:
        return address in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


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
