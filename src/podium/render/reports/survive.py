"""The losses of all domains as text: one row per domain, then what is left without a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from podium.render.columns import BOLD, YELLOW, Line, table
from podium.render.plain import common_suffix, counted

if TYPE_CHECKING:
    from podium.what_if.survive.survival import DomainLoss, Shortfall, Survival

#: How many groups of pods and how many shortfalls are listed for each domain.
_MOST_ROWS: Final = 20
#: For how many domains they are listed.
_MOST_DOMAINS: Final = 10


def report(survival: Survival) -> Iterator[Line]:
    """The lines of the report with their styles."""
    worst = sum(bool(each.left) for each in survival.domains)
    every = counted(len(survival.domains), "domain")
    yield (
        f"{survival.profile}: {survival.label}: {worst} of {every} would leave pods without a node",
        BOLD,
    )
    if survival.interrupted:
        yield "interrupted: the other domains were not tried", YELLOW
    if survival.pending_before:
        count = counted(len(survival.pending_before), "pod")
        yield f"{count} without a node even if nothing is lost", {}
    if survival.unlabelled:
        yield f"{counted(survival.unlabelled, 'node')} without the label, never lost", {}
    suffix = common_suffix(each.value for each in survival.domains)
    if suffix:
        yield f"names end in {suffix}, which is left out", {}
    header = (
        "LOST", "NODES", "PODS", "PLACED ANEW", "WITHOUT A NODE", "EVICTED",
        "BUDGETS BELOW", "WORKLOADS BELOW",
    )  # fmt: skip
    rows = [
        (
            each.value.removesuffix(suffix),
            str(each.nodes),
            str(each.pods),
            str(each.replaced),
            str(len(each.left)),
            str(len(each.evicted)),
            _below(each.budgets),
            _below(each.workloads),
        )
        for each in survival.domains
    ]
    yield from table(header, rows)
    worst_first = [each for each in survival.domains if _has_details(each)]
    for each in worst_first[:_MOST_DOMAINS]:
        yield from _details(each)
    if len(worst_first) > _MOST_DOMAINS:
        yield "", {}
        yield f"and {len(worst_first) - _MOST_DOMAINS} more losses like these; -o json has all", {}


def _below(shortfalls: list[Shortfall]) -> str:
    """How many ask for more at once, and how many still do after rescheduling."""
    after = sum(each.after < each.wanted for each in shortfalls)
    return f"{len(shortfalls)} at once, {after} after"


def _has_details(loss: DomainLoss) -> bool:
    return bool(loss.left) or any(
        each.after < each.wanted for each in (*loss.budgets, *loss.workloads)
    )


def _details(loss: DomainLoss) -> Iterator[Line]:
    """One line for each workload and reason, the highest priority first."""
    groups: Counter[tuple[int, str, str]] = Counter()
    for each in loss.left:
        reason = f"not known: it depends on {each.unknown}" if each.unknown else each.reason
        groups[each.priority, each.workload or each.pod, reason] += 1
    ordered = sorted(groups.items(), key=lambda item: (-item[0][0], -item[1], item[0]))
    rows = [
        (name, str(count), str(priority), reason)
        for (priority, name, reason), count in ordered[:_MOST_ROWS]
    ]
    header = (f"WITHOUT A NODE WHEN {loss.value} IS LOST", "PODS", "PRIORITY", "REASON")
    yield from table(header, rows, YELLOW)
    if len(groups) > _MOST_ROWS:
        yield f"and {len(groups) - _MOST_ROWS} more groups; -o json has all", {}
    below = [each for each in (*loss.budgets, *loss.workloads) if each.after < each.wanted]
    yield from table(
        (f"BELOW WHEN {loss.value} IS LOST", "WANTED", "AT ONCE", "AFTER"),
        [
            (each.name, str(each.wanted), str(each.at_once), str(each.after))
            for each in below[:_MOST_ROWS]
        ],
        YELLOW,
    )
