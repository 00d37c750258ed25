"""Reading kubeconfig files: several are merged, and the first definition of a name counts.

The result is one cluster and one user with their fields as written, each with the folder that its
relative paths start from.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from podium.errors import InputError
from podium.objects.reading.yaml_text import fault_of

_SECTIONS = ("clusters", "users", "contexts")
#: Fields whose values no message shows.
_SECRETS = frozenset(
    {"token", "password", "client-key-data", "id-token", "refresh-token", "client-secret"}
)


class KubeconfigEntry(msgspec.Struct, frozen=True):
    """A cluster, user or context: its fields, and the file they are from."""

    what: str
    file: Path
    fields: dict[str, Any] = msgspec.field(default_factory=dict)

    def text(self, name: str) -> str:
        """The text of a field; empty when it is absent."""
        value = self.fields.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            what = "something else" if name.rpartition(".")[2] in _SECRETS else repr(value)
            raise self.wrong(name, f"is no text but {what}")
        return value

    def texts(self, name: str) -> list[str]:
        """The texts of a field that is a list; none when it is absent."""
        values = self.fields.get(name) or []
        if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
            raise self.wrong(name, f"is no list of texts but {values!r}")
        return values

    def path(self, name: str) -> Path | None:
        """The file that a field names, relative to the folder of the kubeconfig."""
        value = self.text(name)
        try:
            return self.file.parent / Path(value).expanduser() if value else None
        except RuntimeError:
            raise self.wrong(name, f"{value}: there is no such user") from None

    def data(self, name: str) -> bytes | None:
        """The inline form of a field (`NAME-data`), else the content of the file it names."""
        inline = self.text(f"{name}-data")
        if inline:
            try:
                return base64.b64decode(inline, validate=True)
            except binascii.Error:
                raise self.wrong(f"{name}-data", "is not base64") from None
        path = self.path(name)
        return None if path is None else self.read(name, path)

    def read(self, name: str, path: Path) -> bytes:
        """The content of a file that the field *name* points to."""
        try:
            return path.read_bytes()
        except (OSError, ValueError) as error:
            what = (getattr(error, "strerror", None) or str(error)).lower()
            raise self.wrong(name, f"{path}: {what}") from None

    def wrong(self, name: str, what: str) -> InputError:
        """The error for a field, with its file and entry."""
        return InputError(what, where=str(self.file), object=self.what, path=name)


class Chosen(msgspec.Struct, frozen=True):
    """The cluster, user and namespace of one context."""

    context: str
    cluster: KubeconfigEntry
    user: KubeconfigEntry
    #: The namespace of requests that name none.
    namespace: str = "default"


def read_kubeconfig(paths: Sequence[Path], context: str | None = None) -> Chosen:
    """The cluster and user of a context, by default the current one, of these files together."""
    merged: dict[str, dict[str, KubeconfigEntry]] = {section: {} for section in _SECTIONS}
    current = ""
    for path in paths:
        document = _document(path)
        current = current or str(document.get("current-context") or "")
        for section in _SECTIONS:
            _merge(merged[section], document.get(section), section, path)
    where = ", ".join(map(str, paths))
    name = context or current
    if not name:
        hint = _known(merged["contexts"]) or "give --context"
        raise InputError("no current-context is set", where=where, hint=hint)
    found = merged["contexts"].get(name)
    if found is None:
        hint = _known(merged["contexts"])
        raise InputError(f"there is no context {name!r}", where=where, hint=hint)
    user = found.text("user")
    return Chosen(
        name,
        _named(merged, "clusters", found.text("cluster"), found),
        _named(merged, "users", user, found) if user else KubeconfigEntry("no user", found.file),
        found.text("namespace") or "default",
    )


def _document(path: Path) -> dict[str, Any]:
    try:
        text = path.read_bytes().decode()
        document = yaml.safe_load(text)
    except OSError as error:
        what = (error.strerror or str(error)).lower()
        raise InputError(what, where=str(path), hint="is it the right kubeconfig?") from None
    except yaml.MarkedYAMLError as error:
        fault = fault_of(error, text)
        # Only the line: its text may hold a token.
        place = f" at line {fault.line}" if fault is not None else ""
        raise InputError(f"is not readable YAML{place}", where=str(path)) from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise InputError("is not readable YAML", where=str(path)) from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise InputError("is no kubeconfig: it has no fields", where=str(path))
    return document


def _merge(into: dict[str, KubeconfigEntry], listed: Any, section: str, path: Path) -> None:
    if listed is None:
        return
    if not isinstance(listed, list):
        raise InputError("is no list", where=str(path), path=section)
    one = section.removesuffix("s")
    for index, item in enumerate(listed):
        fields = item.get(one) or {} if isinstance(item, dict) else None
        if not isinstance(fields, dict) or not isinstance(item.get("name"), str):
            what = f"needs a name and a {one}"
            raise InputError(what, where=str(path), path=f"{section}[{index}]")
        name = item["name"]
        into.setdefault(name, KubeconfigEntry(f"{one} {name!r}", path, fields))


def _named(
    merged: dict[str, dict[str, KubeconfigEntry]], section: str, name: str, context: KubeconfigEntry
) -> KubeconfigEntry:
    entry = merged[section].get(name)
    if entry is None:
        one = section.removesuffix("s")
        what = f"there is no {one} {name!r}" if name else f"names no {one}"
        raise InputError(
            what, where=str(context.file), object=context.what, hint=_known(merged[section])
        )
    return entry


def _known(entries: dict[str, KubeconfigEntry]) -> str:
    return f"known: {', '.join(sorted(entries))}" if entries else ""
