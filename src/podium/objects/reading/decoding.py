"""Text of manifests and dumps becomes objects; misspelt fields are found on the way.

An API server that is not strict ignores a field that it does not know, and so does the scheduler: a
pod with `matchFileds` lands anywhere. Only parts whose fields are all known here are checked.

Fields and kinds that scheduling does not read are skipped, and `null` is the same as absent. Input
that cannot be read at all is an `InputError`; wrong values are found by `validate`. JSON is decoded
directly into typed values, so that dumps of hundreds of megabytes take seconds; everything unusual
goes through plain dictionaries, which is slower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import cache
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from podium.errors import InputError
from podium.objects.kinds.meta import JsonObject, Object, Plain, Value
from podium.objects.kinds.pod import Affinity, Pod, Toleration, TopologySpreadConstraint
from podium.objects.kinds.registry import KINDS, api_groups
from podium.objects.reading import json_text, yaml_text
from podium.objects.reading.collection import Objects
from podium.objects.reading.encoding import has_byte_order_mark, text_of
from podium.objects.reading.garbage import without_gc
from podium.objects.reading.json_text import looks_like_json, without_nulls
from podium.objects.reading.type_errors import explain, name_of
from podium.objects.reading.yaml_text import ParseYaml

#: The fields of a pod specification that are checked.
_CHECKED: Final = {
    "affinity": Affinity,
    "tolerations": list[Toleration],
    "topologySpreadConstraints": list[TopologySpreadConstraint],
}
#: Fields of these parts that exist and that scheduling does not read.
_UNREAD: Final = frozenset({"tolerationSeconds"})
_TEMPLATES: Final = (("spec",), ("spec", "template", "spec"))


def misspelt_fields(value: dict[str, Any]) -> Iterator[str]:
    """Sentences about fields that do not exist, with the one that is probably meant."""
    for path in (*_TEMPLATES, ("spec", "jobTemplate", "spec", "template", "spec")):
        spec: Any = value
        for key in path:
            spec = spec.get(key) if isinstance(spec, dict) else None
        for name in _CHECKED:
            if isinstance(spec, dict) and name in spec:
                yield from _in(spec[name], _type(name), f"{'.'.join(path)}.{name}")


@cache
def _type(name: str) -> msgspec.inspect.Type:
    return msgspec.inspect.type_info(_CHECKED[name])


def _in(value: Any, kind: msgspec.inspect.Type, path: str) -> Iterator[str]:
    if isinstance(kind, msgspec.inspect.UnionType):
        for each in kind.types:
            yield from _in(value, each, path)
    elif isinstance(kind, msgspec.inspect.ListType) and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _in(item, kind.item_type, f"{path}[{index}]")
    elif isinstance(kind, msgspec.inspect.StructType) and isinstance(value, dict):
        fields = {field.encode_name: field.type for field in kind.fields}
        for key, inner in value.items():
            if key in fields:
                yield from _in(inner, fields[key], f"{path}.{key}")
            elif key not in _UNREAD:
                near = get_close_matches(str(key), fields, n=1)
                meant = f"; did you mean {near[0]}?" if near else ""
                yield f"{path}.{key} is no field and is ignored{meant}"


#: Version and kind of the object with which a snapshot begins, and which describes it.
SNAPSHOT = ("podium/v1", "Snapshot")
#: Above this size, broken JSON is not parsed as YAML, which would take minutes.
_MAX_YAML_SIZE = 1_000_000
_LIST_DEPTH = 20
_T = TypeVar("_T")
_Json = memoryview | msgspec.Raw


class _Head(Value, frozen=True):
    """The fields that identify the kind of an object, or a list of objects."""

    api_version: str = ""
    kind: str = ""
    items: list[msgspec.Raw] | None = None


_HEAD = msgspec.json.Decoder(_Head)
_ANY = msgspec.json.Decoder()


def decode(
    data: bytes | str,
    where: str = "",
    into: Objects | None = None,
    parse_yaml: ParseYaml = yaml_text.documents,
) -> Objects:
    """Add the objects of *data*, read from the file *where*, to *into* or a new collection.

    *parse_yaml* gives the documents of YAML text; they may have been parsed before.
    """
    reader = _Reader(where, Objects() if into is None else into, parse_yaml)
    with without_gc():
        try:
            reader.read(data.encode(errors="surrogatepass") if isinstance(data, str) else data)
        except InputError as error:
            raise error.located(where=where) from None
        except RecursionError:
            raise InputError("is nested too deeply", where=where) from None
        except (ValueError, OverflowError) as error:
            raise InputError(f"cannot be read: {error}", where=where) from None
    return reader.objects


class _Reader:
    """Reads one file into a collection."""

    def __init__(self, where: str, objects: Objects, parse_yaml: ParseYaml) -> None:
        self.where = where
        self.parse_yaml = parse_yaml
        self.objects = objects
        self.found = False
        self.groups = api_groups()

    def read(self, data: bytes) -> None:
        if has_byte_order_mark(data):
            data = text_of(data).encode(errors="surrogatepass")
        if not looks_like_json(data) or not self.read_json(data):
            self.read_yaml(text_of(data))
        if not self.found:
            self.objects.empty_files.append(self.where)

    def read_json(self, data: bytes) -> bool:
        """Whether *data* was JSON; raises an error for broken JSON that is not YAML either."""
        try:
            values = json_text.values(data)
        except InputError as problem:
            text = text_of(data)  # the encoding may be the true reason
            if len(data) <= _MAX_YAML_SIZE and _is_yaml(text):
                return False
            raise problem from None
        for value in values:
            self.raw(value, _Head(), depth=0)
        return True

    def read_yaml(self, text: str) -> None:
        for document in self.parse_yaml(text):
            try:
                self.plain(document.value, _Head(), depth=0)
            except InputError as error:
                place = f"document at line {document.line}"
                raise error.located(object=place) from None

    def raw(self, data: _Json, outer: _Head, depth: int) -> None:
        """Read one JSON value; *outer* is the list that it is in."""
        try:
            head = _HEAD.decode(data)
            kind = self.known_kind(head, outer)
            item = KINDS[kind].decoder.decode(data) if kind and head.items is None else None
        except (msgspec.ValidationError, UnicodeDecodeError):
            self.plain(_untyped(data), outer, depth)
            return
        if item is not None:
            self.add(kind, item, data)
            schedules = isinstance(item, Pod) or KINDS[kind].template is not None
            if schedules and not item.metadata.uid:  # written by hand
                self.note_misspelt(kind, item, _untyped(data))
        elif head.items is not None and head.kind.endswith("List"):
            self.each(head.items, self.raw, _item_head(head), depth)
        elif head.kind and not kind and not head.kind.endswith("List"):
            self.skip(head, data)
        else:
            self.plain(_untyped(data), outer, depth)

    def plain(self, value: Plain, outer: _Head, depth: int) -> None:
        """Read one value that is a dictionary already."""
        if isinstance(value, list):
            self.each(value, self.plain, outer, depth)
            return
        if not isinstance(value, dict):
            raise InputError(f"is {_described(value)}, not a Kubernetes object")
        head = _plain_head(value, outer)
        items = value.get("items")
        if head.kind.endswith("List") and (isinstance(items, list) or items is None):
            self.each(items or [], self.plain, _item_head(head), depth)
            return
        kind = self.known_kind(head, outer)
        if kind:
            item = _converted(kind, value)
            self.add(kind, item, value)
            self.note_misspelt(kind, item, value)
        else:
            self.skip(head, value)

    def note_misspelt(self, kind: str, item: Object, value: JsonObject) -> None:
        """Keep a sentence about each field that does not exist."""
        for sentence in misspelt_fields(value):
            self.objects.misspelt.append(f"{kind} {item.name}: {sentence}")

    def known_kind(self, head: _Head, outer: _Head) -> str:
        """The kind, if scheduling reads it; items of a typed list need not repeat theirs.

        A Service of an API group that has none of these kinds is something else.
        """
        kind = head.kind or outer.kind
        group, _, _ = (head.api_version or outer.api_version).rpartition("/")
        return kind if kind in KINDS and group in self.groups else ""

    def skip(self, head: _Head, value: _Json | JsonObject) -> None:
        """Count an object of another kind; keep the head of a snapshot, which describes it."""
        self.found = True
        if (head.api_version, head.kind) == SNAPSHOT:
            self.objects.snapshot = value if isinstance(value, dict) else _untyped(value)
        else:
            group, _, _ = head.api_version.rpartition("/")
            kind = head.kind if group in self.groups else f"{head.kind}.{group}"
            self.objects.unknown_kinds[kind] += 1

    def each(
        self, items: list[_T], read: Callable[[_T, _Head, int], None], outer: _Head, depth: int
    ) -> None:
        """Read the items of a list; an error that names no object gets the number of the item."""
        if depth > _LIST_DEPTH:
            raise InputError(f"has lists in lists, more than {_LIST_DEPTH} deep")
        self.found = True
        for index, item in enumerate(items):
            try:
                read(item, outer, depth + 1)
            except InputError as error:
                raise error.located(object=f"item {index + 1}") from None

    def add(self, kind: str, item: Object, source: _Json | JsonObject) -> None:
        self.found = True
        if not item.kind:  # as in the lists that an API server gives
            item = replace(item, kind=kind)
        if not item.metadata.name:
            item = self.named(kind, item)
        self.objects.add(kind, item, self.where)
        if isinstance(item, Pod):
            if not item.spec.node_name:
                self.objects.sources[item.key] = _json(source)
        elif KINDS[kind].template is not None and not item.metadata.uid:
            self.objects.sources[f"{kind} {item.key}"] = _json(source)

    def named(self, kind: str, item: Object) -> Object:
        """A pod with `generateName` gets the number of pods so far as the end of its name."""
        prefix = item.metadata.generate_name
        if kind != "Pod" or not prefix:
            raise InputError("has no name", object=kind, path="metadata.name")
        name = f"{prefix}{len(self.objects.pods)}"
        return replace(item, metadata=replace(item.metadata, name=name))


def _item_head(head: _Head) -> _Head:
    """Kind and version of the items of a typed list."""
    kind = head.kind.removesuffix("List")
    return _Head(api_version=head.api_version if kind else "", kind=kind)


def _plain_head(value: JsonObject, outer: _Head) -> _Head:
    kind = value.get("kind") or outer.kind
    version = value.get("apiVersion") or outer.api_version
    if not isinstance(kind, str) or not isinstance(version, str):
        path = "apiVersion" if isinstance(kind, str) else "kind"
        raise InputError("is not text", object=name_of("", value), path=path)
    if not kind:
        raise InputError(
            "is missing",
            object=name_of("", value),
            path="kind",
            hint="every object begins with apiVersion and kind",
        )
    return _Head(api_version=version, kind=kind)


def _converted(kind: str, value: JsonObject) -> Object:
    expected: type[Object] = KINDS[kind].type
    try:
        return msgspec.convert(value, expected)
    except msgspec.ValidationError:
        value = without_nulls(value)
    try:
        return msgspec.convert(value, expected)
    except msgspec.ValidationError as error:
        raise explain(error, kind, value) from None


def _untyped(data: _Json) -> Plain:
    try:
        return _ANY.decode(data)
    except UnicodeDecodeError:
        text_of(bytes(data))
        raise


def _json(source: _Json | JsonObject) -> bytes:
    """A copy of the JSON text, so that the whole file need not stay in memory."""
    if isinstance(source, dict):
        return msgspec.json.encode(source)
    return text_of(bytes(source)).encode()


def _is_yaml(text: str) -> bool:
    try:
        return all(True for _ in yaml_text.documents(text))
    except InputError:
        return False


def _described(value: object) -> str:
    if value is None:
        return "nothing (null)"
    words = {str: "text", bool: "true or false", int: "a number", float: "a number"}
    return words.get(type(value), "a plain value")
