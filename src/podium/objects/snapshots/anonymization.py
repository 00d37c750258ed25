"""Objects and configurations under new names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.objects.kinds.registry import KINDS
from podium.objects.names import RANDOM_LENGTH
from podium.objects.snapshots.pseudonyms import (
    CLASS,
    NAMESPACE,
    NODE,
    OBJECT,
    OWNER,
    UID,
    FieldRenaming,
)

if TYPE_CHECKING:
    from podium.objects.kinds.meta import JsonObject
    from podium.objects.snapshots.pseudonyms import Pseudonyms

_AVOIDED_PODS: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
#: Keys of the annotation above, in lower case, whose values mean the same in every cluster.
_KEPT_KEYS: Final = frozenset(
    {"kind", "apiversion", "controller", "podsignature", "podcontroller", "preferavoidpods"}
)


def anonymize(kind: str, item: JsonObject, names: Pseudonyms) -> None:
    """Pass all identifying texts of an object, as `trimming` left it, through *names*, in place."""
    renaming, known = FieldRenaming(names), KINDS[kind]
    if known.anonymize is not None:
        known.anonymize(item, renaming)
    metadata = item["metadata"]
    prefix, name = metadata.pop("generateName", ""), metadata["name"]
    if known.category:
        renaming.name(metadata, "name", known.category)
    if prefix and len(name) - len(prefix) == RANDOM_LENGTH and name.startswith(prefix):
        metadata["generateName"] = metadata["name"][:-RANDOM_LENGTH]
    _rename_metadata(metadata, renaming)


def _rename_metadata(metadata: JsonObject, renaming: FieldRenaming) -> None:
    renaming.name(metadata, "namespace", NAMESPACE)
    renaming.name(metadata, "uid", UID)
    renaming.labels(metadata, "labels")
    for owner in metadata.get("ownerReferences", ()):
        renaming.name(owner, "name", _category_of_owner(owner.get("kind", "")))
        renaming.name(owner, "uid", UID)
    annotations = metadata.get("annotations", {})
    renaming.name(annotations, _SELECTED_NODE, NODE)
    renaming.name(annotations, _STORAGE_CLASS, CLASS)
    if _AVOIDED_PODS in annotations:
        annotations[_AVOIDED_PODS] = _avoided_pods(annotations[_AVOIDED_PODS], renaming.names)


def _category_of_owner(kind: str) -> str:
    category = KINDS[kind].category if kind in KINDS else OWNER
    return OWNER if category in {"", OBJECT} else category


def _avoided_pods(text: str, names: Pseudonyms) -> str:
    """The controllers whose pods a node avoids; an annotation that is not JSON avoids none."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return "unreadable"
    return msgspec.json.encode(_renamed(found, names)).decode()


def _renamed(value: Any, names: Pseudonyms) -> Any:
    if isinstance(value, list):
        return [_renamed(each, names) for each in value]
    if not isinstance(value, dict):
        return value
    categories = {"name": OWNER, "uid": UID}
    found = {}
    for key, each in value.items():
        folded = key.lower()
        if folded in categories and isinstance(each, str):
            found[key] = names.name(categories[folded], each)
        elif folded in _KEPT_KEYS:
            found[key] = _renamed(each, names)
    return found


_KEY_FIELDS: Final = frozenset({"label", "topologyKey"})
_KEY_LISTS: Final = frozenset({"labels"})


def renamed_profile(profile: Any, names: Pseudonyms) -> Any:
    """The profile with label keys, and the addresses of extenders, under their new names."""
    if isinstance(profile, list):
        return [renamed_profile(each, names) for each in profile]
    if not isinstance(profile, dict):
        return profile
    found: dict[str, Any] = {}
    for field, value in profile.items():
        if field in _KEY_FIELDS and isinstance(value, str):
            found[field] = names.key(value)
        elif field in _KEY_LISTS and isinstance(value, list):
            found[field] = [names.key(each) for each in value]
        elif field == "urlPrefix":
            found[field] = "http://extender.invalid"
        elif field in {"matchExpressions", "matchFields"} and isinstance(value, list):
            found[field] = [_requirement(field, each, names) for each in value]
        else:
            found[field] = renamed_profile(value, names)
    return found


def _requirement(field: str, each: Any, names: Pseudonyms) -> Any:
    key, values = each.get("key", ""), each.get("values", [])
    if field == "matchFields":
        return {**each, "values": names.names("node", values)}
    names.compares(key, each.get("operator", ""))
    return {
        **each,
        "key": names.key(key),
        "values": [names.value(key, text) for text in values],
    }
