"""Access to the endpoints of a scheduler, as the cluster grants it.

The certificate of the connection, or a TokenReview of the bearer token, says who asks. A
SubjectAccessReview for the path says whether they may. Answers are kept for ten seconds. The probes
are open to all, so that a kubelet needs no credentials. This is what kube-scheduler does on its
secure port.

Upstream: apiserver/pkg/server/options (DelegatingAuthentication, DelegatingAuthorization).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import msgspec

from podium.kube.errors import ApiError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105  a path
ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
#: Paths that need no authorization.
OPEN_PATHS: Final = ("/healthz", "/livez", "/readyz")
#: How long an answer of the API server is kept, and how many are.
KEPT_SECONDS: Final = 10.0
#: How many reviews are asked for at a time, how many requests wait for one, and how long.
MOST_REVIEWS: Final = 4
MOST_WAITING: Final = 64
REVIEW_SECONDS: Final = 10.0
#: The same numbers for requests without credentials, which anybody can send, and for those with a
#: token that was never accepted, which anybody can invent.
MOST_ANONYMOUS_REVIEWS: Final = 1
MOST_ANONYMOUS_WAITING: Final = 16
MOST_UNPROVEN_REVIEWS: Final = 2
MOST_UNPROVEN_WAITING: Final = 32
MOST_KEPT: Final = 1024

Answer = TypeVar("Answer")


class ReviewClient(Protocol):
    """The request that asks the API server for a review."""

    async def create(self, path: str, obj: dict[str, Any]) -> Any:
        """Create an object; the object with its status."""


@dataclass(frozen=True, slots=True)
class User:
    """Who asks, as their certificate or a review of their token says."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, list[str]] = field(default_factory=dict)


ANONYMOUS: Final = User("system:anonymous", groups=("system:unauthenticated",))


class _Refusal(Exception):  # noqa: N818  an answer, not an error
    """The request is not served; the code and the reason say why."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason = code, reason


class DelegatedAccess:
    """An ASGI application in front of another one, which asks the API server about each request."""

    def __init__(
        self,
        app: ASGIApp,
        client: ReviewClient,
        clock: Callable[[], float],
        by_certificate: Callable[[Scope], User | None] = lambda _: None,
    ) -> None:
        """Guard *app*; *clock* says how old the answers are that were kept.

        *by_certificate* finds the user by the certificate of the connection; None if it cannot.
        """
        self._app, self._client = app, client
        self._by_certificate = by_certificate
        self._reviewing = asyncio.Semaphore(MOST_REVIEWS)
        #: Users by the digests of their tokens, and the tokens that were not accepted.
        self._users: _Kept[User] = _Kept(clock)
        self._refused: _Kept[User] = _Kept(clock)
        self._known = _Share(MOST_REVIEWS, MOST_WAITING, clock)
        self._unproven = _Share(MOST_UNPROVEN_REVIEWS, MOST_UNPROVEN_WAITING, clock)
        self._anonymous = _Share(MOST_ANONYMOUS_REVIEWS, MOST_ANONYMOUS_WAITING, clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it with 401, 403, 429, 500 or 503."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            await self._check(scope)
        except _Refusal as refusal:
            await _send(send, refusal.code, refusal.reason, str(refusal))
        except ApiError as error:
            await _send(send, 500, "InternalError", f"the API server was asked: {error}")
        else:
            await self._app(scope, receive, send)

    async def _check(self, scope: Scope) -> None:
        path = str(scope["path"])
        if any(path == each or path.startswith(f"{each}/") for each in OPEN_PATHS):
            return
        user = self._by_certificate(scope) or await self._user(dict(scope["headers"]))
        verb = str(scope["method"]).lower()
        if not await self._may(user, verb, path):
            raise _Refusal(403, "Forbidden", f'User "{user.name}" cannot {verb} path "{path}"')

    async def _user(self, headers: dict[bytes, bytes]) -> User:
        given = headers.get(b"authorization", b"").decode("latin-1")
        scheme, _, token = given.partition(" ")
        if not given:
            return ANONYMOUS
        if scheme.lower() != "bearer" or not token.strip():
            raise _Refusal(401, "Unauthorized", "a bearer token is expected")
        token = token.strip()
        key = _digest(token)  # tokens themselves are not kept
        user = self._users.get(key) or self._refused.get(key)
        if user is None:
            share = self._known if key in self._users else self._unproven
            user = await self._reviewed(share, token)
            if user is _NOBODY:
                self._users.drop(key)
            (self._refused if user is _NOBODY else self._users).put(key, user)
        if user is _NOBODY:
            raise _Refusal(401, "Unauthorized", "the token is not accepted")
        return user

    async def _reviewed(self, share: _Share, token: str) -> User:
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        }
        status = await self._review(share, TOKEN_REVIEWS, review)
        if not status.get("authenticated"):
            return _NOBODY
        user = status.get("user") or {}
        return User(
            str(user.get("username") or ""),
            str(user.get("uid") or ""),
            tuple(user.get("groups") or ()),
            dict(user.get("extra") or {}),
        )

    async def _may(self, user: User, verb: str, path: str) -> bool:
        asked = f"{user.name}\n{user.uid}\n{sorted(user.groups)}\n{user.extra}\n{verb}\n{path}"
        key = _digest(asked)  # paths may be long
        share = self._anonymous if user is ANONYMOUS else self._known
        allowed = share.allowed.get(key)
        if allowed is None:
            allowed = await self._access(share, user, verb, path)
            share.allowed.put(key, allowed)
        return allowed

    async def _access(self, share: _Share, user: User, verb: str, path: str) -> bool:
        spec: dict[str, Any] = {
            "user": user.name,
            "uid": user.uid,
            "groups": list(user.groups),
            "extra": user.extra,
            "nonResourceAttributes": {"verb": verb, "path": path},
        }
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": spec,
        }
        status = await self._review(share, ACCESS_REVIEWS, review)
        return bool(status.get("allowed")) and not status.get("denied")

    async def _review(self, share: _Share, path: str, review: dict[str, Any]) -> dict[str, Any]:
        """Ask the API server, few questions at a time: bindings use the same connections."""
        if share.waiting >= share.most_waiting:
            raise _Refusal(429, "TooManyRequests", "too many requests wait to be authorized")
        share.waiting += 1
        try:
            async with asyncio.timeout(REVIEW_SECONDS), share.reviewing, self._reviewing:
                found = await self._client.create(path, review)
        except TimeoutError:
            raise _Refusal(503, "ServiceUnavailable", "the API server was asked in vain") from None
        finally:
            share.waiting -= 1
        status: dict[str, Any] = found.get("status") or {}
        return status


#: Stands for a token that the API server does not accept.
_NOBODY: Final = User("")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class _Kept(Generic[Answer]):
    """Answers of the last seconds; beyond a number the oldest is dropped."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._answers: OrderedDict[str, tuple[float, Answer]] = OrderedDict()

    def get(self, key: str) -> Answer | None:
        found = self._answers.get(key)
        if found is None or self._clock() - found[0] > KEPT_SECONDS:
            return None
        return found[1]

    def __contains__(self, key: str) -> bool:
        """Whether there was an answer, however old."""
        return key in self._answers

    def drop(self, key: str) -> None:
        self._answers.pop(key, None)

    def put(self, key: str, answer: Answer) -> None:
        self._answers[key] = (self._clock(), answer)
        self._answers.move_to_end(key)
        if len(self._answers) > MOST_KEPT:
            self._answers.popitem(last=False)


class _Share:
    """What requests of one sort have of the reviews, so that another sort cannot use it up."""

    def __init__(self, reviews: int, most_waiting: int, clock: Callable[[], float]) -> None:
        self.reviewing = asyncio.Semaphore(reviews)
        #: How many requests wait for a review, or are being reviewed.
        self.waiting, self.most_waiting = 0, most_waiting
        self.allowed: _Kept[bool] = _Kept(clock)


def failure(code: int, reason: str, message: str) -> dict[str, Any]:
    """A `Status` that says why a request is refused."""
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "reason": reason,
        "message": message,
        "code": code,
    }


async def _send(send: Send, code: int, reason: str, message: str) -> None:
    headers = [(b"content-type", b"application/json")]
    if code == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": code, "headers": headers})
    await send(
        {"type": "http.response.body", "body": msgspec.json.encode(failure(code, reason, message))}
    )
