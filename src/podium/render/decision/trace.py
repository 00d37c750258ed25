"""The steps of a decision in words, for terminals and pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.render.plain import counted, format_amount, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.engine.framework.trace import (
        CriterionStep,
        DecisionTrace,
        EvictionWalk,
        FilterAnswer,
        FilterStep,
        NodePasses,
        Prepared,
        ScoreStep,
        Selection,
        TriedPod,
        Working,
    )

PASSED, FAILED, NOT_ASKED = "✓", "✕", "·"
#: How many nodes a line names.
_NAMED: Final = 3


def mark(answer: FilterAnswer) -> str:
    """✓, ✕, or a dot for a rule that was not asked."""
    if answer.fits is None:
        return NOT_ASKED
    return PASSED if answer.fits else FAILED


def answer_text(answer: FilterAnswer) -> str:
    """What a rule said about a node."""
    if answer.fits is None:
        return "not asked"
    return ", ".join(answer.reasons)


def prepared_text(each: Prepared) -> str:
    """What was prepared: `request cpu 500m`."""
    if each.resource:
        return f"{each.resource} {format_amount(each.resource, each.amount)}"
    return each.value


def step_mark(step: FilterStep) -> str:
    """✓, ✕, or a dot for a rule that no node was left for."""
    if not step.asked:
        return NOT_ASKED
    return FAILED if step.rejected else PASSED


def step_text(step: FilterStep) -> str:
    """What a filter rule did to the nodes."""
    if not step.asked:
        return "not asked: no node is left"
    if not step.checks:
        return "nothing to check for this pod"
    if not step.rejected:
        return ""
    reasons = ", ".join(f"{count} {reason}" for reason, count in step.reasons)
    return f"{listed(step.nodes, _NAMED)}: {reasons}"


def order_text(trace: DecisionTrace) -> str:
    """Whether a node that was rejected is asked about again."""
    if trace.asks_all:
        return "every rule is asked about every node, also about those that were rejected"
    return "a node that a rule rejects is not asked about again"


def passes_head(each: NodePasses) -> str:
    """The node, and the pods nominated to it."""
    pods = ", ".join(f"{pod.pod} (priority {pod.priority})" for pod in each.nominated)
    return f"{each.node}: nominated to it: {pods}"


def passes_rows(each: NodePasses) -> Iterator[tuple[str, str, str]]:
    """For each rule: its name, what it said in pass one, and in pass two."""
    second = {answer.rule: answer for answer in each.second}
    for answer in each.first:
        other = second.get(answer.rule)
        first = f"{mark(answer)} {answer_text(answer)}".rstrip()
        again = "" if other is None else f"{mark(other)} {answer_text(other)}".rstrip()
        yield answer.rule, first, again


def passes_notes(each: NodePasses) -> Iterator[str]:
    """What pass one leaves out, and whether there is a pass two."""
    if not each.own_affinity:
        yield (
            "in pass one, nominated pods count for everything but the pod's own affinity and "
            "anti-affinity"
        )
    if not each.second:
        yield "pass one fails, so there is no pass two"


def workings(step: ScoreStep, working: Working) -> Iterator[tuple[str, str]]:
    """Map and Reduce of one node: what it is, and `formula = score`."""
    yield "map", equation(working.map, working.raw)
    if step.reduces:
        yield "reduce", equation(working.reduce, working.score)


def equation(text: str, value: int) -> str:
    """`⌊10 × 5 ÷ 20⌋ = 2`; the number alone if there is nothing to compute."""
    return str(value) if text == str(value) else f"{text} = {value}"


def same_text(step: ScoreStep) -> str:
    """The score of a rule that gives all nodes the same."""
    score = step.nodes[0].score if step.nodes else 0
    return f"{score} for every node; no node is looked at"


def selection_text(found: Selection) -> str:
    """The tie, and what broke it."""
    if found.tied == 1:
        best = "" if found.total is None else f", {found.total}"
        return f"{found.chosen} alone has the best total{best}"
    names = listed(found.nodes, 5)
    shared = "" if found.total is None else f" share the best total, {found.total}"
    tie = f"{found.tied} nodes{shared}: {names}"
    if found.ties == "round-robin":
        place = found.cursor % found.tied
        return (
            f"{tie}; the counter is at {found.cursor}: {found.cursor} mod {found.tied} = {place}, "
            f"which is {found.chosen} (the first is 0)"
        )
    return f"{tie}; {found.ties} takes {found.chosen}"


def eviction_head(walk: EvictionWalk) -> str:
    """All that is taken off the node at first, and whether the pod fits then."""
    off = listed(walk.taken_off, 5) if walk.taken_off else "nothing"
    fits = f"it does not fit even then: {', '.join(walk.still)}" if walk.still else "it fits"
    return f"{walk.node}: {off} taken off ({counted(len(walk.taken_off), 'pod')}); {fits}"


def tried_text(tried: TriedPod) -> str:
    """A pod that is put back: whether it may stay."""
    which = f"{tried.pod} (priority {tried.priority})"
    budgets = f"; protected by {', '.join(tried.budgets)}" if tried.budgets else ""
    if tried.stays:
        return f"{PASSED} {which} is put back and stays{budgets}"
    return f"{FAILED} {which} is put back, does not fit: {', '.join(tried.reasons)}{budgets}"


def criterion_text(step: CriterionStep) -> str:
    """The cost of each candidate, and those that are left."""
    costs = [f"{node} {cost:.0f}" for node, cost in step.costs]
    return f"{step.name}: {listed(costs, 5)}; left: {listed(step.left, 5)}"
