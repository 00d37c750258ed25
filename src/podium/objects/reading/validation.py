"""Checks of objects that could be decoded.

`validate` refuses what no API server would have stored and what would make a decision
meaningless; selectors are never refused, since an invalid one has a documented outcome in the
scheduler. `notes` lists what was skipped or looks odd and is no reason to stop.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from podium.errors import InputError
from podium.objects.field_errors import joined
from podium.objects.kinds.kind import Kind
from podium.objects.kinds.meta import Object, RawQuantity
from podium.objects.kinds.quantities import quantities_of
from podium.objects.kinds.registry import KINDS
from podium.objects.names import (
    is_label_value,
    is_qualified_name,
    is_subdomain,
    label_key_reasons,
    label_value_reasons,
)
from podium.objects.quantity import QuantityError, nano
from podium.objects.reading.collection import Objects, label

_NAME_HINT = (
    "use lower case letters, digits, '-' and '.', beginning and ending with a letter or digit, "
    "at most 253 characters"
)
_QUANTITY_HINT = "write a number with an optional suffix, such as 500m, 2, 1.5Gi or 1e3"
#: How many pods a note names.
_SHOWN = 3


def validate(objects: Objects) -> None:
    """Raise an `InputError` for the first object that cannot be used."""
    for kind in KINDS.values():
        seen: dict[str, int] = {}
        for index, item in enumerate(objects.of(kind)):
            try:
                _check(kind, item)
                key = item.key if kind.namespaced else item.name
                _check_unique(kind, objects, seen.setdefault(key, index), index)
            except InputError as error:
                name = label(kind.name, item.metadata.namespace, item.name)
                raise error.located(where=objects.where(kind, index), object=name) from None


def _check(kind: Kind[Any], item: Object) -> None:
    _check_name(item.name, "metadata.name")
    if kind.namespaced and item.metadata.namespace:
        _check_name(item.metadata.namespace, "metadata.namespace")
    if item.metadata.labels:
        _check_labels(item.metadata.labels, "metadata.labels")
    for path, quantity in quantities_of(item):
        _check_quantity(path, quantity)
    for fault in kind.faults(item) if kind.faults else ():
        raise InputError(fault.what, path=fault.path, hint=fault.hint)
    template = kind.template(item) if kind.template else None
    if template:
        _check_labels(template.metadata.labels or {}, "spec.template.metadata.labels")


def _check_name(name: str, path: str) -> None:
    if not is_subdomain(name):
        raise InputError(f"{name!r} is not a legal name", path=path, hint=_NAME_HINT)


def _check_labels(labels: Mapping[str, str], path: str) -> None:
    for key, value in labels.items():
        if not is_qualified_name(key):
            what = f"the key {key!r} is not legal: {'; '.join(label_key_reasons(key))}"
            raise InputError(what, path=path)
        if not is_label_value(value):
            what = f"{value!r} is not legal: {'; '.join(label_value_reasons(value))}"
            raise InputError(what, path=joined(path, key))


def _check_unique(kind: Kind[Any], objects: Objects, first: int, index: int) -> None:
    if first == index:
        return
    where = objects.where(kind, first)
    elsewhere = where and where != objects.where(kind, index)
    hint = f"it is also in {where}" if elsewhere else "give one of the two another name"
    raise InputError("appears twice", hint=hint)


def _check_quantity(path: str, quantity: RawQuantity) -> None:
    try:
        amount = nano(quantity)
    except QuantityError as error:
        raise InputError(str(error), path=path, hint=_QUANTITY_HINT) from None
    if amount < 0:
        raise InputError(f"{quantity} is negative", path=path, hint="use zero or more")


def notes(objects: Objects) -> list[str]:
    """Sentences about what was skipped or looks odd, for people to read."""
    found = [f"{where}: holds no objects" for where in objects.empty_files]
    if objects.unknown_kinds:
        counted = ", ".join(f"{kind} {n}" for kind, n in sorted(objects.unknown_kinds.items()))
        total = objects.unknown_kinds.total()
        found.append(f"skipped {_plural(total, 'object')} of kinds that do not matter: {counted}")
    found += forbidden_notes((objects.snapshot or {}).get("notRead") or ())
    found += objects.misspelt
    found += _pod_notes(objects)
    return found


def forbidden_notes(names: Collection[str]) -> Iterator[str]:
    """One sentence on the resources that the user may not list."""
    if names:
        yield (
            f"the cluster allows no list of {', '.join(sorted(names))}; the answer goes without "
            "them: they are unknown, not absent"
        )


def _pod_notes(objects: Objects) -> Iterator[str]:
    finished = sum(pod.finished for pod in objects.pods)
    if finished:
        yield f"skipped {_plural(finished, 'finished pod')}"
    nodes = {node.name for node in objects.nodes}
    lost = [
        f"{pod.key} on {pod.spec.node_name}"
        for pod in objects.pods
        if pod.spec.node_name and pod.spec.node_name not in nodes and not pod.finished
    ]
    if lost:
        more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
        named = ", ".join(lost[:_SHOWN])
        yield f"{_plural(len(lost), 'pod')} on nodes that are not in the input: {named}{more}"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
