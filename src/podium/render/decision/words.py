"""Decisions in sentences: the headline of an explanation, the one line of a table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from podium.render.decision.reasoning import gaps, ranking
from podium.render.plain import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from podium.engine.framework.decision import Decision, Preemption, Victims
    from podium.render.decision.explanation import Asked
    from podium.render.decision.reasoning import Group

_WORD: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+")
#: How many contributions a sentence names.
_NAMED: Final = 3
_ORDINALS: Final = {1: "st", 2: "nd", 3: "rd"}


def short(priority: str) -> str:
    """A priority's name without the word that all of them end in."""
    return priority.removesuffix("Priority") or priority


def times(weight: int) -> str:
    """A weight, as a factor."""
    return f"\N{MULTIPLICATION SIGN}{weight}"


def split_name(priority: str) -> list[str]:
    """The words of a priority's name: `LeastRequestedPriority` is Least Requested."""
    return _WORD.findall(short(priority)) or [priority]


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th."""
    teen = 10 <= number % 100 <= 20
    return f"{number}{'th' if teen else _ORDINALS.get(number % 10, 'th')}"


def listed(names: Sequence[str], limit: int) -> str:
    """The first names, and how many more there are."""
    if len(names) <= limit:
        return ", ".join(names)
    return f"{', '.join(names[:limit])} and {len(names) - limit} more"


def rule_names(decision: Decision) -> tuple[str, str]:
    """What the profile's generation calls what turns nodes down, and what scores them."""
    if decision.profile.startswith("v1.13"):
        return "predicate", "priority"
    return "plugin", "plugin"


def reasons(group: Group, others: Sequence[Group]) -> str:
    """Why a group was turned down, told apart from one with the same reasons."""
    text = ", ".join(group.reasons)
    twins = [g for g in others if (g.predicate, g.reasons) == (group.predicate, group.reasons)]
    if len(twins) > 1 and not group.curable:
        return f"{text} (evicting pods would not help)"
    return text


def headline(decision: Decision) -> str:
    """Where the pod goes, or that it goes nowhere."""
    if decision.error:
        return f"{decision.pod} cannot be decided: {decision.error}"
    if decision.node is not None:
        return f"{decision.pod} goes to {decision.node}"
    if decision.held is not None:
        return f"{decision.pod} is held back by {decision.held.plugin}"
    preemption = decision.preemption
    if preemption is not None and preemption.node is not None:
        return f"{decision.pod} fits nowhere now, but evicting pods from {preemption.node} helps"
    return f"{decision.pod} fits nowhere"


def because(decision: Decision, ties: str) -> str:
    """Why that node, or why none, in one sentence."""
    if decision.error:
        return ""
    if decision.node is None:
        return decision.message
    if decision.feasible_count == 1:
        others = decision.nodes - 1
        return f"of {decision.nodes} nodes, only this one fits" if others else "it is the only node"
    if decision.tied > 1:
        return f"{equals(decision)}; {chosen_by(decision, ties)}"
    return f"{counted(decision.feasible_count, 'node')} fit, and {best_by(decision)}"


def equals(decision: Decision) -> str:
    """How many nodes are equally good."""
    total = "" if decision.totals is None else f", {int(decision.totals.max())}"
    fit = counted(decision.feasible_count, "node")
    return f"{decision.tied} of the {fit} that fit share the best total{total}"


def chosen_by(decision: Decision, ties: str) -> str:
    """How the choice among equals was made."""
    if ties == "first":
        return "the first of them in node order is taken"
    if ties.startswith("random:"):
        return f"one of them is drawn with seed {ties.partition(':')[2]}"
    place = decision.cursor % decision.tied + 1
    return f"round robin takes the {ordinal(place)} of them (the counter is at {decision.cursor})"


def best_by(decision: Decision) -> str:
    """What puts the winner ahead of the next best."""
    if decision.totals is None:
        return "it has the best total"
    order = ranking(decision)
    first, second = order[0], order[1]
    best, next_best = int(decision.totals[first]), int(decision.totals[second])
    parts = [f"{short(gap.priority)} {gap.points:+d}" for gap in gaps(decision, first, second)]
    ahead = f"its total {best} is {best - next_best} more than that of {decision.feasible[second]}"
    return f"{ahead} ({listed(parts, _NAMED)})" if parts else ahead


def actually(decision: Decision, node: str) -> str:
    """What was decided against where the pod runs."""
    if decision.node == node:
        return f"it runs on {node}, and would go there again"
    if decision.node is None:
        return f"it runs on {node}, but would not be placed there, or anywhere, now"
    return f"it runs on {node}, but would go to {decision.node} now"


def stopped_early(decision: Decision) -> str:
    """How many nodes nobody looked at, if any."""
    left = decision.nodes - (len(decision.codes) or decision.consumed)
    if decision.error or decision.held or decision.refused or left <= 0:
        return ""
    enough = counted(decision.feasible_count, "node")
    return f"{enough} that fit were enough; {counted(left, 'node')} were not looked at"


#: What decided between the nodes that preemption could use, as the engine names it.
_CRITERIA: Final = {
    "no victims": "nobody has to go there any more",
    "only candidate": "it is the only node where evicting pods helps",
    "fewest budget violations": "it breaks the fewest disruption budgets",
    "lowest highest priority": "its most important victim matters least",
    "lowest sum of priorities": "the priorities of its victims add up to the least",
    "fewest victims": "it has the fewest victims",
    "latest start of the most important victims": "the most important of its victims started last",
    "first in node order": "it costs as little as any, and comes first in node order",
}


def criterion(preemption: Preemption) -> str:
    """Why this node was chosen among the candidates."""
    return _CRITERIA.get(preemption.criterion, preemption.criterion)


#: What kube-scheduler adds to each priority before it sums them, so that none is negative.
_LIFT: Final = 1 << 31


def cost(victims: Victims) -> tuple[int, int, int, int]:
    """Budgets broken, top priority, sum, number: what a node costs."""
    priorities = victims.priorities
    top = priorities[0] if priorities else 0
    return (victims.violations, top, sum(priorities), len(priorities))


def by_cost(candidates: Mapping[str, Victims], chosen: str | None) -> list[str]:
    """The nodes, the chosen one first, then as they are compared: each pod adds to the sum."""

    def compared(name: str) -> tuple[bool, int, int, int, int]:
        violations, top, total, number = cost(candidates[name])
        return name != chosen, violations, top, total + number * _LIFT, number

    return sorted(candidates, key=compared)


def hopeless(decision: Decision, *, never: bool = False) -> str:
    """Why evicting pods does not help; *never*: the pod itself forbids it."""
    preemption = decision.preemption
    if preemption is None:
        decided = decision.error or decision.node or decision.held or decision.refused
        return "" if decided else "preemption is off"
    if never:
        return "the pod says preemptionPolicy: Never"
    if not preemption.eligible:
        return "the pod waits for pods that are already leaving the node it was promised"
    if not preemption.potential:
        return "no node was turned down for a reason that would go away with its pods"
    tried = counted(len(preemption.potential), "node")
    return f"evicting pods of lower priority was tried on {tried} and helps on none"


def verdict_on(decision: Decision, asked: Asked) -> list[str]:
    """What the decision says about one node."""
    if decision.error:
        return ["the attempt failed before nodes were compared"]
    if asked.node == decision.node:
        return ["it is the node that was chosen"]
    if asked.verdict is not None:
        said = f"{asked.verdict.predicate} turned it down: {', '.join(asked.verdict.reasons)}"
        return [said, _cure(decision, asked)]
    if asked.messages:
        return [f"an extender turned it down: {', '.join(asked.messages)}"]
    if asked.position is None:
        return ["it was not looked at: enough nodes that fit were found before it"]
    return [_standing(decision, asked.position)]


def _standing(decision: Decision, position: int) -> str:
    """How a node that fits compares with the best."""
    if decision.totals is None:
        return "it fits"
    total, best = int(decision.totals[position]), int(decision.totals.max())
    rank = 1 + int((decision.totals > total).sum())
    if total == best:
        return f"it fits, and its total {total} is the best, too; {decision.node} won the tie"
    place = f"{ordinal(rank)} of {decision.feasible_count}"
    return f"it fits, but its total {total} is {best - total} less than the best ({place})"


def _cure(decision: Decision, asked: Asked) -> str:
    if asked.verdict is not None and not asked.verdict.curable:
        return "evicting pods there would not help"
    preemption = decision.preemption
    if preemption is None:
        return "evicting pods there might help, but it was not tried"
    victims = preemption.candidates.get(asked.node)
    if victims is None:
        return "evicting pods of lower priority there does not help"
    gone = f"evicting {listed(victims.pods, _NAMED)} there would help"
    if preemption.node == asked.node:
        return f"{gone}, and that is what is done: {criterion(preemption)}"
    return f"{gone}, but {preemption.node} is chosen: {criterion(preemption)}"


def reason(decision: Decision) -> str:
    """One line for a table: why it did not fit; empty if it did."""
    return decision.error or ("" if decision.node is not None else decision.message)
