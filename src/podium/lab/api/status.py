"""Errors of the API: those of single fields, and a `Status` with a code, a reason and a message.

    spec.containers[0].image: Required value
    metadata.name: Invalid value: "X": a lowercase RFC 1123 subdomain must consist of …

Every part of the lab that rejects a request raises a `StatusError`, made by one of the functions
below; the server sends its `body()` as the response. The messages are those of kube-apiserver.

Upstream: apimachinery/pkg/api/errors, apimachinery/pkg/util/validation/field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from podium.errors import PodiumError
from podium.objects.kinds.meta import JsonObject
from podium.objects.names import quoted

_WORDS = {
    "FieldValueNotFound": "Not found",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueInvalid": "Invalid value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
    "FieldValueTypeInvalid": "Invalid value",
}
_VALUELESS = frozenset({"FieldValueRequired", "FieldValueForbidden", "FieldValueTooLong"})


@dataclass(frozen=True, slots=True)
class FieldError:
    """One invalid field: the reason, the path of the field, its value and a sentence."""

    reason: str
    field: str
    value: Any = None
    detail: str = ""

    def __str__(self) -> str:
        """The path and the message."""
        return f"{self.field}: {self.message()}"

    def message(self) -> str:
        """The message without the path."""
        text = _WORDS[self.reason]
        if self.reason not in _VALUELESS:
            text = f"{text}: {_shown(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def cause(self) -> dict[str, str]:
        """The error as one of the causes in the details of a `Status`."""
        return {"reason": self.reason, "message": self.message(), "field": self.field}


#: What a validation function yields.
FieldErrors = Iterator[FieldError]


def _shown(value: Any) -> str:
    """A value as Go prints it in a field error."""
    if isinstance(value, str):
        return quoted(value)
    if value is None:
        return "null"
    if isinstance(value, dict) and all(isinstance(each, str) for each in value.values()):
        if not value:
            return "map[string]string(nil)"
        pairs = ", ".join(f"{quoted(key)}:{quoted(value[key])}" for key in sorted(value))
        return f"map[string]string{{{pairs}}}"
    return msgspec.json.encode(value).decode()


def required(field: str, detail: str = "") -> FieldError:
    """The field is missing and must be set."""
    return FieldError("FieldValueRequired", field, "", detail)


def invalid_value(field: str, value: Any, detail: str = "") -> FieldError:
    """The value is not allowed."""
    return FieldError("FieldValueInvalid", field, value, detail)


def duplicate(field: str, value: Any) -> FieldError:
    """The value occurs more than once."""
    return FieldError("FieldValueDuplicate", field, value)


def not_supported(field: str, value: Any, supported: Iterable[str]) -> FieldError:
    """The value is not one of the *supported* ones."""
    listed = ", ".join(quoted(each) for each in supported)
    return FieldError("FieldValueNotSupported", field, value, f"supported values: {listed}")


def forbidden_field(field: str, detail: str = "") -> FieldError:
    """The field may not be set."""
    return FieldError("FieldValueForbidden", field, "", detail)


def missing_target(field: str, value: Any) -> FieldError:
    """The value names an object that does not exist."""
    return FieldError("FieldValueNotFound", field, value)


def too_many(field: str, count: int, most: int) -> FieldError:
    """The list or map has more items than *most*."""
    items = "item" if most == 1 else "items"
    return FieldError("FieldValueTooMany", field, count, f"must have at most {most} {items}")


def too_long(field: str, value: Any, most: int) -> FieldError:
    """The value has more bytes than *most*."""
    return FieldError("FieldValueTooLong", field, value, f"must have at most {most} bytes")


class StatusError(PodiumError):
    """A rejected request; *details* and *metadata* are those of the `Status`."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Reject with an HTTP *code*, a *reason* for programs and a *message* for people."""
        self.code = code
        self.reason = reason
        self.message = message
        self.details = dict(details or {})
        self.metadata = dict(metadata or {})
        super().__init__(message)

    def body(self) -> JsonObject:
        """The error as a `Status` object."""
        body: JsonObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details:
            body["details"] = self.details
        return body | {"code": self.code}


@contextmanager
def ignoring(*codes: int) -> Iterator[None]:
    """Go on where a request is rejected with one of these codes."""
    try:
        yield
    except StatusError as error:
        if error.code not in codes:
            raise


def success(details: Mapping[str, Any] | None = None) -> JsonObject:
    """The `Status` of a request that succeeded without returning an object."""
    body: JsonObject = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return body | ({"details": dict(details)} if details else {})


def _details(qualified: str, name: str, **more: object) -> JsonObject:
    """The details that name an object of the resource `pods` or `deployments.apps`."""
    plural, _, group = qualified.partition(".")
    found: JsonObject = {"name": name, "group": group, "kind": plural}
    return {key: value for key, value in found.items() if value} | more


def not_found(qualified: str, name: str) -> StatusError:
    """404: the object does not exist; *qualified* is `pods` or `deployments.apps`."""
    message = f"{qualified} {quoted(name)} not found"
    return StatusError(404, "NotFound", message, details=_details(qualified, name))


def unknown_path() -> StatusError:
    """404: no resource is served at this path."""
    causes = [{"reason": "UnexpectedServerResponse", "message": "404 page not found"}]
    message = "the server could not find the requested resource"
    return StatusError(404, "NotFound", message, details={"causes": causes})


def already_exists(qualified: str, name: str, *, leaving: bool = False) -> StatusError:
    """409: the name is taken; *leaving* if the object that has it is being deleted."""
    message = f"{qualified} {quoted(name)} already exists"
    if leaving:
        message = f"object is being deleted: {message}"
    return StatusError(409, "AlreadyExists", message, details=_details(qualified, name))


MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def conflict(qualified: str, name: str, why: str = MODIFIED) -> StatusError:
    """409: the object has changed, or is not what a precondition demands."""
    message = f"Operation cannot be fulfilled on {qualified} {quoted(name)}: {why}"
    return StatusError(409, "Conflict", message, details=_details(qualified, name))


def bad_request(message: str) -> StatusError:
    """400: the request cannot be read or contradicts itself."""
    return StatusError(400, "BadRequest", message)


def wrong_name(name: str, on_url: str) -> StatusError:
    """400: the object in the body has another name than the one on the URL."""
    return bad_request(
        f"the name of the object ({name}) does not match the name on the URL ({on_url})"
    )


def unauthorized() -> StatusError:
    """401: the request has no token or a wrong one."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def forbidden(qualified: str, name: str, why: str) -> StatusError:
    """403: admission rejects the request."""
    about = f"{qualified} {quoted(name)} is forbidden" if name else f"{qualified} is forbidden"
    return StatusError(403, "Forbidden", f"{about}: {why}", details=_details(qualified, name))


def terminating(qualified: str, name: str, namespace: str) -> StatusError:
    """403: no object can be created in a namespace that is being deleted."""
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    error = forbidden(qualified, name, why)
    error.details["causes"] = [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
    ]
    return error


def invalid(kind: str, group: str, name: str, problems: Sequence[FieldError]) -> StatusError:
    """422: the object has invalid fields; each is a cause, and the message lists all."""
    texts = list(dict.fromkeys(str(problem) for problem in problems))
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = f"{kind}.{group}" if group else kind
    details: JsonObject = {"name": name, "group": group, "kind": kind}
    details = {key: value for key, value in details.items() if value}
    details["causes"] = [problem.cause() for problem in problems]
    message = f"{qualified} {quoted(name)} is invalid: {listed}"
    return StatusError(422, "Invalid", message, details=details)


def expired(message: str, *, continue_token: str = "") -> StatusError:
    """410: the version is compacted; *continue_token* lists the rest at the current version."""
    metadata = {"continue": continue_token} if continue_token else {}
    return StatusError(410, "Expired", message, metadata=metadata)


def gone(asked: int, oldest: int) -> StatusError:
    """410: a watch begins at a version that is compacted."""
    return expired(f"too old resource version: {asked} ({oldest})")


def too_large_version(asked: int, current: int) -> StatusError:
    """504: the version does not exist yet."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return StatusError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {asked}, current: {current}",
        details={"causes": [cause], "retryAfterSeconds": 1},
    )


def too_many_requests(message: str, *, seconds: int = 0, causes: Iterable[Any] = ()) -> StatusError:
    """429: the request may succeed when it is sent again, after *seconds* if that is known."""
    details: JsonObject = {"causes": list(causes)} if causes else {}
    if seconds:
        details["retryAfterSeconds"] = seconds
    return StatusError(429, "TooManyRequests", message, details=details)


def method_not_allowed() -> StatusError:
    """405: the resource does not have the verb."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message)


def not_acceptable(accepted: Sequence[str]) -> StatusError:
    """406: the `Accept` header names no media type that is served."""
    message = "only the following media types are accepted: " + ", ".join(accepted)
    return StatusError(406, "NotAcceptable", message)


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    """415: bodies of this media type are not read."""
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted)
    )
    return StatusError(415, "UnsupportedMediaType", message)


def too_large(limit: int) -> StatusError:
    """413: the body has more than *limit* bytes."""
    message = f"the request body is larger than {limit} bytes"
    return StatusError(413, "RequestEntityTooLarge", message)


def internal(message: str) -> StatusError:
    """500: the server failed."""
    details = {"causes": [{"message": message}]}
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", details=details)
