"""What the calls of an expression cost, as kube-scheduler counts it.

The cost of a call depends on its function, on the overload that it was resolved to, and on the
sizes of its arguments and result. A call whose overload is known only at run time costs one.

Upstream: interpreter/runtimecost.go, ext/lists.go and ext/sets.go of cel-go, and
staging/src/k8s.io/apiserver/pkg/cel/library/cost.go of Kubernetes v1.36.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from podium.cel.named_formats import NamedFormat
from podium.cel.network import Cidr, Ip, Url
from podium.cel.values import Optional, Quantity, Semver

#: The cost of a call with these arguments.
Cost = Callable[..., int]

LIST_COST: Final = 10
MAP_COST: Final = 30
#: More than any evaluation may cost.
_MOST_STEPS: Final = 10_000_000
_SIZED: Final = (str, bytes, list, dict)
_OPAQUE: Final = (Quantity, Semver, Ip, Cidr, Url, NamedFormat)


def size_of(value: Any) -> int:
    """The characters, bytes or elements of a value; one for all other values."""
    if isinstance(value, _SIZED):
        return len(value)
    if isinstance(value, int):
        return 1
    if isinstance(value, Optional) and value.present:
        return size_of(value.content)
    if isinstance(value, Cidr):
        return math.ceil(value.length / 8)
    if isinstance(value, Ip):
        return len(value.address.packed)
    return 1


def _tenth(size: int) -> int:
    """A tenth, rounded up as floating point has it: of 70 that is 8."""
    return math.ceil(size * 0.1)


def _traversal(value: Any) -> int:
    """A value and all that it holds. What is held twice counts twice, up to a limit."""
    cost, left, steps = 0, [value], 0
    while left and steps < _MOST_STEPS:
        each = left.pop()
        steps += 1
        if isinstance(each, str):
            cost += int(len(each.encode()) * 0.1)
        elif isinstance(each, bytes):
            cost += int(len(each) * 0.1)
        elif isinstance(each, list):
            left += each
        elif isinstance(each, dict):
            left += each
            left += each.values()
        else:
            cost += 1
    return cost if not left else _MOST_STEPS


def _traversed(first: Any, *_: Any) -> int:
    return _tenth(size_of(first))


def _traversed_twice(first: Any, *_: Any) -> int:
    return _tenth(size_of(first) * 2)


def pattern_cost(text: Any, pattern: Any, *_: Any) -> int:
    """A match looks at each character of a text for each part of a pattern."""
    return _tenth(1 + size_of(text)) * -(-size_of(pattern) // 4)


def _validated(named: Any, text: Any) -> int:
    if not isinstance(named, NamedFormat):
        return 1
    return _tenth(1 + size_of(text)) * math.ceil(named.size * 0.25)


def _contained(text: Any, part: Any) -> int:
    return _tenth(size_of(text)) * _tenth(size_of(part))


def shorter(one: Any, two: Any) -> int:
    """A comparison ends with the shorter value."""
    if type(one) is str and type(two) is str:
        return math.ceil(min(len(one), len(two)) * 0.1)
    return _tenth(min(size_of(one), size_of(two)))


def equality(one: Any, two: Any) -> int:
    """`==` of values of Kubernetes costs one."""
    return 1 if isinstance(one, _OPAQUE) else shorter(one, two)


def _both(one: Any, two: Any) -> int:
    if type(one) is str and type(two) is str:
        return math.ceil((len(one) + len(two)) * 0.1)
    return _tenth(size_of(one) + size_of(two))


def _listed(_: Any, holder: Any) -> int:
    return size_of(holder)


def _joined(parts: Any, separator: Any = "") -> int:
    sizes = [size_of(each) for each in parts] if isinstance(parts, list) else []
    made = sum(sizes) + max(len(sizes) - 1, 0) * size_of(separator or "")
    return _tenth(made * 2)


def _parsed_ip(given: Any) -> int:
    return 1 if isinstance(given, Cidr) else _tenth(size_of(given))


def _contains_ip(network: Any, other: Any) -> int:
    parsed = _tenth(size_of(other)) if isinstance(other, str) else 0
    return _tenth(size_of(network) * 2) + parsed


def _contains_cidr(network: Any, other: Any) -> int:
    return _contains_ip(network, other) + _tenth(size_of(network)) + 1


def _made_list(made: float) -> int:
    return 1 + LIST_COST + max(int(made), 0)


def _sliced(_: Any, start: Any, end: Any) -> int:
    sizes = isinstance(start, int) and isinstance(end, int)
    return _made_list(max(end - start, 0) if sizes else 1)


def _flattened(values: Any, depth: Any = 1) -> int:
    return _made_list(size_of(values) * (depth if isinstance(depth, int) else 1))


def _counted(number: Any) -> int:
    return _made_list(max(number, 0) if isinstance(number, int) else 1)


def _same_size(values: Any) -> int:
    return _made_list(size_of(values))


def _compared_with_itself(values: Any) -> int:
    size = size_of(values)
    texts = isinstance(values, list) and values and isinstance(values[0], str | bytes)
    return _made_list(size * size * (2.1 if texts else 2.0))


def _compared_by_keys(_: Any, keys: Any) -> int:
    return _compared_with_itself(keys)


def _sets(factor: int) -> Cost:
    return lambda one, two: 1 + size_of(one) * size_of(two) * factor


def _first_traversed(first: Any, *_: Any) -> int:
    return _traversal(first)


#: By the name of a function: whatever its overload is.
_BY_FUNCTION: Final[dict[str, Cost]] = {
    **dict.fromkeys(
        ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _first_traversed
    ),
    **dict.fromkeys(
        ("url", "lowerAscii", "upperAscii", "substring", "trim", "cidr", "isIP", "isCIDR",
         "quantity", "isQuantity", "semver", "isSemver", "startsWith", "endsWith",
         "strings.quote", "format"),
        _traversed,
    ),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _traversed_twice),
    "join": _joined,
    "find": pattern_cost,
    "findAll": pattern_cost,
    "validate": _validated,
    "ip": _parsed_ip,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "contains": _contained,
    "slice": _sliced,
    "flatten": _flattened,
    "lists.range": _counted,
    "reverse": _same_size,
    "distinct": _compared_with_itself,
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
}  # fmt: skip
#: By the overload, where there is one.
_BY_OVERLOAD: Final[dict[str, Cost]] = {
    "matches_string": pattern_cost,
    "in_list": _listed,
    "add_string": _both,
    "add_bytes": _both,
    "string_to_bytes": _traversed,
    "string(bytes)": _traversed,
    **{
        f"{operator}({kind},{kind})": shorter
        for operator in ("_<_", "_<=_", "_>_", "_>=_")
        for kind in ("string", "bytes")
    },
}
#: The overload is known only of lists of one type; each type has its own.
_SORTED: Final[dict[str, Cost]] = {
    "sort": _compared_with_itself,
    "@sortByAssociatedKeys": _compared_by_keys,
}


def call_cost(function: str, overloads: Sequence[str]) -> Cost | None:
    """What a call costs by its arguments; None if it always costs one."""
    if function in _SORTED:
        return _SORTED[function] if len(overloads) <= 1 else None
    known = _BY_FUNCTION.get(function)
    if known is None and len(overloads) == 1:
        known = _BY_OVERLOAD.get(overloads[0])
    return known
