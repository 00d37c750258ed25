"""Errors of requests to an API server.

ApiError             the API server answered, with a refusal
└── UnreachableError no answer came: whether the request was carried out is not known
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping

import msgspec

from podium.errors import PodiumError
from podium.objects.protobuf.wire import MAGIC, MalformedError, as_bytes, fields, unwrapped

_TOO_MANY, _SERVER_ERROR = 429, 500
#: Further digits of a Retry-After make no difference.
_MOST_DIGITS = 9
#: A server that asks for hours would stop all bindings; it is asked again after this time.
LONGEST_PAUSE_SECONDS = 30.0


class ApiError(PodiumError):
    """A refusal; `message` is the API server's sentence, `reason` its one-word cause."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        reason: str = "",
        retry_after: float | None = None,
    ) -> None:
        """Keep the code *status*; *retry_after* are the seconds the server asks to wait.

        No wait is longer than `LONGEST_PAUSE_SECONDS`, whatever a server asks for.
        """
        self.message = message
        self.status = status
        self.reason = reason
        #: The seconds that the server asks for, however many, and those that are waited.
        self.asked_pause = retry_after
        self.retry_after = (
            None if retry_after is None else min(max(retry_after, 0.0), LONGEST_PAUSE_SECONDS)
        )
        super().__init__(message)


class UnreachableError(ApiError):
    """No answer, or part of one: whether the request was carried out is not known."""


def is_outcome_unknown(error: ApiError) -> bool:
    """Whether a request may have been carried out in spite of its error."""
    return isinstance(error, UnreachableError) or error.status >= _SERVER_ERROR


def is_passing(error: ApiError) -> bool:
    """Whether the same request may succeed later."""
    return error.status == _TOO_MANY or is_outcome_unknown(error)


class _Details(msgspec.Struct, frozen=True, rename="camel"):
    retry_after_seconds: float | None = None


class Status(msgspec.Struct, frozen=True):
    """The `Status` object that an API server answers a refused request with."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None


_decode_status = msgspec.json.Decoder(Status).decode


def refusal(status: int, headers: Mapping[str, str], body: bytes, asked: str) -> ApiError:
    """The error for an answer with this code; *asked* is method and address of the request."""
    try:
        said = _binary_status(body) if body.startswith(MAGIC) else _decode_status(body)
    except (msgspec.MsgspecError, MalformedError, UnicodeDecodeError):
        said = Status(_text(body))
    message = said.message or f"{asked}: answered with code {status}"
    if status == 401:
        message = f"{asked}: the credentials are not accepted ({said.message or status})"
    asked_for = _seconds(headers.get("retry-after"))
    if asked_for is None and said.details is not None:
        asked_for = said.details.retry_after_seconds
    return ApiError(message, status=status, reason=said.reason, retry_after=asked_for)


def _binary_status(body: bytes) -> Status:
    """The answer to a request for the binary form."""
    _, _, data = unwrapped(body)
    said = dict(fields(data))
    message, reason, details = (as_bytes(said.get(number, b"")) for number in (3, 4, 5))
    pause = dict(fields(details)).get(5)
    asked_for = _Details(float(pause)) if isinstance(pause, int) else None
    return Status(message.decode(), reason.decode(), details=asked_for)


def _text(body: bytes) -> str:
    """A short answer in plain text, as proxies and some handlers send it."""
    text = body[:200].decode("utf-8", "replace").strip()
    return "" if text.startswith(("<", "{", "[", "k8s\x00")) or len(body) > 200 else text


def _seconds(value: str | None) -> float | None:
    """Retry-After in seconds; its form with a date is rare and ignored."""
    return float(value[:_MOST_DIGITS]) if value and value.isdecimal() else None


def words(error: BaseException) -> str:
    """Why an exchange over the network failed, in words for a message."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {(error.reason or str(error)).lower().replace('_', ' ')}"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError):
        # A name that cannot be resolved has a number of its own kind, below zero.
        if error.errno is not None and error.errno > 0:
            return os.strerror(error.errno).lower()
        return (error.strerror or "").lower() or str(error) or type(error).__name__
    return str(error) or type(error).__name__
