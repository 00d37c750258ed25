"""Who asks on the secure port, by the certificate of the connection, as in kube-scheduler.

Two authorities may have signed a client's certificate. One signs for users: the common name is the
user, the organizations are the groups. The other signs for proxies in front, such as the API
server's aggregation layer: the proxy says in headers for whom it asks. Both are published in the
ConfigMap `kube-system/extension-apiserver-authentication`; a file takes the place of the first.

A connection without a certificate is accepted, and its requests may have a token. One with a
certificate of any other authority is refused before the first request.

Upstream: apiserver/pkg/server/options (DelegatingAuthentication), authentication/request/x509 and
headerrequest.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import unquote

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from podium.errors import ConfigError, PodiumError
from podium.kube.failure_log import FailureLog
from podium.serving.access.delegated_access import User

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from starlette.types import Receive, Scope, Send

#: Where a cluster publishes its authorities.
CONFIG_MAP: Final = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
#: The key of a request's scope that has the certificate of its connection.
_SCOPE_KEY: Final = "podium.peer"
_AUTHENTICATED: Final = "system:authenticated"
_END: Final = "-----END CERTIFICATE-----"
#: How often the files of a server's certificate are looked at.
_LOOK_SECONDS: Final = 1.0
#: How many verified chains are kept.
_MOST_CHAINS: Final = 1024


@dataclass(frozen=True, slots=True)
class Peer:
    """The certificate of a connection: its subject, and the chain up to the authority, as DER.

    A connection of TLS 1.2 that resumes an earlier one is not verified, and has no chain.
    """

    common_name: str
    organizations: tuple[str, ...]
    certificate: bytes
    chain: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class ProxyHeaders:
    """In which headers a proxy says for whom it asks, and which proxies may."""

    authorities: frozenset[bytes] = frozenset()
    #: The common names of proxies; empty for all that the authority has signed.
    allowed_names: tuple[str, ...] = ()
    user: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    extra_prefix: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Authorities:
    """The authorities whose certificates say who a client is, as DER."""

    users: frozenset[bytes] = frozenset()
    proxies: ProxyHeaders = ProxyHeaders()

    def user(self, peer: Peer, scope: Scope) -> User | None:
        """The user of a request by the certificate of its connection; None if that says nothing."""
        return self._behind_proxy(peer, scope) or self._of_certificate(peer)

    def _of_certificate(self, peer: Peer) -> User | None:
        if not peer.chain & self.users or not peer.common_name:
            return None
        return User(peer.common_name, groups=(*peer.organizations, _AUTHENTICATED))

    def _behind_proxy(self, peer: Peer, scope: Scope) -> User | None:
        proxies = self.proxies
        if not peer.chain & proxies.authorities:
            return None
        if proxies.allowed_names and peer.common_name not in proxies.allowed_names:
            return None
        headers = [(name.decode("latin-1"), value) for name, value in scope["headers"]]
        names = _values(headers, proxies.user)
        if not names:
            return None
        groups = _values(headers, proxies.group)
        extra = _extra(headers, proxies.extra_prefix)
        if _AUTHENTICATED not in groups:
            groups.append(_AUTHENTICATED)
        return User(names[0], groups=tuple(groups), extra=extra)


def _values(headers: Sequence[tuple[str, bytes]], names: Sequence[str]) -> list[str]:
    """What headers of these names say, in the order of the names."""
    return [
        value.decode("latin-1")
        for name in names
        for key, value in headers
        if key == name.lower() and value
    ]


def _extra(headers: Sequence[tuple[str, bytes]], prefixes: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for prefix in prefixes:
        for key, value in headers:
            if key.startswith(prefix.lower()):
                name = unquote(key.removeprefix(prefix.lower()))
                found.setdefault(name, []).append(value.decode("latin-1"))
    return found


# --- reading --------------------------------------------------------------------------------------


def authorities_in_file(path: str) -> frozenset[bytes]:
    """The certificates of --client-ca-file."""
    try:
        text = Path(path).read_text("ascii", "replace")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"--client-ca-file {path}: {reason}") from None
    found = _certificates(text)
    if not found:
        raise ConfigError(f"--client-ca-file {path}: there is no certificate in PEM")
    return found


def authorities_in_config_map(found: Any, users: frozenset[bytes] = frozenset()) -> Authorities:
    """The authorities that a cluster publishes; *users* take the place of its own for users."""
    data = found.get("data") or {}
    proxies = ProxyHeaders(
        _certificates(data.get("requestheader-client-ca-file") or ""),
        _names(data, "requestheader-allowed-names"),
        _names(data, "requestheader-username-headers"),
        _names(data, "requestheader-group-headers"),
        _names(data, "requestheader-extra-headers-prefix"),
    )
    return Authorities(users or _certificates(data.get("client-ca-file") or ""), proxies)


def _names(data: dict[str, str], key: str) -> tuple[str, ...]:
    text = data.get(key) or "[]"
    try:
        return tuple(msgspec.json.decode(text, type=list[str]))
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{CONFIG_MAP}: data.{key}: {error}") from None


def _certificates(text: str) -> frozenset[bytes]:
    """The certificates of a text in PEM, as DER; what is none is passed over."""
    found = set()
    for part in text.split(_END)[:-1]:
        _, begin, body = part.rpartition("-----BEGIN CERTIFICATE-----")
        if not begin:
            continue
        try:
            found.add(ssl.PEM_cert_to_DER_cert(f"{begin}{body}{_END}"))
        except ValueError:
            continue
    return frozenset(found)


# --- connections ----------------------------------------------------------------------------------


class ServerTls:
    """The TLS settings of a server that asks for certificates.

    Its authorities may change, and so may the files of its own certificate: they are looked at when
    a connection comes, at most once in a second.
    """

    def __init__(
        self,
        certificate: Path,
        key: Path,
        *,
        required: bool = False,
        warn: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Serve with this certificate; without authorities no client certificate is accepted.

        With *required*, a client without a certificate is refused. *warn* is called when renewed
        files cannot be used; the certificate before them is served then.
        """
        self._files = (certificate, key)
        self._required, self._warn, self._clock = required, warn, clock
        #: The last logged reason why renewed files could not be used.
        self._told = ""
        self._stamps, self._looked_at = self._stamped(), clock()
        self.authorities = Authorities()
        #: The verified chains of certificates, for connections that resume others.
        self._chains: dict[bytes, frozenset[bytes]] = {}
        self._newest = self._made(self.authorities)
        #: What the server listens with; each connection takes the newest authorities.
        self.context = self._made(self.authorities)
        self.context.sni_callback = self._use_newest

    def trust(self, authorities: Authorities) -> None:
        """Accept certificates of these authorities from now on, and of no others."""
        if authorities != self.authorities:
            self._newest = self._made(authorities)
            self.authorities = authorities
            self._chains.clear()

    def user(self, scope: Scope) -> User | None:
        """The user of a request by the certificate of its connection; None if it says nothing."""
        peer: Peer | None = scope.get(_SCOPE_KEY)
        if peer is None:
            return None
        if peer.chain:
            self._chains[peer.certificate] = peer.chain
            while len(self._chains) > _MOST_CHAINS:
                self._chains.pop(next(iter(self._chains)))
        else:
            peer = replace(peer, chain=self._chains.get(peer.certificate, frozenset()))
        return self.authorities.user(peer, scope)

    def _made(self, authorities: Authorities) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # What resumes an earlier connection is not verified again.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        context.load_cert_chain(*self._files)
        context.verify_mode = ssl.CERT_REQUIRED if self._required else ssl.CERT_OPTIONAL
        # A certificate of an authority may itself be trusted, whoever has signed it.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        for each in sorted(authorities.users | authorities.proxies.authorities):
            context.load_verify_locations(cadata=each)
        return context

    def _use_newest(self, connection: ssl.SSLObject, _: str | None, __: ssl.SSLContext) -> None:
        now = self._clock()
        if now - self._looked_at >= _LOOK_SECONDS:
            self._looked_at = now
            self._reload()
        connection.context = self._newest

    def _stamped(self) -> list[tuple[int, int, int]]:
        """What changes when the files do, also where they are links to other files by then."""
        found = [path.stat() for path in self._files]
        return [(each.st_ino, each.st_mtime_ns, each.st_size) for each in found]

    def _reload(self) -> None:
        """Read the files again if they have changed; what cannot be used yet is left for later."""
        try:
            stamps = self._stamped()
            if stamps == self._stamps:
                return
            self._newest = self._made(self.authorities)
        except (OSError, ssl.SSLError) as error:
            reason = (getattr(error, "reason", None) or str(error)).lower().replace("_", " ")
            if reason != self._told:
                self._told = reason
                self._warn(f"the renewed certificate {self._files[0]} cannot be used: {reason}")
        else:
            self._stamps, self._told = stamps, ""


class PeerProtocol(HttpToolsProtocol):
    """HTTP whose requests have the certificate of their connection in their scope."""

    def connection_made(self, transport: Any) -> None:
        """Read the certificate once per connection."""
        super().connection_made(transport)
        peer = peer_of(transport.get_extra_info("ssl_object"))
        if peer is not None:
            app: Any = self.app

            async def with_peer(scope: Scope, receive: Receive, send: Send) -> None:
                await app({**scope, _SCOPE_KEY: peer}, receive, send)

            self.app = with_peer


def peer_of(connection: ssl.SSLObject | None) -> Peer | None:
    """The certificate that a connection was opened with, verified by TLS; None for none."""
    found: Any = connection.getpeercert() if connection is not None else None
    subject = (found or {}).get("subject")
    if connection is None or not subject:
        return None
    fields = [pair for part in subject for pair in part]
    names = [value for name, value in fields if name == "commonName"]
    organizations = tuple(value for name, value in fields if name == "organizationName")
    certificate = connection.getpeercert(binary_form=True) or b""
    chain = frozenset(_chain(connection))
    return Peer(names[-1] if names else "", organizations, certificate, chain)


def _chain(connection: ssl.SSLObject) -> list[bytes]:
    """The verified chain; Python has a public name for it from 3.13 on."""
    if hasattr(connection, "get_verified_chain"):
        return list(connection.get_verified_chain() or ())
    found = connection._sslobj.get_verified_chain()  # type: ignore[attr-defined]  # noqa: SLF001
    return [each.public_bytes(_DER) for each in found or ()]


#: The encoding of `public_bytes`, as the module `_ssl` numbers it.
_DER: Final = 2


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
