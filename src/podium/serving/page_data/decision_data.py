"""A decision for the pages: the data of `podium explain -o json`, and the sentences about it.

With it go the pods and the last cycle of its pod group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from podium.library.documentation import reason_anchor
from podium.library.explanation import Explanation
from podium.render.decision import sentences
from podium.render.decision.analysis import ranking, rejection_groups, score_gaps
from podium.render.decision.causes import (
    cause_lines,
    causes_of_groups,
    no_candidate_lines,
    victim_cause_text,
)
from podium.render.decision.sentences import node_table_data
from podium.render.plain import counted
from podium.serving.page_data.waiting import waiting_data

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from podium.cluster.queue.queue import SchedulingQueue
    from podium.engine.framework.decision import Decision
    from podium.engine.state.view import View
    from podium.serving.page_data.activity import WaitingPod

Data = dict[str, Any]

#: The source of a decision: kept from the attempt, made again now, made for a manifest, or derived
#: from a history.
RECORDED, NOW, DRY_RUN, HISTORY = "recorded", "now", "dry-run", "history"
_CANDIDATES: Final = 200
#: How many lines of causes a group of rejections has, and how many nodes each names.
_MOST_CAUSES: Final = 20
_NAMED: Final = 3


def decision_data(
    decision: Decision,
    *,
    source: str,
    ties: str,
    max_score: int,
    never: bool = False,
    actual: str | None = None,
    notes: Iterable[str] = (),
) -> Data:
    """Everything the decision page shows.

    *ties* is the way ties are broken, *never* says that the pod does not preempt, *actual* is the
    node it runs on, if it does. *notes* are what a reader has to know beside the decision.
    """
    explanation = Explanation(
        decision,
        pods=0,
        ties=ties,
        max_score=max_score,
        actual=actual,
        never_preempts=never,
        notes=list(notes),
        trace=decision.trace,
    )
    found = explanation.as_json() | {
        "source": source,
        "recorded": len(decision.examined) > 0 or bool(decision.error or decision.held),
        "headline": sentences.headline(decision),
        "because": sentences.reason_for_choice(decision, ties),
        "stoppedEarly": sentences.unexamined_nodes(decision),
        "separation": _separation(decision),
    }
    found |= node_table_data(decision, max_score)
    groups = rejection_groups(decision)
    grouped = zip(found["rejections"], causes_of_groups(decision, groups), strict=True)
    for entry, causes in grouped:
        # The page shows these lines; the causes of thousands of nodes would only be read here.
        entry.pop("causes", None)
        entry["anchors"] = [reason_anchor(reason) for reason in entry["reasons"]]
        entry["causeLines"] = [
            {"text": line.text, "count": len(line.nodes), "nodes": list(line.nodes[:_NAMED])}
            for line in cause_lines(causes, _MOST_CAUSES)
        ]
    for step in found["trace"]["filters"] if "trace" in found else ():
        step["nodes"] = []  # they are among the rejections
    if decision.tied > 1:
        found["tie"] = _tie(decision, ties)
    if decision.node is None:
        found["hopeless"] = _hopeless(decision, never=never)
        if decision.preemption is not None:
            found["preemption"] |= _preemption(decision)
    if actual is not None and source != RECORDED:
        found["actually"] = sentences.compare_with_actual(decision, actual)
    return found


def _tie(decision: Decision, ties: str) -> str:
    """How one of the tied nodes was chosen, and what the next tie will choose."""
    equals = f"{counted(decision.tied, 'node')} share the best total, numbered in node order"
    taken = f"{equals}; {sentences.tie_break(decision, ties)}."
    if ties != "round-robin":
        return taken
    return f"{taken} Every choice among several nodes moves the counter on by one."


def _separation(decision: Decision) -> Data | None:
    """The priorities that put the chosen node ahead of the second best."""
    if decision.totals is None or decision.node is None or len(decision.feasible) < 2:
        return None
    first, second = ranking(decision)[:2]
    return {
        "node": decision.feasible[first],
        "next": decision.feasible[second],
        "gaps": [
            {"priority": gap.priority, "weight": gap.weight, "points": gap.points}
            for gap in score_gaps(decision, first, second)
        ],
    }


def _hopeless(decision: Decision, *, never: bool) -> str:
    """Why preemption does not help, where it does not."""
    preemption = decision.preemption
    if preemption is not None and preemption.node is not None:
        return ""
    return sentences.why_no_preemption(decision, never=never)


def _preemption(decision: Decision) -> Data:
    """The candidate nodes with their victims, the chosen one first, and why it was chosen."""
    preemption = decision.preemption
    assert preemption is not None
    names = sentences.sorted_by_cost(preemption.candidates, preemption.node)
    causes = decision.preemption_causes
    explained = causes.candidates if causes is not None else ()
    why = {
        (each.node, victim.pod): victim_cause_text(victim)
        for each in explained
        for victim in each.victims
    }
    others = causes.no_candidates if causes is not None else ()
    return {
        "noCandidates": [
            {"text": line.text, "count": len(line.nodes), "nodes": list(line.nodes[:_NAMED])}
            for line in no_candidate_lines(others, _MOST_CAUSES)
        ],
        "criterionWords": sentences.criterion_text(preemption) if preemption.node else "",
        "candidateCount": len(names),
        "candidates": [
            {
                "node": name,
                "victims": [
                    {"pod": pod, "priority": priority, "why": why.get((name, pod), "")}
                    for pod, priority in zip(victims.pods, victims.priorities, strict=True)
                ],
                "pdbViolations": victims.violations,
                "cost": list(sentences.eviction_cost(victims)),
            }
            for name in names[:_CANDIDATES]
            for victims in [preemption.candidates[name]]
        ],
    }


def group_data(
    view: View,
    queue: SchedulingQueue,
    key: str,
    waiting: Sequence[WaitingPod],
    cycle: Data | None,
) -> Data | None:
    """Everything the page of a group shows; None if neither the group nor a pod is there.

    *waiting* are its pods without a node, *cycle* is its last cycle, where one is known.
    """
    namespace, _, name = key.partition("/")
    group = view.catalog.pod_groups.get(name, namespace)
    placed = {
        each.resident.key: view.nodes.names[each.resident.row]
        for each in view.pods.groups.placed(key)
    }
    left = [each for each in waiting if each.pod.key not in placed]
    if group is None and not placed and not left:
        return None
    found: Data = {
        "group": key,
        "placed": len(placed),
        "members": [
            *({"pod": pod, "node": node, "reason": ""} for pod, node in placed.items()),
            *({"pod": each.pod.key, "node": None, "reason": each.reason} for each in left),
        ],
        "cycle": cycle,
        "waiting": waiting_data(queue, left[0].pod.key) if left else None,
    }
    if group is not None:
        condition = group.condition()
        found |= {
            "policy": "gang" if group.is_gang else "basic",
            "minCount": group.min_count,
            "missing": max(group.min_count - len(placed), 0),
            "priority": group.priority,
            "evictedTogether": group.evicted_together,
        }
        if condition is not None:
            found["condition"] = {"status": condition.status, "reason": condition.reason}
    return found
