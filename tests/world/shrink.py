"""Makes a plan that shows a failure smaller: fewer faults, fewer changes, fewer replicas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from msgspec.structs import replace

from world.plan import Plan
from world.run import run_plan

T = TypeVar("T")


def shrunk(
    plan: Plan,
    fails: Callable[[Plan], bool] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Plan:
    """The smallest plan that was found to fail; *fails* says whether one does."""
    fails = fails or (lambda each: bool(run_plan(each).findings))
    while True:
        for smaller in _smaller(plan):
            if fails(smaller):
                plan = smaller
                progress(f"{len(plan.changes)} changes, {len(plan.faults)} faults")
                break
        else:
            return plan


def _smaller(plan: Plan) -> Iterator[Plan]:
    """Plans that are a little simpler, those with the largest step first."""
    for faults in _without_some(plan.faults):
        yield replace(plan, faults=faults)
    for changes in _without_some(plan.changes):
        yield replace(plan, changes=changes)
    if len(plan.rates) > 1:
        yield replace(plan, rates=plan.rates[:1])
    if any(rate != 1.0 for rate in plan.rates):
        yield replace(plan, rates=(1.0,) * len(plan.rates))
    if plan.extender:
        yield replace(plan, extender=())
    if plan.latency:
        yield replace(plan, latency=0.0)
    if plan.nodes > 1:
        yield replace(plan, nodes=plan.nodes - 1)


def _without_some(items: Sequence[T]) -> Iterator[tuple[T, ...]]:
    """Without one half of them, then without smaller parts, down to single ones."""
    size = len(items)
    while size > 0:
        for start in range(0, len(items), size):
            yield (*items[:start], *items[start + size :])
        size //= 2
