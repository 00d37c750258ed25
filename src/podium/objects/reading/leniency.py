"""Input as Kubernetes forgives it: `null` stands for the zero value of its type."""

from __future__ import annotations

from podium.objects.kinds.meta import Plain

#: Maps with keys of the user's choice: an entry without a value is an entry all the same.
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


def tidied(value: Plain, under: str = "") -> Plain:
    """A copy of *value*, found *under* a field, with every `null` left out or made a zero."""
    if isinstance(value, list):
        return [{} if each is None else tidied(each) for each in value]
    if not isinstance(value, dict):
        return value
    if under in _ZERO_ENTRY and not _SELECTOR_FIELDS & value.keys():
        zero = _ZERO_ENTRY[under]
        return {key: zero if each is None else each for key, each in value.items()}
    return {key: tidied(each, key) for key, each in value.items() if each is not None}
