"""Sentences about decisions, for all outputs that are read by people."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from podium.engine.preemption import criteria
from podium.releases import release_of
from podium.render.decision.analysis import ranking, score_gaps
from podium.render.decision.causes import ScoreLine, cause_text, causes_of_node, score_lines
from podium.render.plain import counted, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from podium.engine.framework.decision import Decision, Preemption, Victims
    from podium.render.decision.analysis import NodeReport, RejectionGroup

_WORD: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+")
#: How many contributions a sentence names.
_MOST_NAMED: Final = 3
#: For how many nodes the numbers behind scores are shown.
_SCORED: Final = 10
_ORDINALS: Final = {1: "st", 2: "nd", 3: "rd"}


def short(priority: str) -> str:
    """The name of a priority without its ending `Priority`."""
    return priority.removesuffix("Priority") or priority


def times(weight: int) -> str:
    """A weight as a factor, with a multiplication sign before it."""
    return f"\N{MULTIPLICATION SIGN}{weight}"


def split_name(priority: str) -> list[str]:
    """The words in the name of a priority: `Least`, `Requested`."""
    if "://" in priority:
        # An extender is named by its address: the host, and the path below it.
        host, _, path = priority.partition("://")[2].partition("/")
        return [host, f"/{path}"] if path else [host]
    return _WORD.findall(short(priority)) or [priority]


def ordinal(number: int) -> str:
    """A number as an ordinal: 1st, 2nd, 3rd, 4th."""
    teen = 10 <= number % 100 <= 20
    return f"{number}{'th' if teen else _ORDINALS.get(number % 10, 'th')}"


def rule_names(decision: Decision) -> tuple[str, str]:
    """What rules that filter and rules that score are called in the profile's generation."""
    release = release_of(decision.profile.partition(" ")[0])
    if release is not None and release.configured_by == "Policy":
        return "predicate", "priority"
    return "plugin", "plugin"


def group_rules(group: RejectionGroup) -> str:
    """The predicate of a group; all of them where several rejected its nodes."""
    return ", ".join(dict.fromkeys(name for name, _ in group.by_rule)) or group.predicate


def group_reasons(group: RejectionGroup, others: Sequence[RejectionGroup]) -> str:
    """The reasons of a group; two groups with the same reasons differ in whether evictions help."""
    text = ", ".join(group.reasons)
    if group.by_rule:
        parts = (f"{name}: {', '.join(reasons)}" for name, reasons in group.by_rule)
        text = "; ".join(parts)
    twins = [g for g in others if (g.predicate, g.reasons) == (group.predicate, group.reasons)]
    if len(twins) > 1 and not group.curable:
        return f"{text} (evicting pods would not help)"
    return text


def headline(decision: Decision) -> str:
    """The outcome in one sentence."""
    if decision.error:
        return f"the attempt to schedule {decision.pod} failed: {decision.error}"
    if decision.node is not None:
        return f"{decision.pod} goes to {decision.node}"
    if decision.group_message and (text := _with_group(decision)):
        return text
    if decision.held is not None:
        return f"{decision.pod} is held back by {decision.held.plugin}"
    preemption = decision.preemption
    if preemption is not None and preemption.node is not None:
        return f"{decision.pod} fits nowhere now, but evicting pods from {preemption.node} helps"
    return f"{decision.pod} fits nowhere"


def _with_group(decision: Decision) -> str:
    """The outcome of a pod that has no node because of its group; empty if it fits nowhere."""
    if decision.feasible_count:
        return f"{decision.pod} fits, but has no node because its group does not fit"
    if not decision.histogram and decision.refused is None:
        return f"{decision.pod} was not tried: its group does not fit"
    return ""


def reason_for_choice(decision: Decision, ties: str) -> str:
    """Why this node was chosen, or why none was, in one sentence."""
    if decision.error:
        return ""
    if decision.node is None:
        return decision.message
    if decision.nominated is not None and decision.nominated == decision.node:
        return "the node was promised to it: it is looked at before all others, and the pod fits"
    if decision.feasible_count == 1:
        others = decision.nodes - 1
        return f"of {decision.nodes} nodes, only this one fits" if others else "it is the only node"
    if decision.tied > 1:
        return f"{tie(decision)}; {tie_break(decision, ties)}"
    return f"{counted(decision.feasible_count, 'node')} fit, and {lead(decision)}"


def tie(decision: Decision) -> str:
    """How many nodes share the best total."""
    total = "" if decision.totals is None else f", {int(decision.totals.max())}"
    fit = counted(decision.feasible_count, "node")
    return f"{decision.tied} of the {fit} that fit share the best total{total}"


def tie_break(decision: Decision, ties: str) -> str:
    """How one of the nodes with the best total was chosen."""
    if ties == "first":
        return "the first of them in node order is taken"
    if ties == "kube-scheduler":
        return "the one at the root of kube-scheduler's heap is taken"
    if ties.startswith("random:"):
        return f"one of them is chosen at random with seed {ties.partition(':')[2]}"
    place = decision.cursor % decision.tied + 1
    return f"round robin takes the {ordinal(place)} of them (the counter is at {decision.cursor})"


def lead(decision: Decision) -> str:
    """How far the chosen node is ahead of the next one, and by which scores."""
    if decision.totals is None:
        return "it has the best total"
    order = ranking(decision)
    first, second = order[0], order[1]
    best, next_best = int(decision.totals[first]), int(decision.totals[second])
    parts = [
        f"{short(gap.priority)} {gap.points:+d}" for gap in score_gaps(decision, first, second)
    ]
    ahead = f"its total {best} is {best - next_best} more than that of {decision.feasible[second]}"
    return f"{ahead} ({listed(parts, _MOST_NAMED)})" if parts else ahead


def compare_with_actual(decision: Decision, node: str) -> str:
    """How the decision compares with the *node* that the pod runs on."""
    if decision.node == node:
        return f"it runs on {node}, and would go there again"
    if decision.node is None:
        return f"it runs on {node}, but would not be placed there, or anywhere, now"
    return f"it runs on {node}, but would go to {decision.node} now"


def unexamined_nodes(decision: Decision) -> str:
    """How many nodes were not examined because enough were found; empty if all were."""
    left = decision.nodes - (len(decision.codes) or decision.consumed)
    if decision.error or decision.held or decision.refused or left <= 0:
        return ""
    if decision.nominated is not None and decision.nominated == decision.node:
        return f"the other {counted(decision.nodes - 1, 'node')} were not looked at" * (
            decision.nodes > 1
        )
    enough = counted(decision.feasible_count, "node")
    return f"{enough} that fit were enough; {counted(left, 'node')} were not examined"


#: The criterion that chose between the candidates of preemption, by its name in the engine.
_CRITERIA: Final = {
    criteria.NO_VICTIMS: "no pod has to be evicted there any more",
    criteria.ONLY_CANDIDATE: "it is the only node where evicting pods helps",
    criteria.FEWEST_VIOLATIONS.name: "it violates the fewest disruption budgets",
    criteria.LOWEST_FIRST_PRIORITY.name: "the highest priority of its victims is the lowest",
    criteria.LOWEST_PRIORITY_SUM.name: "the sum of the priorities of its victims is the lowest",
    criteria.FEWEST_VICTIMS.name: "it has the fewest victims",
    criteria.LATEST_START.name: "the most important of its victims started last",
    criteria.FIRST_IN_NODE_ORDER: "all criteria are equal, and it is the first in node order",
}


def criterion_text(preemption: Preemption) -> str:
    """Why preemption chose this node among the candidates."""
    return _CRITERIA.get(preemption.criterion, preemption.criterion)


def eviction_cost(victims: Victims) -> tuple[int, int, int, int]:
    """Budget violations, highest priority, sum of priorities and number of victims."""
    priorities = victims.priorities
    top = priorities[0] if priorities else 0
    return (victims.violations, top, sum(priorities), len(priorities))


def sorted_by_cost(candidates: Mapping[str, Victims], chosen: str | None) -> list[str]:
    """The chosen node, then the other candidates in the order of the criteria."""

    def sort_key(name: str) -> tuple[bool, int, int, int, int]:
        violations, top, total, number = eviction_cost(candidates[name])
        return name != chosen, violations, top, total + number * criteria.PRIORITY_OFFSET, number

    return sorted(candidates, key=sort_key)


def preemption_head(preemption: Preemption) -> str:
    """On how many nodes evicting pods was tried, and on how many it would help."""
    tried = counted(len(preemption.potential), "node")
    return f"Preemption: tried on {tried}, would help on {len(preemption.candidates)}"


def candidate_rows(
    preemption: Preemption, most: int
) -> Iterator[tuple[str, int, int, int, int, str]]:
    """A row for each candidate: the node, its costs by criteria, and at most so many victims."""
    for name in sorted_by_cost(preemption.candidates, preemption.node):
        victims = preemption.candidates[name]
        pairs = zip(victims.pods, victims.priorities, strict=True)
        pods = listed([f"{pod} ({priority})" for pod, priority in pairs], most)
        yield (name, *eviction_cost(victims), pods or "none")


def why_no_preemption(decision: Decision, *, never: bool = False) -> str:
    """Why no pods are evicted; *never* if the pod forbids it."""
    preemption = decision.preemption
    if preemption is None:
        decided = decision.error or decision.node or decision.held or decision.refused
        return "" if decided or decision.group_message else "preemption is off"
    if never:
        return "the pod has preemptionPolicy: Never"
    if not preemption.eligible:
        return "the pod waits for pods that are terminating on its nominated node"
    if not preemption.potential:
        return "no node was rejected for a reason that evicting pods could remove"
    tried = counted(len(preemption.potential), "node")
    return f"evicting pods of lower priority was tried on {tried} and helps on none"


def node_sentences(decision: Decision, report: NodeReport) -> list[str]:
    """What the decision says about one node, in sentences."""
    if decision.error:
        return ["the attempt failed before nodes were compared"]
    if report.node == decision.node:
        return ["it is the node that was chosen"]
    if report.verdict is not None:
        rejections = [
            f"{name or 'plugins'} rejected it: {', '.join(reasons)}"
            for name, reasons in report.verdict.by_rule
        ]
        causes = [cause_text(each.cause) for each in causes_of_node(decision, report.node)]
        return [*rejections, *causes, _preemption_there(decision, report)]
    if report.messages:
        return [f"an extender rejected it: {', '.join(report.messages)}"]
    if report.position is None:
        return ["it was not examined: enough nodes that fit were found before it"]
    return [_rank_sentence(decision, report.position)]


def _rank_sentence(decision: Decision, position: int) -> str:
    """How a feasible node compares with the best."""
    if decision.totals is None:
        return "it fits"
    total, best = int(decision.totals[position]), int(decision.totals.max())
    rank = 1 + int((decision.totals > total).sum())
    if total == best:
        return f"it fits, and its total {total} is the best, too; {decision.node} won the tie"
    place = f"{ordinal(rank)} of {decision.feasible_count}"
    return f"it fits, but its total {total} is {best - total} less than the best ({place})"


def _preemption_there(decision: Decision, report: NodeReport) -> str:
    if report.verdict is not None and not report.verdict.curable:
        return "evicting pods there would not help"
    preemption = decision.preemption
    if preemption is None:
        return "evicting pods there might help, but it was not tried"
    victims = preemption.candidates.get(report.node)
    if victims is None:
        return "evicting pods of lower priority there does not help"
    helps = f"evicting {listed(victims.pods, _MOST_NAMED)} there would help"
    if preemption.node == report.node:
        return f"{helps}, and that is what is done: {criterion_text(preemption)}"
    return f"{helps}, but {preemption.node} is chosen: {criterion_text(preemption)}"


def failure_reason(decision: Decision) -> str:
    """Why the pod was not placed; empty if it was."""
    return decision.error or ("" if decision.node is not None else decision.message)


def node_table_data(decision: Decision, max_score: int) -> dict[str, Any]:
    """What the table of nodes shows beside the decision: how each score is computed."""
    lines: list[ScoreLine] = []
    if decision.totals is not None:
        lines = score_lines(decision, ranking(decision)[:_SCORED])
    return {
        "maxScore": max_score,
        "ruleNames": list(rule_names(decision)),
        "scoreLines": [
            {
                "priority": line.priority,
                "weight": line.weight,
                "formula": line.formula,
                "nodes": [{"node": node, "text": text} for node, text in line.nodes],
            }
            for line in lines
        ],
    }
