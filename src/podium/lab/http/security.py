"""Access to the lab: only from this machine, with the token, and from no page of another site.

The server listens on loopback, where browsers reach it as well. A page of any site can make a
browser send requests to a local port, or rebind its host name to 127.0.0.1. Every request must
therefore have a loopback address in its `Host` header, and a write from a browser must come from
the pages of the lab. Everything but health and version needs the token: as a bearer token, as a
cookie that the pages set once, or as the beginning of the path. The last is for kubectl, which
sends no bearer token over plain HTTP. The server in its kubeconfig is
`http://127.0.0.1:PORT/token/TOKEN`.

`kubectl create token` issues tokens of service accounts. They are JSON Web Tokens, signed with a
key of the lab, and valid until they expire or the service account is deleted. The lab has one user,
who may do everything, and grants every token the same rights.

Upstream: pkg/registry/core/serviceaccount/storage/token.go, pkg/serviceaccount,
pkg/registry/authentication, pkg/registry/authorization.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import msgspec

from podium.kube.http_rules import (
    LOOPBACK,
    READING,
    bearer_of,
    cookie_of,
    is_of_other_site,
    is_secret,
    limited,
    token_in_path,
    wrong_host,
)
from podium.lab.api.encoding import format_time
from podium.lab.api.resources import Resource
from podium.lab.api.status import (
    StatusError,
    invalid,
    invalid_value,
    too_large,
    too_many_requests,
    unauthorized,
)
from podium.lab.http.requests import LARGEST_BODY, Application, Receive, Scope, Send
from podium.lab.http.responses import Response, error_response, send_response
from podium.lab.registry.registry import Registry
from podium.objects.kinds.meta import JsonObject

_PUBLIC_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version"})
_MOST_HEADERS, _MOST_HEADER_BYTES, _LONGEST_PATH = 100, 32 * 1024, 8 * 1024


_UNAUTHORIZED: Final = 401
_AUTHENTICATE: Final = ((b"www-authenticate", b"Bearer"),)
_HOW_TO_OPEN: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>This lab needs its token</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem; }
code { background: #8882; border-radius: 4px; padding: 0.1em 0.3em; }
:root { color-scheme: light dark; }
</style>
</head>
<body>
<h1>This lab needs its token</h1>
<p>Open the address that <code>podium lab</code> printed when it started. It ends in
<code>?token=…</code>; after that this browser knows the lab until the lab ends.</p>
<p>The token is new after every start. It also stands in the kubeconfig of the lab, in the address
of the server: <code>http://127.0.0.1:PORT/token/TOKEN</code>.</p>
</body>
</html>
"""


class Guard:
    """An ASGI application in front of another one, which rejects requests without access."""

    def __init__(
        self,
        app: Application,
        *,
        token: str,
        tokens: ServiceAccountTokens | None = None,
        hosts: frozenset[str] = frozenset(),
        connections: int = 2000,
    ) -> None:
        """Guard *app*.

        No token is needed if *token* is empty. The *tokens* of service accounts do as well. Besides
        those of loopback, *hosts* are allowed; at most *connections* requests are served at once.
        """
        self._tokens = tokens
        self._app = app
        self._token = token
        self._hosts = LOOPBACK | hosts
        self._connections = connections
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the guarded application, or reject it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            elif scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        try:
            self._check_size(scope)
            headers = dict(scope["headers"])
            self._check_host_and_origin(scope, headers)
            without_token = self._without_token_path(scope)
            redirect = None if without_token else self._authenticate(scope, headers)
            scope = without_token or scope
            if self._open >= self._connections:
                raise too_many_requests("too many requests at once, please try again", seconds=1)
        except StatusError as error:
            wants_page = error.code == _UNAUTHORIZED and _is_browser(scope)
            await send_response(send, _token_page() if wants_page else error_response(error))
            return
        if redirect is not None:
            await send_response(send, redirect)
            return
        self._open += 1
        if b"transfer-encoding" in headers:
            receive = limited(receive, LARGEST_BODY, lambda: {"type": "http.disconnect"})
        try:
            await self._app(scope, receive, send)
        finally:
            self._open -= 1

    def _check_size(self, scope: Scope) -> None:
        headers = scope["headers"]
        size = sum(len(name) + len(value) for name, value in headers)
        if len(headers) > _MOST_HEADERS or size > _MOST_HEADER_BYTES:
            raise StatusError(431, "RequestHeaderFieldsTooLarge", "the headers are too large")
        if len(scope["path"]) + len(scope["query_string"]) > _LONGEST_PATH:
            raise StatusError(414, "RequestURITooLong", "the address is too long")
        for name, value in headers:
            if name == b"content-length" and (not value.isdigit() or int(value) > LARGEST_BODY):
                raise too_large(LARGEST_BODY)

    def _check_host_and_origin(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Reject requests to other hosts, and writes from pages of other sites."""
        if why := wrong_host(headers, self._hosts):
            raise StatusError(421, "MisdirectedRequest", f"{why}; use a loopback address")
        if scope["method"] not in READING and is_of_other_site(headers):
            raise StatusError(403, "Forbidden", "requests from pages of other sites are refused")

    def _without_token_path(self, scope: Scope) -> Scope | None:
        """The request without the token at the beginning of its path, `None` if it has none."""
        found = token_in_path(scope["path"])
        if found is None:
            return None
        token, rest = found
        if not self._is_token(token):
            raise unauthorized()
        raw: bytes = scope.get("raw_path") or scope["path"].encode()
        raw_rest = raw.split(b"/", 3)[3] if raw.count(b"/") > 2 else b""
        return {**scope, "path": rest, "raw_path": b"/" + raw_rest}

    def _authenticate(self, scope: Scope, headers: dict[bytes, bytes]) -> Response | None:
        """Demand the token; a token in the query is answered with a redirect that sets a cookie."""
        if not self._token or scope["path"] in _PUBLIC_PATHS:
            return None
        bearer = bearer_of(headers)
        if bearer and self._is_token(bearer):
            return None
        if self._is_token(cookie_of(headers, _cookie_name(headers)).encode()):
            return None
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        if scope["method"] == "GET" and self._is_own_token(query.pop("token", "").encode()):
            return self._redirect_with_cookie(scope["path"], query, _cookie_name(headers))
        raise unauthorized()

    def _is_own_token(self, given: bytes) -> bool:
        return is_secret(given, self._token)

    def _is_token(self, given: bytes) -> bool:
        """Whether *given* is the lab's own token or one of a service account."""
        if self._is_own_token(given):
            return True
        if self._tokens is None or given.count(b".") != 2:
            return False
        return self._tokens.user_of(given.decode("ascii", "replace")) is not None

    def _redirect_with_cookie(self, path: str, query: dict[str, str], name: str) -> Response:
        rest = f"?{urlencode(query)}" if query else ""
        # Quoted: browsers read a backslash as a slash and leave tabs out, and "//" names a host.
        location = f"/{quote(path.lstrip('/'))}{rest}".encode()
        cookie = f"{name}={self._token}; Path=/; HttpOnly; SameSite=Strict".encode()
        headers = ((b"location", location), (b"set-cookie", cookie))
        return Response(303, b"", b"text/plain", headers)


def _is_browser(scope: Scope) -> bool:
    """Whether a person opens the address: the answer is shown as it comes."""
    accepted = dict(scope["headers"]).get(b"accept", b"")
    return scope["method"] == "GET" and b"text/html" in accepted


def _token_page() -> Response:
    """What to do without a token, as a page."""
    text = _HOW_TO_OPEN.encode()
    return Response(_UNAUTHORIZED, text, b"text/html; charset=utf-8", _AUTHENTICATE)


def _cookie_name(headers: dict[bytes, bytes]) -> str:
    """The name of the cookie with the token; it has the port, which browsers do not tell apart."""
    try:
        port = urlsplit(f"//{headers.get(b'host', b'').decode('latin-1')}").port
    except ValueError:
        port = None
    return f"podium-token-{port or 80}"


ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
LAB_USER: Final = {"username": "podium", "groups": ["system:masters"]}
_HEADER: Final = {"alg": "HS256", "typ": "JWT"}
_DEFAULT_SECONDS, _SHORTEST, _LONGEST = 3600, 600, 1 << 32
_ALL_RESOURCES = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
_ALL_URLS = {"nonResourceURLs": ["*"], "verbs": ["*"]}


class ServiceAccountTokens:
    """Issues and checks the tokens of one lab."""

    def __init__(self, registry: Registry, key: bytes) -> None:
        """Sign with *key*; service accounts are looked up in *registry*."""
        self._registry = registry
        self._key = hashlib.sha256(b"service accounts" + key).digest()
        self._lab_token = key

    def issue(self, namespace: str, name: str, request: JsonObject) -> JsonObject:
        """The `TokenRequest` *request* for a service account, with the token in its status."""
        account = self._registry.get("serviceaccounts", name, namespace)
        spec = {**(request.get("spec") or {})}
        seconds = spec.setdefault("expirationSeconds", _DEFAULT_SECONDS)
        if not _SHORTEST <= seconds <= _LONGEST:
            least = "may not specify a duration less than 10 minutes"
            why = least if seconds < _SHORTEST else "may not specify a duration larger than 2^32"
            problem = invalid_value("spec.expirationSeconds", seconds, why)
            raise invalid("TokenRequest", "authentication.k8s.io", name, [problem])
        spec["audiences"] = spec.get("audiences") or [ISSUER]
        now = int(self._registry.clock())
        uid = account["metadata"]["uid"]
        claims = {
            "aud": spec["audiences"],
            "exp": now + seconds,
            "iat": now,
            "iss": ISSUER,
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}},
            "nbf": now,
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
        token = self._signed(claims)
        metadata = {"name": name, "namespace": namespace}
        metadata["creationTimestamp"] = format_time(now)
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": metadata,
            "spec": spec,
            "status": {"token": token, "expirationTimestamp": format_time(now + seconds)},
        }

    def review(self, review: JsonObject) -> JsonObject:
        """A `TokenReview` with its status: who the token belongs to."""
        spec = review.get("spec") or {}
        token = str(spec.get("token") or "")
        user = LAB_USER if self._is_lab_token(token) else self.user_of(token)
        status: JsonObject = {"authenticated": user is not None}
        if user is not None:
            status["user"] = user
            status["audiences"] = spec.get("audiences") or [ISSUER]
        else:
            status["error"] = "the token is not one of this lab, or it has expired"
        return review | {"status": status}

    def user_of(self, token: str) -> JsonObject | None:
        """The service account of a token; `None` if the token is not valid."""
        claims = self._claims(token)
        if claims is None or claims["exp"] <= self._registry.clock():
            return None
        about = claims["kubernetes.io"]
        namespace, account = about["namespace"], about["serviceaccount"]
        found = self._registry.find("serviceaccounts", account["name"], namespace)
        if found is None or found["metadata"]["uid"] != account["uid"]:
            return None
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
        return {
            "username": claims["sub"],
            "uid": account["uid"],
            "groups": [*groups, "system:authenticated"],
        }

    def _is_lab_token(self, token: str) -> bool:
        return bool(token) and hmac.compare_digest(token.encode(), self._lab_token)

    def _signed(self, claims: JsonObject) -> str:
        text = ".".join(_encoded(msgspec.json.encode(part)) for part in (_HEADER, claims))
        return f"{text}.{_encoded(self._signature(text))}"

    def _signature(self, text: str) -> bytes:
        return hmac.new(self._key, text.encode(), hashlib.sha256).digest()

    def _claims(self, token: str) -> JsonObject | None:
        text, _, signature = token.rpartition(".")
        if text.count(".") != 1 or not token.isascii():
            return None
        try:
            if not hmac.compare_digest(_decoded(signature), self._signature(text)):
                return None
            claims: JsonObject = msgspec.json.decode(_decoded(text.partition(".")[2]))
        except (binascii.Error, msgspec.DecodeError):
            return None
        return claims


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def review(resource: Resource, body: JsonObject, tokens: ServiceAccountTokens) -> JsonObject:
    """A review with its status filled in; *tokens* knows whose token a token is."""
    status: dict[str, Any]
    if resource.kind == "TokenReview":
        return tokens.review(body | {"kind": resource.kind, "apiVersion": resource.group_version})
    if resource.kind == "SelfSubjectReview":
        status = {"userInfo": LAB_USER}
    elif resource.kind == "SelfSubjectRulesReview":
        status = {
            "resourceRules": [_ALL_RESOURCES],
            "nonResourceRules": [_ALL_URLS],
            "incomplete": False,
        }
    else:
        status = {"allowed": True, "reason": "the lab has one user, who may do everything"}
    version = resource.group_version
    return body | {"kind": resource.kind, "apiVersion": version, "status": status}
