"""Constraints of a claim: an attribute that is the same, or different, for its devices.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/
constraint.go and allocator_incubating.go, Kubernetes v1.36.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from podium.engine.rules.devices.pools import OfferedDevice
    from podium.objects.kinds.devices import DeviceAttribute, DeviceConstraint

#: The type and the value of an attribute.
Attribute = tuple[str, object]


class ChoiceConstraint:
    """What the devices chosen so far demand of the next one: one attribute is looked at."""

    #: The field of the API that states it.
    field = "distinctAttribute"

    def __init__(self, requests: list[str] | None, attribute: str) -> None:
        self._requests = frozenset(requests or ())
        self._attribute = attribute
        self._devices = 0

    @property
    def text(self) -> str:
        """The constraint in words."""
        return f"{self.field} {self._attribute}"

    def add(self, request: str, subrequest: str, device: OfferedDevice) -> bool:
        """Take a device into the set; False if it must not be in it."""
        if not self._applies(request, subrequest):
            return True
        value = self._value(device)
        if value is None or not self._admits(value):
            return False
        self._devices += 1
        self._keep(request, value)
        return True

    def remove(self, request: str, subrequest: str) -> None:
        """Take the device that was added last out again."""
        if self._applies(request, subrequest):
            self._devices -= 1
            self._forget(request)

    def _admits(self, value: Attribute) -> bool:
        """Whether a device with this value may be in the set."""
        raise NotImplementedError

    def _keep(self, request: str, value: Attribute) -> None:
        """Remember the value of the device that was added last."""
        raise NotImplementedError

    def _forget(self, request: str) -> None:
        """Forget what was remembered last."""

    def _applies(self, request: str, subrequest: str) -> bool:
        if not self._requests or request in self._requests:
            return True
        return bool(subrequest) and f"{request}/{subrequest}" in self._requests

    def _value(self, device: OfferedDevice) -> Attribute | None:
        attributes = device.device.attributes or {}
        found = attributes.get(self._attribute)
        if found is None:
            domain, slash, identifier = self._attribute.partition("/")
            if not slash or domain != device.id.driver:
                return None
            found = attributes.get(identifier)
        return None if found is None else _value(found)


class SameAttribute(ChoiceConstraint):
    """All devices have the same value as the first one."""

    field = "matchAttribute"
    _first: Attribute | None = None

    def _admits(self, value: Attribute) -> bool:
        return not self._devices or (value == self._first and value[0] != "")

    def _keep(self, request: str, value: Attribute) -> None:
        if self._devices == 1:
            self._first = value


class DistinctAttribute(ChoiceConstraint):
    """A device has a value that no other device of the claim has."""

    def __init__(self, requests: list[str] | None, attribute: str) -> None:
        super().__init__(requests, attribute)
        self._values: list[Attribute] = []

    def _admits(self, value: Attribute) -> bool:
        return value not in self._values and not (value[0] == "" and self._values)

    def _keep(self, request: str, value: Attribute) -> None:
        self._values.append(value)

    def _forget(self, request: str) -> None:
        self._values.pop()


class DistinctFromLast(ChoiceConstraint):
    """A device has a value that the last device of each request does not have.

    In v1.36 one value is remembered per request, the newest: within a request of several
    devices a value may come back after another one, and taking a device out forgets the value.
    """

    def __init__(self, requests: list[str] | None, attribute: str) -> None:
        super().__init__(requests, attribute)
        self._values: dict[str, Attribute] = {}

    def _admits(self, value: Attribute) -> bool:
        known = self._values
        return not self._devices or not (value in known.values() or (value[0] == "" and known))

    def _keep(self, request: str, value: Attribute) -> None:
        self._values[request] = value

    def _forget(self, request: str) -> None:
        self._values.pop(request, None)


def constraint_of(
    written: DeviceConstraint, distinct: Literal["unknown", "last", "all"] = "last"
) -> ChoiceConstraint | None:
    """The constraint as it is written; None for a kind that is not known.

    *distinct* tells with which devices a distinct attribute is compared.
    """
    if written.match_attribute is not None:
        return SameAttribute(written.requests, written.match_attribute)
    if written.distinct_attribute is not None and distinct != "unknown":
        kind = DistinctAttribute if distinct == "all" else DistinctFromLast
        return kind(written.requests, written.distinct_attribute)
    return None


def _value(attribute: DeviceAttribute) -> Attribute:
    """Type and value; versions are compared as text."""
    if attribute.string_value is not None:
        return "string", attribute.string_value
    if attribute.int_value is not None:
        return "int", attribute.int_value
    if attribute.bool_value is not None:
        return "bool", attribute.bool_value
    if attribute.version_value is not None:
        return "version", attribute.version_value
    return "", None
