"""Who may talk to the lab: this machine, with the token, and no page of another site.

The server listens on loopback, but so do browsers: a page from anywhere can make one send requests
to a port here, or rebind its own name to 127.0.0.1. So every request must name a loopback address
as its `Host`, a write from a browser must come from our own pages, and whoever asks for anything
but health must know the token: as a bearer, as a cookie that pages are given once, or as the start
of the path. The last is for kubectl, which sends no bearer over plain HTTP: the server in its
kubeconfig is `http://127.0.0.1:PORT/token/TOKEN`.
"""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from podium.kube.address import TOKEN_PATH
from podium.lab.api.status import StatusError, too_large, too_many_requests, unauthorized
from podium.lab.http.answers import Answer, refusal
from podium.lab.http.requests import LARGEST_BODY, Application, Message, Receive, Scope, Send

COOKIE = "podium-token"
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_OPEN = frozenset({"/healthz", "/livez", "/readyz", "/version"})
_MOST_HEADERS, _HEADER_BYTES, _LONGEST_PATH = 100, 32 * 1024, 8 * 1024


class Guard:
    """An ASGI application in front of another, which it lets only the right requests reach."""

    def __init__(
        self,
        app: Application,
        *,
        token: str,
        hosts: frozenset[str] = frozenset(),
        connections: int = 2000,
    ) -> None:
        """Guard *app*; *hosts* are names besides those of loopback; an empty *token* asks none."""
        self._app = app
        self._token = token
        self._hosts = _LOOPBACK | hosts
        self._connections = connections
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            elif scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        try:
            self._check_size(scope)
            headers = dict(scope["headers"])
            self._check_place(scope, headers)
            entered = self._entered(scope)
            moved = None if entered else self._admit(scope, headers)
            scope = entered or scope
            if self._open >= self._connections:
                raise too_many_requests("too many requests at once, please try again", seconds=1)
        except StatusError as error:
            await _send(send, refusal(error))
            return
        if moved is not None:
            await _send(send, moved)
            return
        self._open += 1
        if b"transfer-encoding" in headers:
            receive = _limited(receive)
        try:
            await self._app(scope, receive, send)
        finally:
            self._open -= 1

    def _check_size(self, scope: Scope) -> None:
        headers = scope["headers"]
        if len(headers) > _MOST_HEADERS or sum(map(_weight, headers)) > _HEADER_BYTES:
            raise StatusError(431, "RequestHeaderFieldsTooLarge", "the headers are too large")
        if len(scope["path"]) + len(scope["query_string"]) > _LONGEST_PATH:
            raise StatusError(414, "RequestURITooLong", "the address is too long")
        for name, value in headers:
            if name == b"content-length" and (not value.isdigit() or int(value) > LARGEST_BODY):
                raise too_large(LARGEST_BODY)

    def _check_place(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Whom the request means, and from which page it comes."""
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._is_ours(f"//{host}"):
            raise StatusError(
                421,
                "MisdirectedRequest",
                f"this is not {host or 'a host without a name'}; use a loopback address",
            )
        origin = headers.get(b"origin", b"").decode("latin-1")
        site = headers.get(b"sec-fetch-site", b"")
        if scope["method"] in _SAFE:
            return
        foreign = origin and urlsplit(origin).netloc != host
        if foreign or site in {b"cross-site", b"same-site"}:
            raise StatusError(403, "Forbidden", "requests from pages of other sites are refused")

    def _is_ours(self, address: str) -> bool:
        try:
            return urlsplit(address).hostname in self._hosts
        except ValueError:
            return False

    def _entered(self, scope: Scope) -> Scope | None:
        """The request without the token that its path starts with; none if it has no such start."""
        path: str = scope["path"]
        if not path.startswith(TOKEN_PATH):
            return None
        given, _, rest = path.removeprefix(TOKEN_PATH).partition("/")
        if not self._knows(given.encode()):
            raise unauthorized()
        raw: bytes = scope.get("raw_path") or path.encode()
        left = raw.split(b"/", 3)[3] if raw.count(b"/") > 2 else b""
        return {**scope, "path": f"/{rest}", "raw_path": b"/" + left}

    def _admit(self, scope: Scope, headers: dict[bytes, bytes]) -> Answer | None:
        """Ask for the token; an address that carries it is answered with a cookie instead."""
        if not self._token or scope["path"] in _OPEN:
            return None
        bearer = headers.get(b"authorization", b"")
        if bearer[:7].lower() == b"bearer " and self._knows(bearer[7:].strip()):
            return None
        if self._knows(_cookie(headers)):
            return None
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        if scope["method"] == "GET" and self._knows(query.pop("token", "").encode()):
            return self._welcome(scope["path"], query)
        raise unauthorized()

    def _knows(self, given: bytes) -> bool:
        return hmac.compare_digest(given, self._token.encode())

    def _welcome(self, path: str, query: dict[str, str]) -> Answer:
        rest = f"?{urlencode(query)}" if query else ""
        where = f"/{path.lstrip('/')}{rest}".encode("ascii", "ignore")
        cookie = f"{COOKIE}={self._token}; Path=/; HttpOnly; SameSite=Strict".encode()
        headers = ((b"location", where), (b"set-cookie", cookie))
        return Answer(303, b"", b"text/plain", headers)


def _limited(receive: Receive) -> Receive:
    """A body that does not say how long it is, cut off where it becomes too long."""
    size = 0

    async def received() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        return {"type": "http.disconnect"} if size > LARGEST_BODY else message

    return received


def _weight(header: tuple[bytes, bytes]) -> int:
    return len(header[0]) + len(header[1])


def _cookie(headers: dict[bytes, bytes]) -> bytes:
    text = headers.get(b"cookie", b"").decode("latin-1")
    if COOKIE not in text:
        return b""
    try:
        found = SimpleCookie(text).get(COOKIE)
    except CookieError:
        return b""
    return b"" if found is None else found.value.encode()


async def _send(send: Send, answer: Answer) -> None:
    headers = [
        (b"content-type", answer.type),
        (b"content-length", str(len(answer.body)).encode()),
        *answer.headers,
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
