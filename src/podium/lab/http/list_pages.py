"""Pages of a list, all read at one resourceVersion.

A `continue` token holds the version at which the list began and the key of the next object. The
store reads objects at that version until the version is compacted; then the request fails with 410
and a token that continues at the current version.

Upstream: apiserver/pkg/storage/etcd3 (GetList), apiserver/pkg/storage/continue.go.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from itertools import islice

import msgspec

from podium.lab.api.resources import Resource
from podium.lab.api.status import (
    StatusError,
    bad_request,
    expired,
    forbidden_field,
    invalid,
    invalid_value,
    too_large_version,
)
from podium.lab.http.requests import parse_resource_version
from podium.lab.store.selection import ObjectSelection
from podium.lab.store.store import Key, ObjectVersion, Store

_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)
_VERSION_MATCHES = frozenset({"", "Exact", "NotOlderThan"})
#: The version in a token that continues at the current version.
_CURRENT = -1


class _Token(msgspec.Struct):
    """The contents of a `continue` token: the version to read and the key to start from."""

    rv: int
    namespace: str
    name: str
    v: str = "podium/v1"


@dataclass(frozen=True, slots=True)
class Page:
    """Consecutive records of a list."""

    records: list[ObjectVersion]
    version: int
    #: Set if the list goes on after these records.
    continue_token: str = ""
    #: How many records follow; `None` if the list is selective or ends here.
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Options of a list as they are in the query."""

    #: The most records of a page, 0 for all.
    limit: int = 0
    continue_token: str = ""
    version: str = ""
    version_match: str = ""


def list_page(
    store: Store,
    resource: Resource,
    namespace: str,
    selection: ObjectSelection,
    options: ListOptions,
) -> Page:
    """The selected objects of a resource, at most as many as the limit."""
    version, start = _start(store, options)
    try:
        found = store.table(resource.storage).as_of(version, namespace, start=start)
        selected = found if selection.everything else filter(selection.matches, found)
        if options.limit <= 0:
            return Page(list(selected), version)
        records = list(islice(selected, options.limit + 1))
    except StatusError as error:
        if error.code != 410 or start is None:
            raise
        token = _write(_Token(_CURRENT, start.namespace, start.name))
        raise expired(_EXPIRED, continue_token=token) from None
    if len(records) <= options.limit:
        return Page(records, version)
    following = records.pop().key
    remaining = 1 + sum(1 for _ in selected) if selection.everything else None
    return Page(records, version, _write(_Token(version, *following)), remaining)


def _start(store: Store, options: ListOptions) -> tuple[int, Key | None]:
    """The version to read, and the key to start from if the list is continued."""
    _check_version_match(options)
    if options.continue_token:
        if options.version not in {"", "0"}:
            raise bad_request("specifying resource version is not allowed when using continue")
        token = _read(options.continue_token)
        version = store.version if token.rv < 0 else token.rv
        return version, Key(token.namespace, token.name)
    wanted = parse_resource_version(options.version)
    if wanted > store.version:
        raise too_large_version(wanted, store.version)
    exact = options.version_match == "Exact" or (options.limit > 0 and not options.version_match)
    return wanted if wanted and exact else store.version, None


def _check_version_match(options: ListOptions) -> None:
    match, field = options.version_match, "resourceVersionMatch"
    if match not in _VERSION_MATCHES:
        problem = invalid_value(field, match, "must be Exact or NotOlderThan")
    elif match and options.continue_token:
        why = "resourceVersionMatch is forbidden when continue is provided"
        problem = forbidden_field(field, why)
    elif match and not options.version:
        why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        problem = forbidden_field(field, why)
    else:
        return
    raise invalid("ListOptions", "meta.k8s.io", "", [problem])


def _write(token: _Token) -> str:
    return urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _read(text: str) -> _Token:
    try:
        data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        token = msgspec.json.decode(data, type=_Token)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise bad_request(f"continue key is not valid: {error}") from None
    return token
