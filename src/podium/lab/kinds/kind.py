"""How the objects of one kind are completed, validated and printed.

A kind that has nothing of its own behaves as `KindStrategy()` does.

Upstream: the strategy.go of each resource in pkg/registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from podium.lab.api.field_errors import FieldError
from podium.lab.api.resources import Resource
from podium.lab.kinds.printer import Printer
from podium.lab.validation.metadata import NameRule, dns_subdomain_reasons, validate_metadata
from podium.objects.kinds.meta import JsonObject

Edit = Callable[[JsonObject], None]


def _no_edit(_item: JsonObject) -> None:
    return


def _empty_status(_item: JsonObject) -> JsonObject:
    return {}


def _no_errors(*_items: JsonObject) -> Iterable[FieldError]:
    return ()


@dataclass(frozen=True, slots=True)
class KindStrategy:
    """How objects of one kind are completed and validated."""

    #: Sets default values, in new objects and in updates.
    set_defaults: Edit = _no_edit
    #: Completes a new object once its uid and name are known.
    complete_new: Edit = _no_edit
    #: The status of a new object; `None` keeps the status that a client sends.
    new_status: Callable[[JsonObject], JsonObject] | None = _empty_status
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
            item["status"] = self.new_status(item)

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
