"""New names for names, and the fields that get them.

Equal texts get equal new ones and different texts different ones in all objects: a node's name, the
label that repeats it and the volume that requires it are renamed alike. New names of a category
keep the order of the old ones. What has a meaning of its own is kept: label, taint and annotation
keys of Kubernetes, resources, drivers, schedulers, times, quantities, and numbers that selectors
compare.

Objects are passed through twice: first to collect all texts, then, after `assign`, to rename.

Every method takes the object that holds a field and the name of the field, and does nothing where
the field is absent.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from podium.objects.names import is_label_value, is_qualified_name

if TYPE_CHECKING:
    from collections.abc import Iterable

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

    def names(self, category: str, texts: Iterable[str]) -> list[str]:
        """Several names."""
        return [self.name(category, text) for text in texts]


def _numbered(category: str, place: int, *, legal: bool) -> str:
    """All new names of a category have the same length, so that they sort as their numbers."""
    return f"{category}-{place:06}" if legal else f"{category}-{place:06}!"


class FieldRenaming:
    """Passes fields through the pseudonyms of one snapshot."""

    def __init__(self, names: Pseudonyms) -> None:
        self.names = names

    def name(self, holder: JsonObject, field: str, category: str) -> None:
        """A field with the name of an object, or another text of a category."""
        if field in holder:
            holder[field] = self.names.name(category, holder[field])

    def name_list(self, holder: JsonObject, field: str, category: str) -> None:
        """A field with several names."""
        if field in holder:
            holder[field] = self.names.names(category, holder[field])

    def key(self, holder: JsonObject, field: str) -> None:
        """A field with the key of a label or a taint."""
        if field in holder:
            holder[field] = self.names.key(holder[field])

    def key_list(self, holder: JsonObject, field: str) -> None:
        """A field with several label keys."""
        if field in holder:
            holder[field] = [self.names.key(key) for key in holder[field]]

    def image(self, holder: JsonObject, field: str) -> None:
        """A field with the name of an image."""
        if field in holder:
            holder[field] = self.names.image(holder[field])

    def image_list(self, holder: JsonObject, field: str) -> None:
        """A field with several names of one image."""
        if field in holder:
            holder[field] = [self.names.image(name) for name in holder[field]]

    def address(self, holder: JsonObject, field: str) -> None:
        """A field with an IP address."""
        if field in holder:
            holder[field] = self.names.address(holder[field])

    def labels(self, holder: JsonObject, field: str) -> None:
        """A field with labels, or with a selector that is a plain map."""
        names = self.names
        if field in holder:
            found = holder[field].items()
            holder[field] = {names.key(key): names.value(key, text) for key, text in found}

    def requirements(self, holder: JsonObject, field: str) -> None:
        """A field with expressions over labels."""
        names = self.names
        for each in holder.get(field, ()):
            key = each.get("key", "")
            names.compares(key, each.get("operator", ""))
            if "values" in each:
                each["values"] = [names.value(key, text) for text in each["values"]]
            self.key(each, "key")

    def label_selector(self, holder: JsonObject, field: str) -> None:
        """A field with a label selector."""
        found = holder.get(field)
        if found is not None:
            self.labels(found, "matchLabels")
            self.requirements(found, "matchExpressions")

    def node_selector(self, holder: JsonObject, field: str) -> None:
        """A field with a node selector."""
        for term in holder.get(field, {}).get("nodeSelectorTerms", ()):
            self.node_selector_term(term)

    def node_selector_term(self, term: JsonObject) -> None:
        """One term of a node selector, which may name nodes."""
        self.requirements(term, "matchExpressions")
        for each in term.get("matchFields", ()):
            self.name_list(each, "values", NODE)

    def taint(self, taint: JsonObject) -> None:
        """Key and value of a taint or a toleration."""
        self.names.compares(taint.get("key", ""), taint.get("operator", ""))
        if "value" in taint:
            taint["value"] = self.names.value(taint.get("key", ""), taint["value"])
        self.key(taint, "key")
