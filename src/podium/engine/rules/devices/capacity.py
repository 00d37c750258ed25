"""How much of the capacity of a device a request consumes, and whether that is left.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/
consumable_capacity.go, Kubernetes v1.36. Amounts are compared in billionths.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from podium.objects.canonical_quantity import canonical, in_binary
from podium.objects.quantity import nano, value

if TYPE_CHECKING:
    from podium.objects.kinds.devices import CapacityPolicy, CapacityRange, Device, DeviceCapacity
    from podium.objects.kinds.meta import RawQuantity

#: What a request asks for, by the name of the capacity.
Requested = Mapping[str, "RawQuantity"]


def shortage(
    device: Device,
    requested: Requested,
    used: Mapping[str, int] | None,
    chosen: Mapping[str, int] | None,
) -> str:
    """Why the capacity of a device does not suffice; empty if it does.

    *used* is what shares consume, *chosen* what the search under way adds, both in billionths.
    """
    capacities = device.capacity or {}
    for name in requested:
        if name not in capacities:
            return f"has no capacity {name}"
    for name, capacity in capacities.items():
        amount = consumption(requested.get(name), capacity)
        if _violates(amount, capacity.request_policy):
            return f"does not allow {canonical(amount)} of {name}"
        total = nano(amount) + (used or {}).get(name, 0) + (chosen or {}).get(name, 0)
        if total > nano(capacity.value):
            return f"has less than {canonical(amount)} of {name} left"
    return ""


def consumption(requested: RawQuantity | None, capacity: DeviceCapacity) -> RawQuantity:
    """What a request consumes: the amount asked for, adapted to the policy of the capacity."""
    policy = capacity.request_policy
    if requested is None:
        if policy is not None and policy.default is not None:
            return policy.default
        return capacity.value
    if policy is None:
        return requested
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _within(requested, policy.valid_range.min, policy.valid_range.step)
    allowed = (each for each in policy.valid_values or () if nano(requested) <= nano(each))
    return next(allowed, requested)


def _within(requested: RawQuantity, least: RawQuantity, step: RawQuantity | None) -> RawQuantity:
    """The amount raised to the minimum of a range, or to its next step."""
    if nano(requested) < nano(least):
        return least
    if step is None:
        return requested
    start, width = value(least), value(step)
    return in_binary(start - (start - value(requested)) // width * width)


def consumed_by(device: Device, requested: Requested) -> dict[str, str]:
    """What a share consumes of every capacity of the device."""
    found = (device.capacity or {}).items()
    return {name: canonical(consumption(requested.get(name), each)) for name, each in found}


def _violates(amount: RawQuantity, policy: CapacityPolicy | None) -> bool:
    if policy is None:
        return False
    if policy.default is not None and canonical(amount) == canonical(policy.default):
        return False
    if policy.valid_range is not None:
        return _outside(amount, policy.valid_range)
    allowed = policy.valid_values or ()
    return bool(allowed) and all(nano(amount) != nano(each) for each in allowed)


def _outside(amount: RawQuantity, limits: CapacityRange) -> bool:
    if limits.max is not None and nano(amount) > nano(limits.max):
        return True
    if limits.step is None:
        return False
    start = value(limits.min) if limits.min is not None else 0
    return (value(amount) - start) % value(limits.step) != 0
