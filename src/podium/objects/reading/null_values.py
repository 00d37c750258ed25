"""`null` in input, which Kubernetes reads as the zero value of the field's type."""

from __future__ import annotations

from podium.objects.kinds.meta import Plain

#: Maps with free keys, and the value that a null entry of theirs gets. In all other objects a null
#: field is the same as an absent one.
_ZERO_ENTRY: dict[str, str | int] = {
    "labels": "",
    "annotations": "",
    "nodeSelector": "",
    "matchLabels": "",
    "selector": "",
    "requests": 0,
    "limits": 0,
    "capacity": 0,
    "allocatable": 0,
    "overhead": 0,
}
_SELECTOR_FIELDS = frozenset({"matchLabels", "matchExpressions"})


def without_nulls(value: Plain, under: str = "") -> Plain:
    """A copy of *value*, found *under* a field, with every `null` left out or made a zero."""
    if isinstance(value, list):
        return [{} if each is None else without_nulls(each) for each in value]
    if not isinstance(value, dict):
        return value
    if under in _ZERO_ENTRY and not _SELECTOR_FIELDS & value.keys():
        zero = _ZERO_ENTRY[under]
        return {key: zero if each is None else each for key, each in value.items()}
    return {key: without_nulls(each, key) for key, each in value.items() if each is not None}
