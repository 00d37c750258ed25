"""The profile that a snapshot keeps, with its label keys and extender addresses renamed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from podium.objects.snapshots.pseudonyms import Pseudonyms

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
