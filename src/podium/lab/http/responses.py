"""Responses: objects, lists, tables and errors as the bytes that a client asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from podium.lab.api.encoding import encode
from podium.lab.api.resources import Resource, to_served
from podium.lab.api.status import StatusError
from podium.lab.http.list_pages import Page
from podium.lab.http.requests import PARTIAL_METADATA, TABLE, WHOLE, Representation, Send
from podium.lab.kinds.tables import custom_table, table
from podium.lab.store.store import ObjectVersion, line_of
from podium.objects.kinds.meta import JsonObject

Headers = tuple[tuple[bytes, bytes], ...]
#: Makes the line of a watch from the type of an event and the record to show with it.
LineWriter = Callable[[str, ObjectVersion], bytes]


class Response(NamedTuple):
    """A whole response."""

    status: int
    body: bytes
    content_type: bytes = b"application/json"
    headers: Headers = ()


async def send_response(send: Send, response: Response, headers: Headers = ()) -> None:
    """Send *response* with *headers* before its own."""
    sent = [
        (b"content-type", response.content_type),
        (b"content-length", str(len(response.body)).encode()),
        *headers,
        *response.headers,
    ]
    await send({"type": "http.response.start", "status": response.status, "headers": sent})
    await send({"type": "http.response.body", "body": response.body})


def error_response(error: StatusError) -> Response:
    """A `Status` with its code, and the headers that belong to it."""
    seconds = error.details.get("retryAfterSeconds")
    headers: Headers = ()
    if seconds:
        headers = ((b"retry-after", str(seconds).encode()),)
    if error.code == 401:
        headers += ((b"www-authenticate", b"Bearer"),)
    return Response(error.code, encode(error.body()), headers=headers)


def json_response(document: object, status: int = 200) -> Response:
    """A document that has one representation only: discovery, a review, a `Status`."""
    return Response(status, encode(document))


def object_response(
    resource: Resource, item: JsonObject, form: Representation, status: int = 200
) -> Response:
    """An object in the representation that the client accepts."""
    return Response(status, encode(_represented(resource, item, form)))


def record_response(resource: Resource, record: ObjectVersion, form: Representation) -> Response:
    """A stored object; its bytes are sent as they are where the representation allows it."""
    if _is_stored_form(resource, form):
        return Response(200, record.data)
    return object_response(resource, record.object(), form)


def list_response(resource: Resource, page: Page, form: Representation) -> Response:
    """A page of a list in the representation that the client accepts."""
    metadata: JsonObject = {"resourceVersion": str(page.version)}
    if page.continue_token:
        metadata["continue"] = page.continue_token
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    if form.kind == TABLE:
        rows = _table(resource, [each.object() for each in page.records], form)
        rows["metadata"] = metadata
        return Response(200, encode(rows))
    if form.kind == PARTIAL_METADATA:
        kind, version = "PartialObjectMetadataList", f"meta.k8s.io/{form.version}"
    else:
        kind, version = resource.list_kind, resource.group_version
    items: Iterable[bytes]
    if _is_stored_form(resource, form):
        items = [each.data for each in page.records]
    else:
        items = (encode(_represented(resource, each.object(), form)) for each in page.records)
    head = encode({"kind": kind, "apiVersion": version, "metadata": metadata})
    return Response(200, b'%b,"items":[%b]}' % (head[:-1], b",".join(items)))


def line_writer(resource: Resource, form: Representation) -> LineWriter | None:
    """What makes the lines of a watch; `None` if stored bytes are sent as they are."""
    if _is_stored_form(resource, form):
        return None
    is_first = True

    def line(event_type: str, record: ObjectVersion) -> bytes:
        nonlocal is_first
        item = _represented(resource, record.object(), form)
        if form.kind == TABLE:
            item["metadata"] = {"resourceVersion": str(record.version)}
            if not is_first:
                # Clients remember the columns of the first line. The field goes to the end.
                item.pop("columnDefinitions", None)
                item["columnDefinitions"] = None
            is_first = False
        return line_of(event_type, encode(item))

    return line


def _is_stored_form(resource: Resource, form: Representation) -> bool:
    return form.kind == WHOLE and not resource.view_of


def _represented(resource: Resource, item: JsonObject, form: Representation) -> JsonObject:
    if form.kind == TABLE:
        return _table(resource, [item], form)
    if form.kind == PARTIAL_METADATA:
        version = f"meta.k8s.io/{form.version}"
        return {"kind": PARTIAL_METADATA, "apiVersion": version, "metadata": item["metadata"]}
    return to_served(resource, item)


def _table(resource: Resource, items: list[JsonObject], form: Representation) -> JsonObject:
    if resource.custom is not None:
        made = custom_table(resource.custom, items, include_object=form.include_object)
    else:
        made = table(resource.kind, items, include_object=form.include_object)
    made["apiVersion"] = f"meta.k8s.io/{form.version}"
    if len(items) == 1:
        made["metadata"] = {"resourceVersion": items[0]["metadata"].get("resourceVersion", "")}
    return made
