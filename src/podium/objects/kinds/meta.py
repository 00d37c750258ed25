"""What every Kubernetes object carries, and the base of all object values.

Only the fields that scheduling reads are declared; decoding skips the rest. Absent and null are
the same (`None`), an empty list or map stays empty: several rules distinguish the two.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec


class Value(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True, gc=False):
    """An immutable piece of a Kubernetes object, decoded from JSON with camelCase names."""


#: A moment as JSON has it, such as "2026-01-31T12:00:00Z". Protobuf has numbers instead.
Time = Annotated[str, msgspec.Meta(extra={"is_time": True})]


#: Whole numbers as wide as the API has them; others are refused when they are read.
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class OwnerReference(Value, frozen=True):
    """An owner of the object; the one with `controller` set manages it."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool | None = None


class ObjectMeta(Value, frozen=True):
    """Name, labels and times of an object."""

    name: str = ""
    namespace: str | None = None
    generate_name: str | None = None
    uid: str = ""
    resource_version: str = ""
    generation: Int64 | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None

    def controller(self) -> OwnerReference | None:
        """The first owner that manages this object."""
        for owner in self.owner_references or ():
            if owner.controller:
                return owner
        return None


class LabelSelectorRequirement(Value, frozen=True):
    """One expression of a selector; which operators are legal depends on the kind of selector."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(Value, frozen=True):
    """matchLabels and matchExpressions, ANDed. Absent matches nothing, empty matches everything."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelSelectorRequirement] | None = None


#: A quantity as people write it: "100m", "1Gi", 2, 0.5.
RawQuantity = str | int | float
ResourceList = dict[str, RawQuantity]


class Object(Value, frozen=True):
    """A top-level Kubernetes object."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        """The name, unique in its namespace."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """The namespace; an absent one means `default`."""
        return self.metadata.namespace or "default"

    @property
    def labels(self) -> dict[str, str]:
        """Labels, empty when there are none."""
        return self.metadata.labels or {}

    @property
    def key(self) -> str:
        """The key of the object among those of its kind: `namespace/name`."""
        about = self.metadata
        return f"{about.namespace or 'default'}/{about.name}"


#: A value as a reader of JSON or YAML gives it.
Plain = Any
JsonObject = dict[str, Any]
