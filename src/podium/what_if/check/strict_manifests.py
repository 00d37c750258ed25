"""Manifests read strictly: what an API server would refuse or ignore is named with its line.

Objects that were written by hand are refused: a misspelt field would be ignored, and the answer
would be about another pod. Objects with a uid come from a cluster, which may have newer fields;
what is unknown in them is a note.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import yaml

from podium.errors import InputError
from podium.lab.api.resources import BY_NAME, TABLE
from podium.library.files import STDIN
from podium.library.history_cluster import is_history
from podium.library.reading import contents
from podium.profiles.similar_names import most_similar
from podium.what_if.check.manifest_problems import problems, too_large
from podium.what_if.check.manifest_state import ManifestObject, entry_of, repeated_key

#: Of larger files only objects without a uid are looked at, and of those that differ in their
#: names alone one.
_MOST_BYTES: Final = 1_000_000
_DOCUMENTS: Final = re.compile(rb"^---(?:[ \t].*)?\n", re.MULTILINE)
_NAMES: Final = re.compile(rb"""((?:name|hostname)["']?: *)["']?[a-z0-9.-]+["']?""")
#: How many faults are named.
_NAMED: Final = 3
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_GROUPS: Final = frozenset(each.group for each in TABLE) | {"extensions"}


_UID: Final = re.compile(rb"""["']?\buid["']?\s*:""")
#: Values that may be too large for 64 bits: many digits, an exponent, or a large suffix.
_LARGE: Final = re.compile(
    rb"""[:\s]["']?\d+(?:\d{15}|\.?\d*(?:[eE]\+?\d{2,}|[EP]i?))["']?\s*[,}\n]"""
)


class _Items(msgspec.Struct, frozen=True):
    """A list in JSON, its items not decoded."""

    items: list[msgspec.Raw] | None = None


class ManifestFault(NamedTuple):
    """Something that is wrong in a manifest, and where."""

    file: str
    line: int
    object: str
    text: str
    #: Whether the object comes from a cluster.
    is_dumped: bool
    #: What becomes of a number that is too large.
    reading: str = ""

    def __str__(self) -> str:
        about = f"{self.object}: " if self.object else ""
        return f"{self.file}:{self.line}: {about}{self.text}"


def check_manifests(paths: Sequence[str], note: Callable[[str], None]) -> None:
    """Refuse manifests with faults; faults of dumped objects are noted.

    Files that cannot be parsed are not looked at: reading them says why.
    """
    found = list(_faults_in(paths))
    written = [each for each in found if not each.is_dumped]
    if written:
        first, *others = written
        more = f"; and {len(others)} more" if len(others) > 1 else ""
        more = f"; {others[0]}" if len(others) == 1 else more
        hint = f"--strict=false reads them all the same{more}"
        about = f"{first.object}: " if first.object else ""
        raise InputError(f"{about}{first.text}", where=f"{first.file}:{first.line}", hint=hint)
    for each in found[:_NAMED]:
        note(f"{each}{each.reading}")
    if len(found) > _NAMED:
        note(f"{len(found) - _NAMED} more fields and values of dumped objects are not known here")


def note_wrapping(paths: Sequence[str], note: Callable[[str], None]) -> None:
    """Note numbers beyond 64 bits, and what is read in their place."""
    for each in _faults_in(paths):
        if each.reading:
            note(f"{each}{each.reading}")


def _faults_in(paths: Sequence[str]) -> Iterator[ManifestFault]:
    named = [
        path for path in paths if path == STDIN or (Path(path).exists() and not is_history(path))
    ]
    return faults(named) if named else iter(())


def faults(paths: Sequence[str]) -> Iterator[ManifestFault]:
    """What is wrong in the objects of files and folders."""
    for where, data in contents(list(paths)):
        for before, text in _written_parts(data) if len(data) > _MOST_BYTES else [(0, data)]:
            try:
                nodes = list(yaml.compose_all(text.decode("utf-8"), _LOADER))
            except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
                continue
            for node in nodes:
                if node is not None:
                    for each in _in_document(node, where):
                        yield each._replace(line=each.line + before)


def _written_parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Objects of a large file, each with the lines before it.

    They were written by hand, or may have a number that is too large.
    """
    seen: set[bytes] = set()
    for start, text in _parts(data):
        shape = _NAMES.sub(rb"\1", text)
        is_looked_at = _UID.search(text) is None or _LARGE.search(text) is not None
        if is_looked_at and shape not in seen:
            seen.add(shape)
            yield data.count(b"\n", 0, start), text


def _parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The documents of YAML or the items of a list in JSON, each with its place in the file."""
    if not data.lstrip().startswith(b"{"):
        start = 0
        for match in _DOCUMENTS.finditer(data):
            yield start, data[start : match.start()]
            start = match.end()
        yield start, data[start:]
        return
    try:
        items = msgspec.json.decode(data, type=_Items).items or ()
    except msgspec.MsgspecError:
        return
    start = 0
    for each in items:
        text = bytes(each)
        start = data.index(text, start)
        yield start, text
        start += len(text)


def _in_document(node: yaml.Node, where: str) -> Iterator[ManifestFault]:
    loader = _LOADER("")
    try:
        value = loader.construct_document(node)
    except (yaml.YAMLError, ValueError, RecursionError):
        return
    finally:
        loader.dispose()
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        return
    items = entry_of(node, "items")
    if value["kind"].endswith("List") and items is not None:
        if isinstance(items[1], yaml.SequenceNode):
            for each in items[1].value:
                yield from _in_document(each, where)
        return
    metadata = value.get("metadata")
    is_dumped = isinstance(metadata, dict) and bool(metadata.get("uid"))
    if not isinstance(value.get("apiVersion"), str):
        return
    found = ManifestObject(value, where, node)
    repeated = repeated_key(node)
    if repeated is not None:
        line, text = repeated
        yield ManifestFault(where, line, found.label, text, is_dumped)
    for path, text, *reading in _problems(found):
        yield ManifestFault(where, found.line(path), found.label, text, is_dumped, *reading)


def _problems(found: ManifestObject) -> Iterator[tuple[str, str] | tuple[str, str, str]]:
    """Paths, sentences, and what becomes of numbers that are too large.

    Kinds of other groups are custom resources, and are left alone.
    """
    group = str(found.item["apiVersion"]).rpartition("/")[0]
    if group not in _GROUPS:
        return
    resource = BY_NAME.get(found.kind)
    if resource is None:
        near = most_similar(found.kind, sorted({each.kind for each in TABLE}))
        if near:
            yield "kind", f"there is no kind {found.kind}; did you mean {near}?"
        return
    groups = {each.group for each in TABLE if each.kind == found.kind} | {"extensions"}
    if group not in groups:
        version = resource.group_version
        yield "apiVersion", f"the version of a {found.kind} is {version}"
    elif found.item["apiVersion"] == resource.group_version and found.name:
        yield from problems(found, of_values_only=True)
        yield from too_large(found)
