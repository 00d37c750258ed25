"""Answers as bytes: objects, lists, tables and refusals in the form that a client asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from podium.lab.api.conversion import shown
from podium.lab.api.encoding import encode
from podium.lab.api.resources import Resource
from podium.lab.api.status import JsonDict, StatusError
from podium.lab.http.listing import Page
from podium.lab.http.negotiation import OBJECT, PARTIAL, TABLE, Form
from podium.lab.http.watching import Liner
from podium.lab.store.store import Record
from podium.lab.tables import tables

JSON_TYPE = b"application/json"


class Answer(NamedTuple):
    """What goes back to a client."""

    status: int
    body: bytes
    type: bytes = JSON_TYPE
    headers: tuple[tuple[bytes, bytes], ...] = ()


def refusal(error: StatusError) -> Answer:
    """A `Status` with its code."""
    again = error.details.get("retryAfterSeconds")
    headers: tuple[tuple[bytes, bytes], ...] = ()
    if again:
        headers = ((b"retry-after", str(again).encode()),)
    if error.code == 401:
        headers += ((b"www-authenticate", b"Bearer"),)
    return Answer(error.code, encode(error.body()), headers=headers)


def document(item: object, status: int = 200) -> Answer:
    """Something that is no object of the table: discovery, a review, a `Status`."""
    return Answer(status, encode(item))


def one(row: Resource, item: JsonDict, form: Form, include: str, status: int = 200) -> Answer:
    """An object."""
    if form.what == TABLE:
        return Answer(status, encode(_table(row, [item], form, include)))
    if form.what == PARTIAL:
        return Answer(status, encode(_partial(item, form)))
    return Answer(status, encode(shown(row, item)))


def kept(row: Resource, record: Record, form: Form, include: str) -> Answer:
    """An object as it is kept: the usual form needs no work."""
    if form.what == OBJECT and not row.view_of:
        return Answer(200, record.data)
    return one(row, record.object(), form, include)


def many(row: Resource, page: Page, form: Form, include: str) -> Answer:
    """A list."""
    about: JsonDict = {"resourceVersion": str(page.version)}
    if page.again:
        about["continue"] = page.again
    if page.remaining is not None:
        about["remainingItemCount"] = page.remaining
    if form.what == TABLE:
        table = _table(row, [each.object() for each in page.records], form, include)
        table["metadata"] = about
        return Answer(200, encode(table))
    if form.what == PARTIAL:
        version = f"meta.k8s.io/{form.version}"
        parts: Iterable[bytes] = (encode(_partial(each.object(), form)) for each in page.records)
        return Answer(200, _joined("PartialObjectMetadataList", version, about, parts))
    if row.view_of:
        parts = (encode(shown(row, each.object())) for each in page.records)
    else:
        parts = [each.data for each in page.records]
    return Answer(200, _joined(row.list_kind, row.group_version, about, parts))


def _joined(kind: str, version: str, about: JsonDict, parts: Iterable[bytes]) -> bytes:
    head = encode({"kind": kind, "apiVersion": version, "metadata": about})
    return b'%b,"items":[%b]}' % (head[:-1], b",".join(parts))


def liner(row: Resource, form: Form, include: str) -> Liner | None:
    """How a watch shows a record, where that is not the bytes that are kept."""
    if form.what == OBJECT and not row.view_of:
        return None
    first = True

    def line(kind: str, record: Record) -> bytes:
        nonlocal first
        item = record.object()
        if form.what == TABLE:
            item = _table(row, [item], form, include)
            item["metadata"] = {"resourceVersion": str(record.version)}
            if not first:
                item.pop("columnDefinitions", None)
                item["columnDefinitions"] = None
            first = False
        elif form.what == PARTIAL:
            item = _partial(item, form)
        else:
            item = shown(row, item)
        return b'{"type":"%b","object":%b}\n' % (kind.encode(), encode(item))

    return line


def _table(row: Resource, items: list[JsonDict], form: Form, include: str) -> JsonDict:
    made = tables.table(row.kind, items, include_object=include or "Metadata")
    made["apiVersion"] = f"meta.k8s.io/{form.version}"
    if len(items) == 1:
        made["metadata"] = {"resourceVersion": items[0]["metadata"].get("resourceVersion", "")}
    return made


def _partial(item: JsonDict, form: Form) -> JsonDict:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{form.version}",
        "metadata": item["metadata"],
    }
