"""Who may send requests to a port of this program: the rules that all its servers share.

A page of any site can make a browser send requests to a local port, or rebind its own host name to
a loopback address. Browsers say in `Origin` and `Sec-Fetch-Site` where a request comes from, and in
`Host` by which name it was sent. The address of a lab has its token in its path, which messages
leave out.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from typing import Any, Final
from urllib.parse import urlsplit

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
#: The names of this machine.
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
#: The path and the query of a request.
TARGET: Final = re.compile(r"/[!-~]*")
_HOST: Final = re.compile(r"[^\s\x00-\x1f\x7f]+")
#: Methods that change nothing.
READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITE: Final = frozenset({b"none", b"same-origin"})


def is_host(name: str) -> bool:
    """Whether a name or an address can be looked up at all."""
    try:
        return bool(_HOST.fullmatch(name) and name.encode("idna"))
    except UnicodeError:
        return False


def host_name(headers: Mapping[bytes, bytes]) -> str | None:
    """The name by which a request was sent, without the port; None if it is no name."""
    try:
        return urlsplit(f"//{headers.get(b'host', b'').decode('latin-1')}").hostname
    except ValueError:
        return None


def wrong_host(headers: Mapping[bytes, bytes], hosts: Collection[str]) -> str:
    """What is wrong with a request that was sent by a name which is not one of *hosts*; or ""."""
    if host_name(headers) in hosts:
        return ""
    host = headers.get(b"host", b"").decode("latin-1")
    return f"this is not {host or 'a host without a name'}"


def is_of_page(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a browser says that a page sends the request."""
    return b"origin" in headers or b"sec-fetch-site" in headers


def is_of_other_site(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a browser says that a page of another site sends the request.

    `Sec-Fetch-Site` is the browser's own word, and counts. A proxy may have changed `Host`.
    """
    site = headers.get(b"sec-fetch-site")
    if site is not None:
        return site not in _OWN_SITE
    origin = headers.get(b"origin", b"").decode("latin-1")
    try:
        named = urlsplit(origin).netloc
    except ValueError:
        return True
    return bool(origin) and named != headers.get(b"host", b"").decode("latin-1")


def bearer_of(headers: Mapping[bytes, bytes]) -> bytes:
    """The bearer token of a request; empty if it has none."""
    given = headers.get(b"authorization", b"")
    return given[7:].strip() if given[:7].lower() == b"bearer " else b""


def cookie_of(headers: Mapping[bytes, bytes], name: str) -> str:
    """The value of a cookie; empty if the request has none of this name."""
    text = headers.get(b"cookie", b"").decode("latin-1")
    if name not in text:
        return ""
    from http.cookies import CookieError, SimpleCookie  # noqa: PLC0415  a client has no use for it

    try:
        found = SimpleCookie(text).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def token_in_path(path: str) -> tuple[bytes, str] | None:
    """The token at the beginning of a path, and the rest of the path; None if there is none."""
    if not path.startswith(TOKEN_PATH):
        return None
    token, _, rest = path.removeprefix(TOKEN_PATH).partition("/")
    return token.encode(), f"/{rest}"


def limited(receive: Receive, most: int, too_large: Callable[[], Message]) -> Receive:
    """*receive* for a body of unknown length: *too_large* answers or raises beyond *most* bytes."""
    size = 0

    async def received() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        return too_large() if size > most else message

    return received


def is_secret(given: bytes, secret: str) -> bool:
    """Whether *given* is the secret; how long that takes to find out tells nothing of it."""
    return hmac.compare_digest(given, secret.encode())


#: Precedes the token in the address of a lab: over plain HTTP kubectl sends no token otherwise.
TOKEN_PATH = "/token/"  # noqa: S105
_PASSWORD = re.compile(r"//[^/]*@")
_TOKEN = re.compile(rf"{TOKEN_PATH}[^/]*")


def shown(url: str) -> str:
    """The address without a token or a password."""
    return _PASSWORD.sub("//", _TOKEN.sub("", url))
