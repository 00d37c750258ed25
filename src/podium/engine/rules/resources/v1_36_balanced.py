"""NodeResourcesBalancedAllocation: prefers nodes whose resources become more evenly used.

Not the balance counts but its change: a skewed node that gets less skewed beats an even one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from podium.engine.framework.rule import Scope
from podium.engine.rules.plugins import ScorePlugin
from podium.engine.state.accounting import NATIVE
from podium.engine.state.pod_requests import pod_requests, rounded
from podium.objects.resource_names import is_scalar

if TYPE_CHECKING:
    from podium.engine.rows.many import Rows
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import Flags, Ints
    from podium.engine.state.view import View


class NodeResourcesBalancedAllocation(ScorePlugin):
    """50 plus half of (50 plus the change in balance)."""

    name = "NodeResourcesBalancedAllocation"
    always = Scope.PODS

    def __init__(self, resources: tuple[str, ...] = ("cpu", "memory")) -> None:
        self.resources = resources

    def skips(self, pod: Incoming, at: Rows) -> bool:  # noqa: ARG002
        """The pod requests none of the resources."""
        wanted = _wanted(pod.cls)
        return not any(wanted.get(name, 0) for name in self.resources)

    def uniform(self, pod: Incoming, view: View) -> int | None:  # noqa: ARG002
        """Left out."""
        return 0 if self.skips(pod, None) else None

    def room_only(self, cls: PodClass) -> bool:  # noqa: ARG002
        """Nothing but numbers."""
        return True

    def score(self, pod: Incoming, at: Rows) -> Ints:
        """From the balance before and after."""
        before, after, counted = [], [], []
        for name in self.resources:
            wanted = _wanted(pod.cls).get(name, 0)
            column = at.view.resources.get(name)
            if column is None or (name not in NATIVE and (not wanted or not is_scalar(name))):
                continue
            capacity, used = at.allocatable(column), at.requested(column)
            present = capacity != 0
            before.append(at.where(present, _share(at, used, capacity), 0.0))
            after.append(at.where(present, _share(at, at.wrap(used + wanted), capacity), 0.0))
            counted.append(present)
        change = _balance(at, after, counted) - _balance(at, before, counted)
        return 50 + at.divide(50 + change, 2)


def _share(at: Rows, used: Ints, capacity: Ints) -> Any:
    share = at.ratio(used, capacity)
    return at.where(share > 1, 1.0, share)


def _balance(at: Rows, shares: list[Any], counted: list[Flags]) -> Ints:
    """100 for equal shares, less the more they deviate."""
    if len(shares) < 2:
        return at.full(100)
    number = sum(flag * 1 for flag in counted)
    if len(shares) == 2:
        both = abs(shares[0] - shares[1]) / 2
        deviation = at.where(number == 2, both, 0.0)
    else:
        deviation = _deviation(at, shares, counted, number)
    return at.truncate((1 - deviation) * 100.0)


def _deviation(at: Rows, shares: list[Any], counted: list[Flags], number: Ints) -> Any:
    some = at.where(number == 0, 1, number)
    total = at.full(0) * 1.0
    for share in shares:
        total = total + share
    mean = total / some
    squares = at.full(0) * 1.0
    for share, flag in zip(shares, counted, strict=True):
        squares = squares + at.where(flag, (share - mean) * (share - mean), 0.0)
    several = np.sqrt(squares / some)
    # Of two, half their distance: the same number, computed as the real program does.
    first, last = _extremes(at, shares, counted)
    pair = abs(first - last) / 2
    return at.where(number < 2, 0.0, at.where(number == 2, pair, several))


def _extremes(at: Rows, shares: list[Any], counted: list[Flags]) -> tuple[Any, Any]:
    low, high = at.full(2) * 1.0, at.full(-1) * 1.0
    for share, flag in zip(shares, counted, strict=True):
        low = at.where(flag & (share < low), share, low)
        high = at.where(flag & (share > high), share, high)
    return low, high


def _wanted(cls: PodClass) -> dict[str, int]:
    """What the pod requests, without floors."""
    return cls.once("balanced requests", lambda: _requests(cls))


def _requests(cls: PodClass) -> dict[str, int]:
    exact = pod_requests(cls.sample, status=True)
    return {name: rounded(name, number) for name, number in exact.items()}
