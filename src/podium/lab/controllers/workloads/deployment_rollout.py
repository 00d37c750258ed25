"""How many replicas each replica set of a deployment gets next: numbers in, numbers out.

Upstream: pkg/controller/deployment (rolling.go, recreate.go, util/deployment_util.go).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Any, NamedTuple


class Standing(NamedTuple):
    """One replica set: what it was told, how many pods it has and how many are available."""

    wish: int
    pods: int
    available: int


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a rollout may go beyond and below the wished number."""

    surge: int
    unavailable: int


def limits(replicas: int, strategy: Any) -> Limits:
    """The limits of a rolling update; not both can be 0. The defaults are a quarter."""
    rolling = (strategy or {}).get("rollingUpdate") or {}
    surge = resolved(rolling.get("maxSurge", "25%"), replicas, up=True)
    unavailable = resolved(rolling.get("maxUnavailable", "25%"), replicas, up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Limits(surge, min(unavailable, replicas))


def resolved(amount: Any, total: int, *, up: bool) -> int:
    """A number, or a percentage of *total*."""
    if isinstance(amount, str) and amount.endswith("%"):
        share = int(amount[:-1]) * total / 100
        return ceil(share) if up else floor(share)
    return int(amount)


def rolled(replicas: int, new: Standing, old: Sequence[Standing], bounds: Limits) -> list[int]:
    """The next wishes: of the new set, then of the old ones. One step, up before down."""
    wishes = [new.wish, *(each.wish for each in old)]
    more = _scaled_up(replicas, new.wish, sum(wishes), bounds)
    if more != new.wish:
        return [more, *wishes[1:]]
    return [new.wish, *_scaled_down(replicas, new, old, bounds)]


def _scaled_up(replicas: int, wish: int, total: int, bounds: Limits) -> int:
    if wish > replicas:
        return replicas
    room = replicas + bounds.surge - total
    return wish + max(min(room, replicas - wish), 0)


def _scaled_down(
    replicas: int, new: Standing, old: Sequence[Standing], bounds: Limits
) -> list[int]:
    """Old sets: first pods that do not run anyway, then as many as may be unavailable."""
    total = new.wish + sum(each.wish for each in old)
    least = replicas - bounds.unavailable
    coming = new.wish - new.available
    spare = total - least - coming
    wishes = [each.wish for each in old]
    if spare <= 0 or not any(wishes):
        return wishes
    for place, each in enumerate(old):
        broken = min(spare, each.wish - each.available)
        if broken > 0:
            wishes[place] -= broken
            spare -= broken
    spare = min(spare, sum(each.available for each in (new, *old)) - least)
    for place in range(len(old)):
        gone = min(max(spare, 0), wishes[place])
        wishes[place] -= gone
        spare -= gone
    return wishes


def recreated(replicas: int, new: Standing | None, old: Sequence[Standing]) -> list[int]:
    """The next wishes when everything old has to be gone first."""
    if any(each.wish for each in old) or any(each.pods for each in old):
        return [new.wish if new else 0, *(0 for _ in old)]
    return [replicas, *(0 for _ in old)]


def spread(replicas: int, wishes: Sequence[int], surge: int) -> list[int]:
    """Sets of a deployment that was scaled while rolling out, each in proportion.

    The first takes what is left over by rounding.
    """
    total = sum(wishes)
    allowed = replicas + surge if replicas > 0 else 0
    if total in {0, allowed}:
        return list(wishes)
    scaled = [each * allowed // total for each in wishes]
    rest = allowed - sum(scaled)
    biggest = max(range(len(scaled)), key=scaled.__getitem__)
    scaled[biggest] += rest
    return scaled
