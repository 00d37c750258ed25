"""Objects and configurations under new names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.objects.kinds.registry import KINDS, POD
from podium.objects.names import RANDOM_LENGTH
from podium.objects.snapshots.pseudonyms import (
    CLASS,
    NAMESPACE,
    NODE,
    OBJECT,
    OWNER,
    UID,
    Pseudonyms,
    rename,
)
from podium.objects.snapshots.pseudonyms import POD as POD_NAME

if TYPE_CHECKING:
    from podium.objects.kinds.meta import JsonObject
    from podium.objects.snapshots.pseudonyms import RenamedFields

_AVOIDED_PODS: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
#: Keys of the annotation above, in lower case, whose values mean the same in every cluster.
_KEPT_KEYS: Final = frozenset(
    {"kind", "apiversion", "controller", "podsignature", "podcontroller", "preferavoidpods"}
)


def anonymize(kind: str, item: JsonObject, names: Pseudonyms) -> None:
    """Pass all identifying texts of an object, as `trimming` left it, through *names*, in place."""
    known, metadata = KINDS[kind], item["metadata"]
    if kind == POD.name:
        _note_parts_of_names(metadata, item.get("spec", {}), names)
    rename(item, known.renamed, names)
    prefix, name = metadata.pop("generateName", ""), metadata["name"]
    if known.category:
        metadata["name"] = names.name(known.category, name)
    if prefix and len(name) - len(prefix) == RANDOM_LENGTH and name.startswith(prefix):
        metadata["generateName"] = metadata["name"][:-RANDOM_LENGTH]
    rename(metadata, _METADATA, names)


def _note_parts_of_names(metadata: JsonObject, spec: JsonObject, names: Pseudonyms) -> None:
    """Controllers find pods of stateful sets, and claims of one pod, by their very names."""
    pod, note = metadata.get("name", ""), names.composed
    for owner in metadata.get("ownerReferences", ()):
        workload, _, ordinal = pod.rpartition("-")
        if owner.get("kind") == "StatefulSet" and workload == owner.get("name"):
            note(pod, (OWNER, workload), ("", ordinal))
    for volume in spec.get("volumes", ()):
        claim = volume.get("persistentVolumeClaim", {}).get("claimName", "")
        if pod and claim.endswith(f"-{pod}"):
            note(claim, (OBJECT, claim.removesuffix(f"-{pod}")), (POD_NAME, pod))
        if pod and "ephemeral" in volume:
            name = volume.get("name", "")
            note(f"{pod}-{name}", (POD_NAME, pod), (OBJECT, name))


def _owner(names: Pseudonyms, owner: JsonObject) -> JsonObject:
    renamed = dict(owner)
    rename(renamed, {"name": _category_of_owner(owner.get("kind", "")), "uid": UID}, names)
    return renamed


def _category_of_owner(kind: str) -> str:
    category = KINDS[kind].category if kind in KINDS else OWNER
    return OWNER if category in {"", OBJECT} else category


def _avoided_pods(names: Pseudonyms, text: str) -> str:
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


_METADATA: Final[RenamedFields] = {
    "namespace": NAMESPACE,
    "uid": UID,
    "labels": Pseudonyms.labels,
    "ownerReferences": _owner,
    "annotations": {
        _SELECTED_NODE: NODE,
        _STORAGE_CLASS: CLASS,
        _AVOIDED_PODS: _avoided_pods,
    },
}
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
        elif field == "matchExpressions" and isinstance(value, list):
            found[field] = [names.requirement(each) for each in value]
        elif field == "matchFields" and isinstance(value, list):
            found[field] = [_field_requirement(names, each) for each in value]
        else:
            found[field] = renamed_profile(value, names)
    return found


def _field_requirement(names: Pseudonyms, each: JsonObject) -> JsonObject:
    return {**each, "values": [names.name(NODE, text) for text in each.get("values", [])]}
