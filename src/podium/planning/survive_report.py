"""The losses of all domains as text: one row per domain, then what is left without a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from podium.planning.plan_report import Line, bold, table, warning
from podium.render.plain import counted

if TYPE_CHECKING:
    from podium.planning.survive import DomainLoss, Shortfall, Survival

#: How many groups of pods and how many shortfalls are listed for each domain.
_MOST_ROWS: Final = 20


def report(survival: Survival) -> Iterator[Line]:
    """The lines of the report with their styles."""
    worst = sum(bool(each.left) for each in survival.domains)
    every = counted(len(survival.domains), "domain")
    yield (
        f"{survival.profile}: {survival.label}: {worst} of {every} would leave pods without a node",
        bold(),
    )
    if survival.interrupted:
        yield "interrupted: the other domains were not tried", warning()
    if survival.pending_before:
        count = counted(len(survival.pending_before), "pod")
        yield f"{count} without a node even if nothing is lost", {}
    if survival.unlabelled:
        yield f"{counted(survival.unlabelled, 'node')} without the label, never lost", {}
    header = (
        "LOST", "NODES", "PODS", "PLACED ANEW", "WITHOUT A NODE", "EVICTED",
        "BUDGETS BELOW", "WORKLOADS BELOW",
    )  # fmt: skip
    rows = [
        (
            each.value,
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
    for each in survival.domains:
        yield from _details(each)


def _below(shortfalls: list[Shortfall]) -> str:
    """How many ask for more at once, and how many still do after rescheduling."""
    after = sum(each.after < each.wanted for each in shortfalls)
    return f"{len(shortfalls)} at once, {after} after"


def _details(loss: DomainLoss) -> Iterator[Line]:
    groups = Counter((each.workload or each.pod, each.reason) for each in loss.left)
    rows = [(name, str(count), reason) for (name, reason), count in groups.most_common(_MOST_ROWS)]
    header = (f"WITHOUT A NODE WHEN {loss.value} IS LOST", "PODS", "REASON")
    yield from table(header, rows, warning())
    if len(groups) > _MOST_ROWS:
        yield f"and {len(groups) - _MOST_ROWS} more groups; -o json has all", {}
    below = [each for each in (*loss.budgets, *loss.workloads) if each.after < each.wanted]
    yield from table(
        (f"BELOW WHEN {loss.value} IS LOST", "WANTED", "AT ONCE", "AFTER"),
        [
            (each.name, str(each.wanted), str(each.at_once), str(each.after))
            for each in below[:_MOST_ROWS]
        ],
        warning(),
    )
