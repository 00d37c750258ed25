"""A Decision as plain data: `apiVersion: podium/v1`, `kind: Decision`.

The format is stable for programs: `docs/decision.schema.json` defines it and `docs/decision.md`
explains it. Fields may be added, never changed or removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.render.decision import pod_group
from podium.render.decision.analysis import rejection_groups
from podium.render.decision.causes import (
    cause_data,
    causes_of_groups,
    no_candidate_text,
    rule_cause_data,
)
from podium.render.decision.plain_reason import plain_reason

if TYPE_CHECKING:
    from podium.engine.framework.causes import PreemptionCauses
    from podium.engine.framework.decision import Decision, Preemption, ScoreColumn, Victims
    from podium.engine.framework.group_decision import GroupDecision
    from podium.engine.state.reservation import DevicePlan

API_VERSION: Final = "podium/v1"
PLACED, NOMINATED, UNSCHEDULABLE = "placed", "nominated", "unschedulable"
HELD, ERROR = "held", "error"

Data = dict[str, Any]


def to_json(decision: Decision, *, attempt: int = 1, group: GroupDecision | None = None) -> Data:
    """The decision about one attempt at one pod; *group* is the cycle of its pod group.

    Lists of nodes and scores are included if the decision was made with recording.
    """
    found: Data = {
        "apiVersion": API_VERSION,
        "kind": "Decision",
        "pod": decision.pod,
        "uid": decision.uid,
        "profile": decision.profile,
        "attempt": attempt,
        "outcome": outcome(decision),
        "node": decision.node,
    }
    found |= _failure(decision)
    found["nodes"] = {
        "total": decision.nodes,
        "examined": len(decision.codes) or decision.consumed,
        "feasible": decision.feasible_count,
    }
    found["rejections"] = _rejections(decision)
    if decision.feasible:
        found["feasible"] = list(decision.feasible)
    if decision.totals is not None:
        found["scores"] = [_column(decision, column) for column in decision.scores]
        found["totals"] = decision.totals.tolist()
    if decision.tied:
        found["selection"] = _selection(decision)
    if decision.nominated is not None:
        found["nominated"] = decision.nominated
    if decision.volumes is not None:
        bound, made = decision.volumes.bind, decision.volumes.provision
        found["volumes"] = {"bind": dict(bound), "provision": list(made)}
    if decision.devices is not None:
        found["claims"] = _claims(decision.devices)
    if decision.preemption is not None:
        found["preemption"] = _preemption(decision.preemption)
        if decision.preemption_causes is not None:
            _add_preemption_causes(found["preemption"], decision.preemption_causes)
    if group is not None:
        found["podGroup"] = pod_group.as_json(group)
    return found


def _failure(decision: Decision) -> Data:
    """Why the pod was not placed, apart from the rejections of single nodes."""
    found: Data = {}
    if decision.error:
        found["error"] = decision.error
    elif decision.node is None:
        found["message"] = decision.message
        if plain := plain_reason(decision):
            found["plain"] = plain
    for field, refusal in (("held", decision.held), ("refused", decision.refused)):
        if refusal is not None:
            found[field] = {"plugin": refusal.plugin, "reason": refusal.reason}
    return found


def _claims(plan: DevicePlan) -> list[Data]:
    """The claims of the pod, and the devices that each gets with this decision."""
    return [
        {
            "claim": each.claim.key,
            "devices": msgspec.to_builtins(each.allocation.devices.results or [])
            if each.allocation is not None
            else [],
        }
        for each in plan.claims
    ]


def outcome(decision: Decision) -> str:
    """The outcome of the attempt in one word."""
    if decision.error:
        return ERROR
    if decision.node is not None:
        return PLACED
    if decision.held is not None:
        return HELD
    is_nominated = decision.preemption is not None and decision.preemption.node is not None
    return NOMINATED if is_nominated else UNSCHEDULABLE


def _rejections(decision: Decision) -> list[Data]:
    found: list[Data] = []
    groups = rejection_groups(decision)
    for group, causes in zip(groups, causes_of_groups(decision, groups), strict=True):
        entry: Data = {
            "predicate": group.predicate,
            "reasons": list(group.reasons),
            "curable": group.curable,
            "count": group.count,
        }
        if group.extender:
            entry["extender"] = True
        if group.by_rule:
            entry["byRule"] = [
                {"predicate": name, "reasons": list(reasons)} for name, reasons in group.by_rule
            ]
        if group.nodes:
            entry["nodes"] = list(group.nodes)
        if causes:
            entry["causes"] = [cause_data(each) for each in causes]
        found.append(entry)
    return found


def _column(decision: Decision, column: ScoreColumn) -> Data:
    found: Data = {
        "priority": column.name,
        "weight": column.weight,
        "raw": column.raw.tolist(),
        "scores": column.score.tolist(),
    }
    for each in decision.score_causes:
        if each.priority == column.name:
            found["formula"] = each.formula
            found["numbers"] = [msgspec.json.decode(msgspec.json.encode(one)) for one in each.nodes]
    return found


def _selection(decision: Decision) -> Data:
    found: Data = {"tied": decision.tied, "cursor": decision.cursor}
    if decision.best:
        found["best"] = list(decision.best)
    return found


def _preemption(preemption: Preemption) -> Data:
    found: Data = {
        "eligible": preemption.eligible,
        "potentialNodes": list(preemption.potential),
        "candidates": [
            {"node": node, **_victims(victims)} for node, victims in preemption.candidates.items()
        ],
        "node": preemption.node,
        "clearedNominations": [key for _, key in preemption.cleared],
    }
    if preemption.criterion:
        found["criterion"] = preemption.criterion
    if preemption.tie:
        found["tie"] = list(preemption.tie)
    return found


def _add_preemption_causes(found: Data, causes: PreemptionCauses) -> None:
    """Add why nodes are no candidates, and to each victim why it was not reprieved."""
    found["noCandidates"] = [
        {
            "why": each.why,
            "reasons": list(each.reasons),
            "text": no_candidate_text(each),
            "causes": [rule_cause_data(one) for one in each.causes],
            "nodes": list(each.nodes),
        }
        for each in causes.no_candidates
    ]
    explained = {each.node: {v.pod: v for v in each.victims} for each in causes.candidates}
    for candidate in found["candidates"]:
        for victim in candidate["victims"]:
            why = explained.get(candidate["node"], {}).get(victim["pod"])
            if why is not None:
                victim["reasons"] = list(why.reasons)
                victim["causes"] = [rule_cause_data(one) for one in why.causes]
                victim["budgets"] = list(why.budgets)
                if why.workload:
                    victim["workload"] = why.workload


def _victims(victims: Victims) -> Data:
    each = zip(victims.pods, victims.uids, victims.priorities, strict=True)
    return {
        "victims": [{"pod": pod, "uid": uid, "priority": prio} for pod, uid, prio in each],
        "pdbViolations": victims.violations,
    }
