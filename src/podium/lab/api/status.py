"""Refusals in Kubernetes' own form: a `Status` with a code, a reason, a sentence and details.

Everything in the lab that refuses a request raises a `StatusError`, made by one of the builders
below; the server writes its `body()` as the answer. The sentences are kube-apiserver's.

Upstream: apimachinery/pkg/api/errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from podium.errors import PodiumError
from podium.lab.api.field_errors import FieldError
from podium.objects.names import quoted

#: A JSON object of the API; the lab keeps every field it came with.
JsonDict = dict[str, Any]


class StatusError(PodiumError):
    """A refused request; *details* as Kubernetes has them."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Refuse with an HTTP *code*, a *reason* in one word and a *message* for people."""
        self.code = code
        self.reason = reason
        self.message = message
        self.details = dict(details or {})
        self.metadata = dict(metadata or {})
        super().__init__(message)

    def body(self) -> JsonDict:
        """The `Status` object that a client reads."""
        body: JsonDict = {
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


def success(details: Mapping[str, Any] | None = None) -> JsonDict:
    """The `Status` of a request that went well and has no object to show."""
    body: JsonDict = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return body | ({"details": dict(details)} if details else {})


def _about(qualified: str, name: str, **more: object) -> JsonDict:
    """Details of a resource written as `pods` or `deployments.apps`."""
    plural, _, group = qualified.partition(".")
    found: JsonDict = {"name": name, "group": group, "kind": plural}
    return {key: value for key, value in found.items() if value} | more


def not_found(qualified: str, name: str) -> StatusError:
    """404 for an object that is not there; *qualified* is `pods` or `deployments.apps`."""
    message = f"{qualified} {quoted(name)} not found"
    return StatusError(404, "NotFound", message, details=_about(qualified, name))


def unknown_path() -> StatusError:
    """404 for a path that nobody serves."""
    causes = [{"reason": "UnexpectedServerResponse", "message": "404 page not found"}]
    message = "the server could not find the requested resource"
    return StatusError(404, "NotFound", message, details={"causes": causes})


def already_exists(qualified: str, name: str, *, leaving: bool = False) -> StatusError:
    """409 for a name that is taken, perhaps by something on its way out."""
    message = f"{qualified} {quoted(name)} already exists"
    if leaving:
        message = f"object is being deleted: {message}"
    return StatusError(409, "AlreadyExists", message, details=_about(qualified, name))


def name_exhausted(qualified: str, name: str) -> StatusError:
    """409 when no generated name was free."""
    message = (
        f"{qualified} {quoted(name)} already exists, the server was not able to generate a "
        "unique name for the object"
    )
    return StatusError(409, "AlreadyExists", message, details=_about(qualified, name))


MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def conflict(qualified: str, name: str, why: str = MODIFIED) -> StatusError:
    """409 because the object is not in the state that the writer thought."""
    message = f"Operation cannot be fulfilled on {qualified} {quoted(name)}: {why}"
    return StatusError(409, "Conflict", message, details=_about(qualified, name))


def bad_request(message: str) -> StatusError:
    """400: the request makes no sense."""
    return StatusError(400, "BadRequest", message)


def unauthorized() -> StatusError:
    """401: no token, or a wrong one."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def forbidden(qualified: str, name: str, why: str) -> StatusError:
    """403: understood and refused."""
    about = f"{qualified} {quoted(name)} is forbidden" if name else f"{qualified} is forbidden"
    return StatusError(403, "Forbidden", f"{about}: {why}", details=_about(qualified, name))


def terminating(qualified: str, name: str, namespace: str) -> StatusError:
    """403: nothing new comes into a namespace that is going away."""
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
    """422: one cause for each field that is wrong, all of them in the message."""
    texts = list(dict.fromkeys(str(problem) for problem in problems))
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = f"{kind}.{group}" if group else kind
    details: JsonDict = {"name": name, "group": group, "kind": kind}
    details = {key: value for key, value in details.items() if value}
    details["causes"] = [problem.cause() for problem in problems]
    message = f"{qualified} {quoted(name)} is invalid: {listed}"
    return StatusError(422, "Invalid", message, details=details)


def expired(message: str, *, again: str = "") -> StatusError:
    """410: the version asked for is gone; *again* is a token that goes on without it."""
    return StatusError(410, "Expired", message, metadata={"continue": again} if again else {})


def gone(asked: int, oldest: int) -> StatusError:
    """410 for a watch from a version that is no longer remembered."""
    return expired(f"too old resource version: {asked} ({oldest})")


def too_large_version(asked: int, current: int) -> StatusError:
    """504 for a version that does not exist yet."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return StatusError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {asked}, current: {current}",
        details={"causes": [cause], "retryAfterSeconds": 1},
    )


def too_many_requests(message: str, *, seconds: int = 0, causes: Iterable[Any] = ()) -> StatusError:
    """429: not now."""
    details: JsonDict = {"causes": list(causes)} if causes else {}
    if seconds:
        details["retryAfterSeconds"] = seconds
    return StatusError(429, "TooManyRequests", message, details=details)


def method_not_allowed(qualified: str, verb: str) -> StatusError:
    """405: the resource exists, and this cannot be done with it."""
    message = f"{verb} is not supported on resources of kind {quoted(qualified)}"
    plural, _, group = qualified.partition(".")
    details = {"group": group, "kind": plural} if group else {"kind": plural}
    return StatusError(405, "MethodNotAllowed", message, details=details)


def not_acceptable(accepted: Sequence[str]) -> StatusError:
    """406: the client wants a form in which nothing is served."""
    message = "only the following media types are accepted: " + ", ".join(accepted)
    return StatusError(406, "NotAcceptable", message)


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    """415: the body is in a form that is not read."""
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted)
    )
    return StatusError(415, "UnsupportedMediaType", message)


def too_large(limit: int) -> StatusError:
    """413: the body is beyond what is read."""
    message = f"the request body is larger than {limit} bytes"
    return StatusError(413, "RequestEntityTooLarge", message)


def internal(message: str) -> StatusError:
    """500: our own mistake."""
    details = {"causes": [{"message": message}]}
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", details=details)
