"""Decisions as plain data: `apiVersion: podium/v1`, `kind: Decision`; written, and read again.

The format is stable for programs: `docs/decision.schema.json` defines it and `docs/decision.md`
explains it. Fields may be added, never changed or removed. What another process decided is read, so
that it is shown in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from podium.engine.framework import causes
from podium.engine.framework.decision import Decision, Preemption, ScoreColumn, Victims, fit_message
from podium.engine.framework.rule import Refused
from podium.engine.state.reservation import ClaimPlan, DevicePlan, VolumePlan
from podium.engine.state.verdicts import Verdict, Verdicts
from podium.errors import InputError
from podium.objects.kinds.devices import (
    AllocatedDevice,
    Allocation,
    ClaimMeta,
    DeviceAllocation,
    ResourceClaim,
)
from podium.render.decision import pod_group
from podium.render.decision.analysis import outcome, rejection_groups
from podium.render.decision.causes import (
    cause_data,
    causes_of_groups,
    no_candidate_text,
    rule_cause_data,
)
from podium.render.decision.plain_reason import plain_reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from podium.engine.framework.causes import PreemptionCauses
    from podium.engine.framework.group_decision import GroupDecision

API_VERSION: Final = "podium/v1"

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


def _rejections(decision: Decision) -> list[Data]:
    found: list[Data] = []
    groups = rejection_groups(decision)
    for group, why in zip(groups, causes_of_groups(decision, groups), strict=True):
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
        if why:
            entry["causes"] = [cause_data(each) for each in why]
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


def from_json(data: Data, where: str = "") -> Decision:
    """The decision in *data*; JSON does not hold the order in which nodes were examined."""
    try:
        return _read(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"is not a decision of version {API_VERSION}: {type(error).__name__} {error}"
        raise InputError(what, where=where) from None


def _read(data: Data) -> Decision:
    nodes = data["nodes"]
    made = Decision(
        data["pod"], data["uid"], data["profile"], nodes=nodes["total"], node=data["node"]
    )
    made.error = data.get("error", "")
    made.feasible_count, made.consumed = nodes["feasible"], nodes["examined"]
    made.held, made.refused = _refusal(data.get("held")), _refusal(data.get("refused"))
    made.nominated = data.get("nominated")
    _read_nodes(made, data)
    _read_scores(made, data)
    selection = data.get("selection", {})
    made.tied, made.cursor = selection.get("tied", 0), selection.get("cursor", 0)
    made.best = selection.get("best", ())
    if volumes := data.get("volumes"):
        plan = VolumePlan(dict(volumes["bind"]), tuple(volumes["provision"]))
        made.reservations = {"volumes": plan}
    if claims := data.get("claims"):
        devices = DevicePlan(tuple(map(_claim_plan, claims)))
        made.reservations = {**made.reservations, "devices": devices}
    if preemption := data.get("preemption"):
        made.preemption = _read_preemption(preemption)
        made.preemption_causes = preemption_causes_from_data(preemption)
    if made.node is None and not made.error and made.held is None:
        plain = fit_message(made.nodes, made.reasons)
        made.post_message = data.get("message", "").removeprefix(plain).strip()
    return made


def _claim_plan(data: Data) -> ClaimPlan:
    namespace, _, name = data["claim"].partition("/")
    claim = ResourceClaim(metadata=ClaimMeta(name=name, namespace=namespace))
    results = msgspec.convert(data["devices"], list[AllocatedDevice])
    return ClaimPlan(claim, Allocation(DeviceAllocation(results)) if results else None)


def _refusal(data: Data | None) -> Refused | None:
    return None if data is None else Refused(data["plugin"], data["reason"])


def _read_nodes(made: Decision, data: Data) -> None:
    made.verdicts = Verdicts()
    counts: dict[int, int] = {}
    examined: list[str] = list(data.get("feasible", ()))
    codes = [0] * len(examined)
    by_extenders: dict[str, list[str]] = {}
    for each in data["rejections"]:
        named: Sequence[str] = each.get("nodes", ())
        if each.get("extender"):
            for name in named:
                by_extenders[name] = list(each["reasons"])
            continue
        parts = each.get("byRule", ())
        verdict = Verdict(
            each["predicate"],
            tuple(each["reasons"]),
            each["curable"],
            tuple(dict.fromkeys(part["predicate"] for part in parts)),
            tuple((part["predicate"], tuple(part["reasons"])) for part in parts),
        )
        made.causes += causes_from_data(each.get("causes", ()))
        code = made.verdicts.code(verdict)
        counts[code] = counts.get(code, 0) + each["count"]
        examined += named
        codes += [code] * len(named)
    made.extender_failed, made.histogram = by_extenders, counts
    if examined:
        made.examined, made.codes = examined, np.array(codes, np.int32)


def _read_scores(made: Decision, data: Data) -> None:
    made.feasible = list(data.get("feasible", ()))
    if data.get("totals") is None:
        return
    made.totals = np.array(data["totals"], np.int64)
    made.scores = tuple(
        ScoreColumn(
            each["priority"],
            each["weight"],
            np.array(each["raw"], np.int64),
            np.array(each["scores"], np.int64),
        )
        for each in data["scores"]
    )
    found = map(score_cause_from_data, data["scores"])
    made.score_causes = tuple(each for each in found if each is not None)


def _read_preemption(data: Data) -> Preemption:
    candidates: dict[str, Any] = {}
    for each in data["candidates"]:
        victims = each["victims"]
        candidates[each["node"]] = Victims(
            tuple(victim["pod"] for victim in victims),
            tuple(victim["uid"] for victim in victims),
            tuple(victim["priority"] for victim in victims),
            each["pdbViolations"],
        )
    return Preemption(
        data["eligible"],
        tuple(data["potentialNodes"]),
        candidates,
        data["node"],
        tuple(data.get("tie", ())),
        data.get("criterion", ""),
        tuple(("", key) for key in data["clearedNominations"]),
    )


def causes_from_data(data: Iterable[Mapping[str, Any]]) -> tuple[causes.CausedRejection, ...]:
    """The causes in a decision that was read from JSON; kinds that are not known are skipped."""
    return tuple(
        causes.CausedRejection(each["predicate"], cause, tuple(each["nodes"]))
        for each, cause in _read_causes(data)
    )


def _read_causes(
    data: Iterable[Mapping[str, Any]],
) -> Iterator[tuple[Mapping[str, Any], causes.AnyCause]]:
    for each in data:
        try:
            cause = msgspec.convert(each, causes.AnyCause)
        except msgspec.ValidationError:
            continue
        yield each, cause


def _rule_causes(data: Iterable[Mapping[str, Any]]) -> tuple[causes.RuleCause, ...]:
    return tuple(causes.RuleCause(each["predicate"], cause) for each, cause in _read_causes(data))


def score_cause_from_data(column: Mapping[str, Any]) -> causes.ScoreCause | None:
    """The formula and the numbers of a score column; None if it has none."""
    if "formula" not in column:
        return None
    numbers = msgspec.convert(column["numbers"], tuple[causes.NodeNumbers, ...])
    return causes.ScoreCause(column["priority"], column["formula"], numbers)


def preemption_causes_from_data(data: Mapping[str, Any]) -> causes.PreemptionCauses | None:
    """Why nodes are no candidates and victims were not reprieved; None if unknown."""
    if "noCandidates" not in data:
        return None
    return causes.PreemptionCauses(
        tuple(
            causes.NoCandidate(
                each["why"],
                tuple(each["reasons"]),
                tuple(each["nodes"]),
                _rule_causes(each["causes"]),
            )
            for each in data["noCandidates"]
        ),
        tuple(
            causes.CandidateVictims(
                each["node"],
                tuple(
                    causes.NotReprieved(
                        victim["pod"],
                        victim["priority"],
                        tuple(victim["reasons"]),
                        _rule_causes(victim["causes"]),
                        tuple(victim["budgets"]),
                        victim.get("workload", ""),
                    )
                    for victim in each["victims"]
                ),
            )
            for each in data["candidates"]
            if all("reasons" in victim for victim in each["victims"])
        ),
    )
