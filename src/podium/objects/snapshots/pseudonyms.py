"""New names for names, and the fields that get them.

Equal texts get equal new ones and different texts different ones in all objects: a node's name, the
label that repeats it and the volume that requires it are renamed alike. New names of a category
keep the order of the old ones. What has a meaning of its own is kept: label, taint and annotation
keys of Kubernetes, resources, drivers, schedulers, times, quantities, and numbers that selectors
compare.

Objects are passed through twice: first to collect all texts, then, after `assign`, to rename.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from podium.objects.names import is_label_value, is_qualified_name

if TYPE_CHECKING:
    from podium.objects.kinds.meta import JsonObject

#: Categories of texts. A text in several of them (a label value that is also the name of a node)
#: counts for the first.
NODE, NAMESPACE, POD, CLAIM, VOLUME, CLASS, OWNER, OBJECT, IMAGE, TAG, UID, VALUE = (
    "node",
    "ns",
    "pod",
    "pvc",
    "pv",
    "class",
    "owner",
    "object",
    "image",
    "tag",
    "uid",
    "value",
)
_RANKS: Final = {
    category: rank
    for rank, category in enumerate(
        (NODE, NAMESPACE, POD, CLAIM, VOLUME, CLASS, OWNER, OBJECT, IMAGE, TAG, UID, VALUE)
    )
}
#: Keys of Kubernetes: those under its domains, and those that its controllers find pods by.
_WELL_KNOWN: Final = re.compile(
    r"(^|\.)(kubernetes|k8s)\.io/|^(pod-template|controller-revision)-hash$|^(job-name|controller-uid)$"
)
#: Texts that mean the same in every cluster.
_KEPT: Final = frozenset(
    {"", "true", "false", "latest", "default", "kube-system", "kube-public", "kube-node-lease"}
    | {"system-cluster-critical", "system-node-critical"}
)
_KEPT_VALUES: Final = frozenset(
    f"{prefix}kubernetes.io/{name}" for prefix in ("", "beta.") for name in ("os", "arch")
)
_ZONES: Final = frozenset(
    f"{prefix}/{name}"
    for prefix in ("topology.kubernetes.io", "failure-domain.beta.kubernetes.io")
    for name in ("zone", "region")
)
#: Separates the zones in the label of a volume that is in several.
_ZONE_SEPARATOR: Final = "__"
_UNSPECIFIC_ADDRESSES: Final = frozenset({"", "0.0.0.0", "127.0.0.1", "::", "::1"})  # noqa: S104
_NUMBER: Final = re.compile(r"-?[0-9]+")


class Pseudonyms:
    """Collects texts; after `assign`, returns the new text of each."""

    def __init__(self) -> None:
        self.assigned = False
        self._texts: dict[str, str] = {}  # text -> category
        self._keys: set[str] = set()
        self._addresses: set[str] = set()
        self._numeric: set[str] = set()
        self._composed: dict[str, tuple[tuple[str, str], ...]] = {}
        self._new_keys: dict[str, str] = {}
        self._new_texts: dict[str, str] = {}
        self._new_addresses: dict[str, str] = {}

    def assign(self) -> None:
        """Choose the new texts; all old ones were collected."""
        self.assigned = True
        self._new_keys = {
            key: _numbered("key", place, legal=is_qualified_name(key))
            for place, key in enumerate(sorted(self._keys))
        }
        self._new_addresses = {
            address: f"10.{place >> 16 & 255}.{place >> 8 & 255}.{place & 255}"
            for place, address in enumerate(sorted(self._addresses), 1)
        }
        by_category: dict[str, list[str]] = {}
        for text, category in self._texts.items():
            by_category.setdefault(category, []).append(text)
        for category, texts in by_category.items():
            self._new_texts |= {
                text: _numbered(category, place, legal=category != VALUE or is_label_value(text))
                for place, text in enumerate(sorted(texts))
            }
        for text in sorted(self._composed, key=len):  # parts come before what they are part of
            parts = self._composed[text]
            self._new_texts[text] = "-".join(
                self.name(category, part) if category else part for category, part in parts
            )

    def name(self, category: str, text: str) -> str:
        """The name of an object, or another text of a category."""
        if text in _KEPT:
            return text
        if self.assigned:
            return self._new_texts[text]
        known = self._texts.get(text)
        if known is None or _RANKS[category] < _RANKS[known]:
            self._texts[text] = category
        return text

    def key(self, key: str) -> str:
        """The key of a label or a taint."""
        if not key or _WELL_KNOWN.search(key):
            return key
        if self.assigned:
            return self._new_keys[key]
        self._keys.add(key)
        return key

    def value(self, key: str, text: str) -> str:
        """The value of a label or a taint."""
        if key in _KEPT_VALUES or (key in self._numeric and _NUMBER.fullmatch(text)):
            return text
        if key in _ZONES and _ZONE_SEPARATOR in text:
            parts = (self.name(VALUE, part) for part in text.split(_ZONE_SEPARATOR))
            return _ZONE_SEPARATOR.join(parts)
        return self.name(VALUE, text)

    def compares(self, key: str, operator: str) -> None:
        """Note the operator of a requirement: the values of *key* stay numbers under Gt and Lt."""
        if operator in {"Gt", "Lt"} and not self.assigned:
            self._numeric.add(key)

    def image(self, text: str) -> str:
        """The name of an image; its tag is renamed apart, since no tag means `latest`."""
        colon = text.rfind(":")
        if colon > text.rfind("/"):
            return f"{self.name(IMAGE, text[:colon])}:{self.name(TAG, text[colon + 1 :])}"
        return self.name(IMAGE, text)

    def address(self, text: str) -> str:
        """An IP address of a machine."""
        if text in _UNSPECIFIC_ADDRESSES:
            return text
        if self.assigned:
            return self._new_addresses[text]
        self._addresses.add(text)
        return text

    def composed(self, text: str, *parts: tuple[str, str]) -> None:
        """Note that a name has parts, each with its category; one without a category is kept.

        A claim of an ephemeral volume is called `<pod>-<volume>`, for instance.
        """
        if not self.assigned:
            self._composed[text] = parts
            for category, part in parts:
                if category:
                    self.name(category, part)

    def labels(self, found: JsonObject) -> JsonObject:
        """Labels, or a selector that is a plain map."""
        return {self.key(key): self.value(key, text) for key, text in found.items()}

    def requirement(self, found: JsonObject) -> JsonObject:
        """An expression over labels."""
        key, renamed = self._with_key(found)
        if "values" in found:
            renamed["values"] = [self.value(key, text) for text in found["values"]]
        return renamed

    def taint(self, found: JsonObject) -> JsonObject:
        """A taint or a toleration."""
        key, renamed = self._with_key(found)
        if "value" in found:
            renamed["value"] = self.value(key, found["value"])
        return renamed

    def _with_key(self, found: JsonObject) -> tuple[str, JsonObject]:
        """The old key, and a copy that has the new one."""
        key = found.get("key", "")
        self.compares(key, found.get("operator", ""))
        return key, {**found, "key": self.key(key)} if key else dict(found)


def _numbered(category: str, place: int, *, legal: bool) -> str:
    """All new names of a category have the same length, so that they sort as their numbers."""
    return f"{category}-{place:06}" if legal else f"{category}-{place:06}!"


#: What becomes of the value of a field.
Renaming = Callable[[Pseudonyms, Any], Any]
#: Field -> the category of its text, what becomes of its value, or the fields inside of it. Each
#: value of a list is renamed. A field that is not named here is kept.
RenamedFields = Mapping[str, "str | Renaming | RenamedFields"]


def REMOVED(names: Pseudonyms, value: Any) -> None:  # noqa: N802  it stands in tables
    """Nothing is left of the value."""


def rename(item: JsonObject, fields: RenamedFields, names: Pseudonyms) -> None:
    """Pass the fields of an object through *names*, in place."""
    for field, how in fields.items():
        found = item.get(field)
        if found is None:
            continue
        values = found if isinstance(found, list) else [found]
        if how is REMOVED:
            del item[field]
        elif isinstance(how, Mapping):
            for each in values:
                rename(each, how, names)
        else:
            made = [names.name(how, v) if isinstance(how, str) else how(names, v) for v in values]
            item[field] = made if isinstance(found, list) else made[0]
