"""What an API server would refuse in manifests, named with its line: versions, fields, values.

Objects that were written by hand are refused: a misspelt field would be ignored, and the answer
would be about another pod. Objects with a uid come from a cluster, which may have newer fields;
what is unknown in them is a note.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import yaml

from podium.errors import InputError
from podium.lab.api.options import WriteOptions
from podium.lab.api.resources import BY_NAME, TABLE
from podium.lab.api.status import StatusError
from podium.lab.registry.admission import NAMESPACES
from podium.lab.registry.registry import Registry
from podium.lab.schema.typed_bodies import check_types, quantities_in, unknown_fields
from podium.lab.store.store import Store
from podium.library.files import STDIN
from podium.library.reading import contents, is_history
from podium.objects.kinds.meta import JsonObject
from podium.objects.quantity import INT64_MAX, Amount, QuantityError, amount_of, milli, nano, value
from podium.profiles.similar_names import did_you_mean, most_similar
from podium.what_if.check.manifest_state import (
    POD_SPECS,
    ManifestObject,
    entry_of,
    repeated_key,
)

_INVALID: Final = 422
_REQUIRED: Final = "Required value"
#: Fields with amounts of resources by name.
_AMOUNTS: Final = frozenset({"requests", "limits", "capacity", "hard", "overhead"})
#: What is left of a number with a binary suffix that is too large.
_CAPPED: Final = Amount(short=False, digits=INT64_MAX, scale=0)
_TOO_LARGE: Final = "than a number of 64 bits holds"


def problems(found: ManifestObject, *, of_values_only: bool = False) -> Iterator[tuple[str, str]]:
    """What an API server would refuse in an object: the path of each field, and a sentence.

    With *of_values_only* only what is written counts: not what is missing, nor the refusals of
    admission, since what an object refers to may be elsewhere.
    """
    resource = BY_NAME[found.kind]
    version = str(found.item["apiVersion"])
    if version != resource.group_version:
        known = {each.group_version for each in BY_NAME.values() if each.kind == found.kind}
        if version not in known:
            text = f"the version of a {found.kind} is {resource.group_version}, not {version}"
            yield "apiVersion", text
            return
    item = json.loads(json.dumps(found.item, default=str))
    try:
        typed = check_types(resource, item)
    except StatusError as error:
        yield _path_in(error.message, item), error.message
        return
    unknown = unknown_fields(found.kind, resource.group_version, typed)
    for path in unknown:
        yield path, f"there is no field {path}{_suggested(found, path)}"
    if unknown:
        return
    yield from _refused(found, typed, of_values_only=of_values_only)


def _has_types(found: ManifestObject) -> bool:
    """Whether every value has the type of its field."""
    try:
        check_types(BY_NAME[found.kind], json.loads(json.dumps(found.item, default=str)))
    except StatusError:
        return False
    return True


def _refused(
    found: ManifestObject, typed: Mapping[str, Any], *, of_values_only: bool
) -> Iterator[tuple[str, str]]:
    """What the registry of the lab refuses when the object is created in it."""
    resource = BY_NAME[found.kind]
    registry = Registry(Store())
    if resource.namespaced and found.namespace not in NAMESPACES:
        registry.create("namespaces", {"metadata": {"name": found.namespace}})
    try:
        registry.create(
            resource.qualified,
            dict(typed),
            namespace=found.namespace,
            options=WriteOptions(dry_run=True),
        )
    except StatusError as error:
        if of_values_only and error.code != _INVALID:
            return
        causes = error.details.get("causes") or [{"message": error.message, "field": ""}]
        for cause in causes:
            path = str(cause.get("field", ""))
            if of_values_only and str(cause["message"]).startswith(_REQUIRED):
                continue
            yield path, f"{path}: {cause['message']}" if path else str(cause["message"])


def too_large(found: ManifestObject) -> Iterator[tuple[str, str, str]]:
    """Quantities that are no number of 64 bits, and sums of requests that are none.

    Each has its path, a sentence, and how that ends where it is read all the same.
    """
    version = BY_NAME[found.kind].group_version
    singles = [
        fault
        for path, amount in quantities_in(found.kind, version, found.item)
        for fault in _too_large_amount(path, amount)
    ]
    yield from singles or _too_large_sums(found.item)


def _too_large_amount(path: str, amount: Any) -> Iterator[tuple[str, str, str]]:
    of_cpu = path.endswith("cpu")
    try:
        is_capped = amount_of(amount) == _CAPPED
        billionths = nano(amount)
    except QuantityError:
        return
    if billionths // (10**6 if of_cpu else 10**9) <= INT64_MAX and not is_capped:
        return
    most = f"{INT64_MAX}m" if of_cpu else str(INT64_MAX)
    read = f"{milli(amount)}m" if of_cpu else str(value(amount))
    yield (
        path,
        f"{path}: {amount} is more {_TOO_LARGE}; the most is {most}",
        f"; it is read as {read}, as kube-scheduler reads it",
    )


def _too_large_sums(item: JsonObject) -> Iterator[tuple[str, str, str]]:
    """Requests of the containers of a pod, and its overhead, whose sum would wrap around."""
    for holder in POD_SPECS:
        spec: Any = item
        for step in holder.split("."):
            spec = spec.get(step) if isinstance(spec, dict) else None
        if not isinstance(spec, dict) or not isinstance(spec.get("containers"), list):
            continue
        total: Counter[str] = Counter()
        asked = [
            ((each or {}).get("resources") or {}).get("requests") for each in spec["containers"]
        ]
        for requests in (*asked, spec.get("overhead")):
            for name, amount in (requests or {}).items():
                with suppress(QuantityError):
                    total[name] += nano(amount)
        for name, billionths in total.items():
            if billionths // (10**6 if name == "cpu" else 10**9) > INT64_MAX:
                path = f"{holder}.containers"
                yield (
                    path,
                    f"{path} request more {name} {_TOO_LARGE}",
                    "; the sum wraps around, as it does in kube-scheduler",
                )


def _path_in(message: str, item: Mapping[str, Any]) -> str:
    """The path of the field that an error about types names, without the Go type before it."""
    marked = message.partition("Go struct field ")[2].partition(" of type")[0]
    if marked:
        return marked.partition(".")[2]
    return next(_wrong_amounts(item, ""), "")


def _wrong_amounts(value: Any, path: str) -> Iterator[str]:
    """The paths of amounts of resources that cannot be read."""
    steps: Iterator[tuple[str, Any]] = iter(())
    if isinstance(value, dict):
        steps = ((f"{path}.{name}" if path else name, each) for name, each in value.items())
    elif isinstance(value, list):
        steps = ((f"{path}[{number}]", each) for number, each in enumerate(value))
    for inner, each in steps:
        if inner.rpartition(".")[2] in _AMOUNTS and isinstance(each, dict):
            yield from (f"{inner}.{name}" for name, text in each.items() if not _is_amount(text))
        else:
            yield from _wrong_amounts(each, inner)


def _is_amount(text: object) -> bool:
    try:
        amount_of(str(text))
    except QuantityError:
        return False
    return True


def _suggested(found: ManifestObject, path: str) -> str:
    from podium.lab.schema import api_types  # noqa: PLC0415  only for a mistake

    holder, _, name = path.rpartition(".")
    model = api_types.model_of_kind(found.kind, BY_NAME[found.kind].group_version)
    for step in (part.partition("[")[0] for part in holder.split(".") if part):
        step_type = api_types.model(model).fields.get(step)
        if step_type is None or not step_type.is_model:
            return ""
        model = step_type.of
    hint = did_you_mean(name, list(api_types.model(model).fields))
    return f"; {hint}" if hint else ""


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
        refused = list(problems(found, of_values_only=True))
        yield from refused
        if not refused or _has_types(found):
            yield from too_large(found)
