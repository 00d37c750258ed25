"""How a deployment scales its replica sets during a rollout. Pure functions of numbers.

Upstream: pkg/controller/deployment (rolling.go, recreate.go, util/deployment_util.go).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from podium.lab.controllers.framework.object_fields import int_or_percent


class ReplicaCounts(NamedTuple):
    """The numbers of one replica set: `spec.replicas`, its pods, and its available pods."""

    desired: int
    pods: int
    available: int


@dataclass(frozen=True, slots=True)
class RolloutLimits:
    """`maxSurge` and `maxUnavailable` as numbers of pods."""

    surge: int
    unavailable: int


def rollout_limits(replicas: int, strategy: Any) -> RolloutLimits:
    """The limits of a rolling update, a quarter by default; not both of them can be 0."""
    rolling = (strategy or {}).get("rollingUpdate") or {}
    surge = int_or_percent(rolling.get("maxSurge", "25%"), replicas, round_up=True)
    unavailable = int_or_percent(rolling.get("maxUnavailable", "25%"), replicas, round_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return RolloutLimits(surge, min(unavailable, replicas))


def rolling_step(
    replicas: int, new: ReplicaCounts, old: Sequence[ReplicaCounts], limits: RolloutLimits
) -> list[int]:
    """The next replicas of the new set and the old ones: the new set grows before old ones shrink.

    The result starts with the new set.
    """
    desired = [new.desired, *(each.desired for each in old)]
    scaled_up = _scaled_up(replicas, new.desired, sum(desired), limits)
    if scaled_up != new.desired:
        return [scaled_up, *desired[1:]]
    return [new.desired, *_scaled_down(replicas, new, old, limits)]


def _scaled_up(replicas: int, desired: int, total: int, limits: RolloutLimits) -> int:
    if desired > replicas:
        return replicas
    spare = replicas + limits.surge - total
    return desired + max(min(spare, replicas - desired), 0)


def _scaled_down(
    replicas: int, new: ReplicaCounts, old: Sequence[ReplicaCounts], limits: RolloutLimits
) -> list[int]:
    """Old sets lose unavailable pods first, then as many as may be unavailable."""
    total = new.desired + sum(each.desired for each in old)
    min_available = replicas - limits.unavailable
    starting = new.desired - new.available
    surplus = total - min_available - starting
    desired = [each.desired for each in old]
    if surplus <= 0 or not any(desired):
        return desired
    for index, each in enumerate(old):
        unavailable = min(surplus, each.desired - each.available)
        if unavailable > 0:
            desired[index] -= unavailable
            surplus -= unavailable
    surplus = min(surplus, sum(each.available for each in (new, *old)) - min_available)
    for index in range(len(old)):
        removed = min(max(surplus, 0), desired[index])
        desired[index] -= removed
        surplus -= removed
    return desired


def recreate_step(
    replicas: int, new: ReplicaCounts | None, old: Sequence[ReplicaCounts]
) -> list[int]:
    """The next replicas under `Recreate`: the new set starts when no old pod is left."""
    if any(each.desired for each in old) or any(each.pods for each in old):
        return [new.desired if new else 0, *(0 for _ in old)]
    return [replicas, *(0 for _ in old)]


def scale_proportionally(replicas: int, desired: Sequence[int], surge: int) -> list[int]:
    """The replicas of all sets after a deployment was scaled during a rollout.

    The largest set takes the remainder of the rounding.
    """
    total = sum(desired)
    allowed = replicas + surge if replicas > 0 else 0
    if total in {0, allowed}:
        return list(desired)
    scaled = [each * allowed // total for each in desired]
    remainder = allowed - sum(scaled)
    largest = max(range(len(scaled)), key=scaled.__getitem__)
    scaled[largest] += remainder
    return scaled
