"""How the objects of one kind are completed, validated and printed.

A kind that declares nothing behaves as `KindStrategy()` does.

Columns of a table are written as one text, separated by commas. A mark may precede the name of a
column: `#` for numbers, `?` for booleans, `@` for times, `*` for priority 1. kubectl prints columns
of priority 1 with `-o wide` only. The path of a field may follow, and what stands for an absent
one: `Holder=spec.holderIdentity`, `Min Available=spec.minAvailable|N/A`. `Name` and `Age` need no
path. A row always has the cells of all columns.

Upstream: the strategy.go of each resource in pkg/registry, pkg/printers,
apimachinery/pkg/util/duration, pkg/labels, apis/meta/v1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from podium.lab.api.encoding import parse_time
from podium.lab.api.resources import Resource
from podium.lab.api.status import FieldError
from podium.lab.kinds.field_checks import validate_metadata
from podium.objects.field_errors import NameRule, dns_subdomain_reasons
from podium.objects.kinds.meta import JsonObject

NONE, UNKNOWN, UNSET = "<none>", "<unknown>", "<unset>"
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400
#: All cells of an object at a time in seconds since 1970, or one of them.
Cells = Callable[[JsonObject, float], list[Any]]
Cell = Callable[[JsonObject, float], Any]

_TYPES = {"#": "integer", "?": "boolean", "@": "date"}
_DESCRIPTIONS = {
    "Name": "Name must be unique within a namespace.",
    "Age": "The time since the object was created.",
    "Status": "The state of the object in a word.",
}


def object_at(item: Any, *path: str) -> JsonObject:
    """The object at a path, empty if there is none."""
    for name in path:
        item = item.get(name) if isinstance(item, dict) else None
    return item if isinstance(item, dict) else {}


def list_at(item: Any, *path: str) -> list[Any]:
    """The list at a path, empty if there is none."""
    found = object_at(item, *path[:-1]).get(path[-1])
    return found if isinstance(found, list) else []


def number_at(item: JsonObject, *path: str) -> int:
    """The integer at a path, 0 if there is none."""
    found = object_at(item, *path[:-1]).get(path[-1])
    return found if isinstance(found, int) else 0


def text_at(item: JsonObject, *path: str, default: str = "") -> str:
    """The value at a path as text, *default* if there is none or if it is empty."""
    found = object_at(item, *path[:-1]).get(path[-1])
    return default if found is None or found == "" else str(found)


def metadata_of(item: JsonObject) -> JsonObject:
    """The metadata of an object, empty if it has none."""
    return object_at(item, "metadata")


def name_of(item: JsonObject) -> str:
    """The name of an object, empty if it has none."""
    return text_at(item, "metadata", "name")


def condition_status(item: JsonObject, condition_type: str) -> str:
    """The status of the condition of this type, empty if there is none."""
    for each in list_at(item, "status", "conditions"):
        if each.get("type") == condition_type:
            return str(each.get("status", ""))
    return ""


def time_since(timestamp: Any, now: float) -> str:
    """The duration from a timestamp until now."""
    then = parse_time(timestamp) if isinstance(timestamp, str) else None
    return UNKNOWN if then is None else duration(now - then)


def age(item: JsonObject, now: float) -> str:
    """The duration since an object was created."""
    return time_since(metadata_of(item).get("creationTimestamp"), now)


#: For durations below a bound: their unit, and a smaller unit for the rest, if it is printed.
_UNITS = (
    (10 * _MINUTE, (_MINUTE, "m"), (1, "s")),
    (3 * _HOUR, (_MINUTE, "m"), None),
    (8 * _HOUR, (_HOUR, "h"), (_MINUTE, "m")),
    (2 * _DAY, (_HOUR, "h"), None),
    (8 * _DAY, (_DAY, "d"), (_HOUR, "h")),
    (2 * _YEAR, (_DAY, "d"), None),
    (8 * _YEAR, (_YEAR, "y"), (_DAY, "d")),
)


def duration(seconds: float) -> str:
    """A duration with two or three significant figures."""
    whole = int(seconds)
    if whole < 2 * _MINUTE:
        return "<invalid>" if whole < -1 else f"{max(whole, 0)}s"
    for bound, (unit, letter), smaller in _UNITS:
        if whole < bound:
            rest = whole % unit // smaller[0] if smaller else 0
            rest_text = f"{rest}{smaller[1]}" if smaller and rest else ""
            return f"{whole // unit}{letter}{rest_text}"
    return f"{whole // _YEAR}y"


def labels_text(labels: Mapping[str, Any]) -> str:
    """Labels as a comma-separated list of `key=value`."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) or NONE


def labels_cell(*path: str) -> Cell:
    """The labels at a path as text."""
    return lambda item, _: labels_text(object_at(item, *path))


def selector_text(selector: JsonObject) -> str:
    """A label selector in the syntax of `kubectl get --selector`."""
    terms = [(key, f"{key}={value}") for key, value in object_at(selector, "matchLabels").items()]
    for each in list_at(selector, "matchExpressions"):
        key, operator = str(each.get("key")), each.get("operator")
        values = ",".join(sorted(map(str, each.get("values") or [])))
        forms = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }
        terms.append((key, forms.get(str(operator), key)))
    return ",".join(term for _, term in sorted(terms, key=lambda each: each[0]))


def container_cells_at(*path: str) -> dict[str, Cell]:
    """The names and the images of the containers of the pod template at a path."""

    def joined(name: str) -> Cell:
        return lambda item, _: ",".join(
            str(each.get(name, "")) for each in list_at(item, *path, "spec", "containers")
        )

    return {"Containers": joined("name"), "Images": joined("image")}


def first_three(values: Iterable[str], *, empty: str = UNSET) -> str:
    """The first three values and the number of the others."""
    listed = list(values)
    shown = ",".join(listed[:3])
    more = f" + {len(listed) - 3} more..." if len(listed) > 3 else ""
    return shown + more or empty


def _no_conditions(_item: JsonObject) -> list[JsonObject]:
    return []


def _unchanged(_items: Sequence[JsonObject], _rows: Sequence[JsonObject]) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Printer:
    """How objects of a kind become rows."""

    columns: str
    #: What the cells are that are no fields: of all columns, or of some by their names.
    computed: Cells | Mapping[str, Cell] = field(default_factory=dict)
    #: The conditions of the row of an object.
    conditions: Callable[[JsonObject], list[JsonObject]] = _no_conditions
    #: Changes rows that depend on the other objects of the table.
    finish: Callable[[Sequence[JsonObject], Sequence[JsonObject]], None] = _unchanged

    def cells(self, item: JsonObject, now: float) -> list[Any]:
        """The cells of an object at a time in seconds since 1970."""
        if callable(self.computed):
            return self.computed(item, now)
        return [
            self.computed[each.name](item, now)
            if each.name in self.computed
            else each.cell(item, now)
            for each in _read_columns(self.columns)
        ]

    def column_definitions(self) -> list[JsonObject]:
        """The columns as a `Table` defines them."""
        return [each.definition() for each in _read_columns(self.columns)]


class _Column(NamedTuple):
    """A column, and the field that it shows."""

    mark: str
    name: str
    path: tuple[str, ...]
    absent: str

    def definition(self) -> JsonObject:
        """The column as a `Table` defines it."""
        return {
            "name": self.name,
            "type": _TYPES.get(self.mark, "string"),
            "format": "name" if self.name in ("Name", "Attacher") else "",
            "description": _DESCRIPTIONS.get(self.name, self.name),
            "priority": 1 if self.mark == "*" else 0,
        }

    def cell(self, item: JsonObject, now: float) -> Any:
        """The cell of an object."""
        if self.name == "Age":
            return age(item, now)
        if self.mark == "#":
            return number_at(item, *self.path)
        if self.mark == "?":
            return bool(object_at(item, *self.path[:-1]).get(self.path[-1]))
        return text_at(item, *self.path, default=self.absent)


@cache
def _read_columns(text: str) -> tuple[_Column, ...]:
    found = []
    for word in text.split(", "):
        name, _, where = word.partition("=")
        path, _, absent = where.partition("|")
        steps = tuple(path.split(".")) if path else ("metadata", "name")
        found.append(_Column(name[0], name.lstrip("*#?@"), steps, absent))
    return tuple(found)


Edit = Callable[[JsonObject], None]


def _no_edit(_item: JsonObject) -> None:
    return


def defaults(wanted: JsonObject) -> Edit:
    """What sets the absent fields of an object to those of *wanted*, in inner objects as well."""
    return lambda item: _complete(item, wanted)


def _complete(item: JsonObject, wanted: JsonObject) -> None:
    for name, value in wanted.items():
        if isinstance(value, dict) and value:
            _complete(item.setdefault(name, {}), value)
        elif name not in item:
            item[name] = deepcopy(value)


def _no_errors(*_items: JsonObject) -> Iterable[FieldError]:
    return ()


@dataclass(frozen=True, slots=True)
class KindStrategy:
    """How objects of one kind are completed and validated."""

    #: Sets default values, in new objects and in updates.
    set_defaults: Edit = _no_edit
    #: Completes a new object once its uid and name are known.
    complete_new: Edit = _no_edit
    #: The status of a new object, or what makes it; `None` keeps the status that a client sends.
    new_status: JsonObject | Callable[[JsonObject], JsonObject] | None = field(default_factory=dict)
    #: Whether `metadata.generation` counts changes of the spec.
    has_generation: bool = False
    name_rule: NameRule = dns_subdomain_reasons
    validate: Callable[[JsonObject], Iterable[FieldError]] = _no_errors
    validate_update: Callable[[JsonObject, JsonObject], Iterable[FieldError]] = _no_errors
    #: The errors in a new status.
    validate_status: Callable[[JsonObject, JsonObject], Iterable[FieldError]] = _no_errors
    #: Whether an update may leave out the resource version.
    allows_unconditional_update: bool = True
    #: Whether an update of an object that does not exist creates it.
    allows_create_on_update: bool = False
    #: The columns that `kubectl get` prints; `None` prints name and creation.
    table: Printer | None = None

    def prepare_for_create(self, resource: Resource, item: JsonObject) -> None:
        """Complete a new object before it is validated."""
        self.complete_new(item)
        if "status" in resource.subresources and self.new_status is not None:
            made = self.new_status
            item["status"] = made(item) if callable(made) else dict(made)

    def prepare_for_update(self, item: JsonObject, old: JsonObject, subresource: str) -> JsonObject:
        """The object to be stored: a write of the status keeps the spec, and the reverse."""
        if subresource == "status":
            made = {**old, "metadata": item["metadata"]}
            _copy_field("ownerReferences", old["metadata"], made["metadata"])
            if "status" in item:
                made["status"] = item["status"]
            else:
                made.pop("status", None)
            return made
        _copy_field("status", old, item)
        return item

    def changes_generation(self, item: JsonObject, old: JsonObject) -> bool:
        """Whether an update changes fields besides metadata and status."""
        if not self.has_generation:
            return False
        fields = (item.keys() | old.keys()) - {"metadata", "status", "apiVersion", "kind"}
        return any(item.get(field) != old.get(field) for field in fields)

    def create_errors(self, item: JsonObject) -> list[FieldError]:
        """The errors in a new object."""
        return [*validate_metadata(item["metadata"], self.name_rule), *self.validate(item)]

    def update_errors(self, item: JsonObject, old: JsonObject) -> list[FieldError]:
        """The errors in an object that replaces *old*."""
        return [*self.validate(item), *self.validate_update(item, old)]

    def status_errors(self, item: JsonObject, old: JsonObject) -> list[FieldError]:
        """The errors in the status that replaces that of *old*."""
        return list(self.validate_status(item, old))


def _copy_field(field: str, source: JsonObject, target: JsonObject) -> None:
    if field in source:
        target[field] = source[field]
    else:
        target.pop(field, None)


class CustomStrategy(KindStrategy):
    """How custom objects are completed and validated; the schema is checked where they are read."""

    def prepare_for_create(self, resource: Resource, item: JsonObject) -> None:
        """Remove the status of a new object if only its subresource may write it."""
        if "status" in resource.subresources:
            item.pop("status", None)


class CustomStrategyWithoutStatus(CustomStrategy):
    """The strategy where the status is a field as all others are."""

    def prepare_for_update(self, item: JsonObject, old: JsonObject, subresource: str) -> JsonObject:  # noqa: ARG002
        """The object to be stored: *item* as a whole."""
        return item

    def changes_generation(self, item: JsonObject, old: JsonObject) -> bool:
        """Whether an update changes anything besides metadata."""
        return {**item, "metadata": None} != {**old, "metadata": None}
