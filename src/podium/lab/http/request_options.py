"""Options of a request, read from its query, its headers and the body of a deletion."""

from __future__ import annotations

from podium.lab.api.field_errors import too_long
from podium.lab.api.options import DeleteOptions, WriteOptions, asks_dry_run
from podium.lab.api.status import invalid
from podium.lab.http.bodies import read_delete_options
from podium.lab.http.list_pages import ListOptions
from podium.lab.http.requests import Representation, Request, negotiate

_LONGEST_MANAGER = 128


def representation(request: Request) -> Representation:
    """The representation of the response; 406 if the client accepts none that is served."""
    return negotiate(request.header(b"accept"), request.parameter("includeObject"))


def list_options(request: Request) -> ListOptions:
    """The options of a list."""
    return ListOptions(
        limit=request.number("limit") or 0,
        continue_token=request.parameter("continue"),
        version=request.parameter("resourceVersion"),
        version_match=request.parameter("resourceVersionMatch"),
    )


def write_options(request: Request, kind: str) -> WriteOptions:
    """The options of a write; *kind* is what errors call them: `CreateOptions`."""
    if not request.parameters:
        return WriteOptions(program=_program(request))
    manager = request.parameter("fieldManager")
    if len(manager) > _LONGEST_MANAGER:
        problem = too_long("fieldManager", manager, _LONGEST_MANAGER)
        raise invalid(kind, "meta.k8s.io", "", [problem])
    return WriteOptions(
        dry_run=asks_dry_run(request.parameters.get("dryRun"), kind),
        manager=manager,
        program=_program(request),
        force=request.flag("force"),
        strict=request.parameter("fieldValidation") == "Strict",
    )


def _program(request: Request) -> str:
    """The name of the client program, from its `User-Agent`."""
    return request.header(b"user-agent").partition("/")[0][:_LONGEST_MANAGER] or "unknown"


def delete_options(request: Request, body: bytes) -> DeleteOptions:
    """The options of a deletion, from its body or from the query."""
    content_type = request.content_type if body else ""
    return DeleteOptions.read(read_delete_options(body, content_type), request.parameters)
