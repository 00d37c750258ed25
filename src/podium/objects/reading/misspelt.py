"""Misspelt fields in the parts of a pod that say where it may run.

An API server that is not strict ignores a field that it does not know, and so does the scheduler: a
pod with `matchFileds` lands anywhere. Only parts whose fields are all known here are checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from typing import Any, Final

import msgspec

from podium.objects.kinds.pod import Affinity, Toleration, TopologySpreadConstraint

#: The fields of a pod specification that are checked.
_CHECKED: Final = {
    "affinity": Affinity,
    "tolerations": list[Toleration],
    "topologySpreadConstraints": list[TopologySpreadConstraint],
}
#: Fields of these parts that exist and that scheduling does not read.
_UNREAD: Final = frozenset({"tolerationSeconds"})
_TEMPLATES: Final = (("spec",), ("spec", "template", "spec"))


def misspelt_fields(value: dict[str, Any]) -> Iterator[str]:
    """Sentences about fields that do not exist, with the one that is probably meant."""
    for path in (*_TEMPLATES, ("spec", "jobTemplate", "spec", "template", "spec")):
        spec: Any = value
        for key in path:
            spec = spec.get(key) if isinstance(spec, dict) else None
        for name in _CHECKED:
            if isinstance(spec, dict) and name in spec:
                yield from _in(spec[name], _type(name), f"{'.'.join(path)}.{name}")


@cache
def _type(name: str) -> msgspec.inspect.Type:
    return msgspec.inspect.type_info(_CHECKED[name])


def _in(value: Any, kind: msgspec.inspect.Type, path: str) -> Iterator[str]:
    if isinstance(kind, msgspec.inspect.UnionType):
        for each in kind.types:
            yield from _in(value, each, path)
    elif isinstance(kind, msgspec.inspect.ListType) and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _in(item, kind.item_type, f"{path}[{index}]")
    elif isinstance(kind, msgspec.inspect.StructType) and isinstance(value, dict):
        fields = {field.encode_name: field.type for field in kind.fields}
        for key, inner in value.items():
            if key in fields:
                yield from _in(inner, fields[key], f"{path}.{key}")
            elif key not in _UNREAD:
                near = get_close_matches(str(key), fields, n=1)
                meant = f"; did you mean {near[0]}?" if near else ""
                yield f"{path}.{key} is no field and is ignored{meant}"
