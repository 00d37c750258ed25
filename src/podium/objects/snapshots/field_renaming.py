"""Renaming of single fields of objects in their JSON form, in place.

Every method takes the object that holds a field and the name of the field, and does nothing where
the field is absent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.objects.snapshots.pseudonyms import NODE

if TYPE_CHECKING:
    from podium.objects.kinds.meta import JsonObject
    from podium.objects.snapshots.pseudonyms import Pseudonyms


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
