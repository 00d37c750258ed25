"""How much of the capacity of a device a request consumes, and whether that is left.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/
consumable_capacity.go, Kubernetes v1.36 and v1.37. Amounts are compared in billionths.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from podium.objects.names import quoted
from podium.objects.quantity import canonical, in_binary, nano, value

if TYPE_CHECKING:
    from podium.objects.kinds.devices import CapacityPolicy, CapacityRange, Device, DeviceCapacity
    from podium.objects.kinds.meta import RawQuantity

_EXPONENT: Final = re.compile(r"[eE][-+]?[0-9]+$")
#: What a request asks for, by the name of the capacity.
Requested = Mapping[str, "RawQuantity"]


class CapacityError(Exception):
    """A request for capacity that kube-scheduler refuses to compute with."""


class Arithmetic(NamedTuple):
    """How amounts of capacity are computed; the defaults are those of v1.36."""

    #: Whether ranges are computed in thousandths where all their bounds are such.
    fractions: bool = False
    #: Whether a request that cannot be represented, or is negative, is an error.
    strict: bool = False


NORMAL: Final = Arithmetic()
_MOST: Final = (1 << 63) - 1
_MILLI: Final = 10**6
_UNREPRESENTABLE: Final = "capacity request cannot be represented in the device's range arithmetic"


def shortage(
    device: Device,
    requested: Requested,
    used: Mapping[str, int] | None,
    chosen: Mapping[str, int] | None,
    arithmetic: Arithmetic = NORMAL,
) -> str:
    """Why the capacity of a device does not suffice; empty if it does.

    *used* is what shares consume, *chosen* what the search under way adds, both in billionths.
    """
    capacities = device.capacity or {}
    for name in requested:
        if name not in capacities:
            return f"has no capacity {name}"
    amounts = consumptions(device, requested, arithmetic)
    for name, capacity in capacities.items():
        amount = amounts[name]
        if _violates(amount, capacity.request_policy, arithmetic):
            return f"does not allow {canonical(amount)} of {name}"
        total = nano(amount) + (used or {}).get(name, 0) + (chosen or {}).get(name, 0)
        if total > nano(capacity.value):
            return f"has less than {canonical(amount)} of {name} left"
    return ""


def consumptions(
    device: Device, requested: Requested, arithmetic: Arithmetic
) -> dict[str, RawQuantity]:
    """What a request consumes of every capacity of a device."""
    found = {}
    for name, capacity in (device.capacity or {}).items():
        try:
            amount = consumption(requested.get(name), capacity, arithmetic)
        except CapacityError as error:
            raise CapacityError(f"capacity {quoted(name)}: {error}") from None
        if arithmetic.strict and nano(amount) < 0:
            raise CapacityError(f"capacity {quoted(name)}: capacity value is negative")
        found[name] = amount
    return found


def consumption(
    requested: RawQuantity | None, capacity: DeviceCapacity, arithmetic: Arithmetic = NORMAL
) -> RawQuantity:
    """What a request consumes: the amount asked for, adapted to the policy of the capacity."""
    policy = capacity.request_policy
    if requested is None:
        if policy is not None and policy.default is not None:
            return policy.default
        return capacity.value
    if policy is None:
        return requested
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _within(requested, policy.valid_range.min, policy.valid_range, arithmetic)
    allowed = (each for each in policy.valid_values or () if nano(requested) <= nano(each))
    return next(allowed, requested)


def _within(
    requested: RawQuantity, least: RawQuantity, limits: CapacityRange, arithmetic: Arithmetic
) -> RawQuantity:
    """The amount raised to the minimum of a range, or to its next step."""
    if nano(requested) < nano(least):
        return least
    step = limits.step
    if step is None:
        return requested
    if _in_thousandths(limits, arithmetic):
        wanted = _thousandths(requested)
        if wanted is None:
            raise _unrepresentable(requested, "is not a representable milli value")
        start, width = nano(least) // _MILLI, nano(step) // _MILLI
        found = start - (start - wanted) // width * width
        if found > _MOST:
            raise _unrepresentable(
                requested, "up to the next step passes the milli-value range", "rounding "
            )
        return _like(step, found)
    start, width = value(least), value(step)
    if not arithmetic.strict:
        return in_binary(start - (start - value(requested)) // width * width)
    if nano(requested) > _MOST * 10**9:
        raise _unrepresentable(requested, "exceeds MaxInt64")
    found = start - (start - value(requested)) // width * width
    if start >= 0 and found > _MOST:
        raise _unrepresentable(requested, "up to the next step passes MaxInt64", "rounding ")
    return _like(step, found * 1000)


def _unrepresentable(requested: RawQuantity, why: str, before: str = "") -> CapacityError:
    return CapacityError(f"{_UNREPRESENTABLE}: {before}request {canonical(requested)} {why}")


def _like(step: RawQuantity, thousandths: int) -> RawQuantity:
    """An amount in the format of a step: binary, decimal or with an exponent."""
    text = str(step).strip()
    if text.endswith("i") and thousandths % 1000 == 0:
        return in_binary(thousandths // 1000)
    if _EXPONENT.search(text):
        return canonical(f"{thousandths}e-3")
    return canonical(f"{thousandths}m")


def _in_thousandths(limits: CapacityRange, arithmetic: Arithmetic) -> bool:
    """Whether a range is computed in thousandths: all bounds are such, the step is one at least."""
    if not arithmetic.fractions or limits.step is None:
        return False
    bounds = (limits.min, limits.max, limits.step)
    if any(each is not None and _thousandths(each) is None for each in bounds):
        return False
    return (_thousandths(limits.step) or 0) >= 1


def _thousandths(raw: RawQuantity) -> int | None:
    """An amount in thousandths; None if it is none, or too large."""
    whole, rest = divmod(nano(raw), _MILLI)
    return None if rest or abs(whole) > _MOST else whole


def consumed_by(
    device: Device, requested: Requested, arithmetic: Arithmetic = NORMAL
) -> dict[str, str]:
    """What a share consumes of every capacity of the device."""
    amounts = consumptions(device, requested, arithmetic)
    return {name: canonical(amount) for name, amount in amounts.items()}


def _violates(amount: RawQuantity, policy: CapacityPolicy | None, arithmetic: Arithmetic) -> bool:
    if policy is None:
        return False
    if policy.default is not None and canonical(amount) == canonical(policy.default):
        return False
    if policy.valid_range is not None:
        return _outside(amount, policy.valid_range, arithmetic)
    allowed = policy.valid_values or ()
    return bool(allowed) and all(nano(amount) != nano(each) for each in allowed)


def _outside(amount: RawQuantity, limits: CapacityRange, arithmetic: Arithmetic) -> bool:
    if limits.max is not None and nano(amount) > nano(limits.max):
        return True
    if limits.step is None:
        return False
    if _in_thousandths(limits, arithmetic):
        found = _thousandths(amount)
        least = _thousandths(limits.min) if limits.min is not None else 0
        return found is None or (found - (least or 0)) % (_thousandths(limits.step) or 1) != 0
    start = value(limits.min) if limits.min is not None else 0
    return (value(amount) - start) % value(limits.step) != 0
