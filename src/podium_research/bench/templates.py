"""Templates of objects in the language of Go's text/template, as in scheduler_perf.

`.Index` and `.Count` are the number of an object and that of all. The manifest is decoded once per
distinct text, so equal pods are decoded once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from podium.errors import InputError
from podium.objects.completing.defaults import with_defaults
from podium.objects.kinds.registry import KINDS
from podium.objects.reading.collection import Objects
from podium.objects.reading.decode import decode
from podium.objects.reading.validate import validate
from podium.objects.reading.yaml_text import documents
from podium_research.bench.go_template import GoTemplate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podium.objects.kinds.meta import JsonObject, Object

#: The most objects of a template that are cached; some templates differ with every index.
_MAX_CACHED = 64
#: The name of an object whose template has none; the executor replaces it.
UNNAMED = "unnamed"


class Template:
    """A file with the manifest of one object."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "is not text"
            raise InputError(f"cannot be read: {reason.lower()}", where=str(path)) from None
        try:
            self._template = GoTemplate(text)
        except InputError as error:
            raise error.located(where=str(path)) from None
        self._cached: dict[str, Object] = {}

    def make(self, index: int, count: int, params: Mapping[str, Any] | None = None) -> Object:
        """The object for an index, with the defaults of the API server.

        *params* are values besides `.Index` and `.Count`.
        """
        text = self._filled(index, count, params or {})
        found = self._cached.get(text)
        if found is None:
            found = decode_object(self._read(text), str(self.path))
            if len(self._cached) < _MAX_CACHED:
                self._cached[text] = found
        return found

    def _filled(self, index: int, count: int, params: Mapping[str, Any]) -> str:
        try:
            return self._template.filled({"Index": index, "Count": count, **params})
        except InputError as error:
            raise error.located(where=str(self.path)) from None

    def _read(self, text: str) -> JsonObject:
        try:
            found = [document.value for document in documents(text)]
        except InputError as error:
            raise error.located(where=str(self.path)) from None
        if len(found) != 1 or not isinstance(found[0], dict):
            raise InputError("must hold exactly one object", where=str(self.path))
        manifest: JsonObject = found[0]
        return manifest


def decode_object(manifest: JsonObject, where: str) -> Object:
    """The object of a manifest, validated and with defaults."""
    metadata = manifest.get("metadata") or {}
    if isinstance(metadata, dict) and not metadata.get("name"):
        manifest = manifest | {"metadata": metadata | {"name": UNNAMED}}
    objects = decode(msgspec.json.encode(manifest), where)
    validate(objects)
    return _only_object(with_defaults(objects), where)


def _only_object(objects: Objects, where: str) -> Object:
    for kind in KINDS:
        for item in objects.of(kind):
            found: Object = item
            return found
    kinds = ", ".join(objects.unknown_kinds) or "nothing"
    raise InputError(f"holds {kinds}, which scheduling does not read", where=where)
