"""Lists: all at once or in pieces, as of one moment.

A `continue` token says at which version the list began and after which key it goes on; the store
shows the objects as they were then, as long as it remembers.

Upstream: apiserver/pkg/storage/etcd3 (GetList), apiserver/pkg/storage/continue.go.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from itertools import islice

import msgspec

from podium.lab.api.field_errors import forbidden_field, invalid_value
from podium.lab.api.resources import Resource
from podium.lab.api.status import StatusError, bad_request, expired, invalid, too_large_version
from podium.lab.store.selection import Selection
from podium.lab.store.store import Key, Record, Store

_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)
_MATCHES = frozenset({"", "Exact", "NotOlderThan"})


class _Token(msgspec.Struct):
    """Where a list goes on: at which version, -1 for whatever is now, and from which key."""

    rv: int
    namespace: str
    name: str
    v: str = "podium/v1"


@dataclass(frozen=True, slots=True)
class Page:
    """A piece of a list."""

    records: list[Record]
    version: int
    again: str = ""
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class ListOptions:
    """How a list is asked for."""

    limit: int = 0
    again: str = ""
    version: str = ""
    match: str = ""


def page(store: Store, row: Resource, namespace: str, wanted: Selection, ask: ListOptions) -> Page:
    """The objects that are wanted, at most as many as asked for."""
    table = store.table(row.storage)
    version, start = _begin(store, ask)
    try:
        found = table.as_of(version, namespace, start=start)
        chosen = found if wanted.everything else filter(wanted.matches, found)
        if ask.limit <= 0:
            return Page(list(chosen), version)
        records = list(islice(chosen, ask.limit + 1))
    except StatusError as error:
        if error.code != 410:
            raise
        again = ask.again and _write(_Token(-1, start.namespace, start.name)) if start else ""
        raise expired(_TOO_OLD, again=again) if again else error from None
    if len(records) <= ask.limit:
        return Page(records, version)
    following = records.pop().key
    remaining = None
    if wanted.everything:
        remaining = 1 + sum(1 for _ in chosen)
    return Page(records, version, _write(_Token(version, *following)), remaining)


def _begin(store: Store, ask: ListOptions) -> tuple[int, Key | None]:
    """The version to show, and the key to start from."""
    if ask.match not in _MATCHES:
        problem = invalid_value("resourceVersionMatch", ask.match, "must be Exact or NotOlderThan")
        raise invalid("ListOptions", "meta.k8s.io", "", [problem])
    if ask.match and (ask.again or not ask.version):
        why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        if ask.again:
            why = "resourceVersionMatch is forbidden when continue is provided"
        problem = forbidden_field("resourceVersionMatch", why)
        raise invalid("ListOptions", "meta.k8s.io", "", [problem])
    if ask.again:
        if ask.version not in {"", "0"}:
            raise bad_request("specifying resource version is not allowed when using continue")
        token = _read(ask.again)
        version = store.version if token.rv < 0 else token.rv
        return version, Key(token.namespace, token.name)
    asked = version_of(ask.version)
    if asked > store.version:
        raise too_large_version(asked, store.version)
    if asked and (ask.match == "Exact" or (ask.limit > 0 and not ask.match)):
        return asked, None
    return store.version, None


def version_of(text: str) -> int:
    """A resourceVersion as a number; 0 for none."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        problem = invalid_value(
            "resourceVersion", text, f'strconv.ParseUint: parsing "{text}": invalid syntax'
        )
        raise bad_request(str(problem))
    return int(text)


def _write(token: _Token) -> str:
    return urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _read(text: str) -> _Token:
    try:
        data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        token = msgspec.json.decode(data, type=_Token)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise bad_request(f"continue key is not valid: {error}") from None
    return token
