"""Decisions in the format of recordings of kube-scheduler v1.36."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.render.recording.v1_13 import scenario_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.cluster.simulation import Step
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.rule import Refused
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects

UNSCHEDULABLE, UNRESOLVABLE = "Unschedulable", "UnschedulableAndUnresolvable"


def scenario(objects: Objects, pending: Sequence[Pod], steps: Sequence[Step]) -> dict[str, Any]:
    """A scenario without its configuration."""
    made = [step(s.decision, s.pod.namespace, retry=s.attempt > 1) for s in steps]
    return scenario_document(objects, pending, {"steps": made})


def step(decision: Decision, namespace: str, *, retry: bool) -> dict[str, Any]:
    """The decision of one attempt as a step; *namespace* is that of the pod and its claims."""
    found: dict[str, Any] = {"pod": decision.pod}
    if retry:
        found["retry"] = True
    if decision.held is not None:
        return {**found, "preenqueue": _status(decision.held), "feasible": []}
    if decision.refused is not None:
        found["prefilter"] = _status(decision.refused)
    found["feasible"] = list(decision.feasible)
    failed = _failed(decision)
    if failed and decision.nominated is None:
        found["failed"] = failed
    if decision.nominated is not None:
        found["nominated"] = decision.nominated
    if decision.node is not None:
        found |= _placed(decision, namespace)
    else:
        found["message"] = decision.message
    if decision.post_code:
        found["preempt"] = _preempt(decision)
    return found


def _status(refused: Refused) -> dict[str, Any]:
    code = UNSCHEDULABLE if refused.curable else UNRESOLVABLE
    return {"plugin": refused.plugin, "code": code, "reasons": [refused.reason]}


def _failed(decision: Decision) -> dict[str, Any]:
    failed = {}
    for name, code in zip(decision.examined, decision.codes.tolist(), strict=True):
        if code:
            verdict = decision.verdict(code)
            failed[name] = {
                "plugin": verdict.predicate,
                "code": UNSCHEDULABLE if verdict.curable else UNRESOLVABLE,
                "reasons": list(verdict.reasons),
            }
    return failed


def _placed(decision: Decision, namespace: str) -> dict[str, Any]:
    found: dict[str, Any] = {"placed": decision.node, "best": list(decision.best)}
    if decision.totals is not None:
        found["total"] = dict(zip(decision.feasible, decision.totals.tolist(), strict=True))
    found["scores"] = {
        column.name: {
            name: {"raw": raw, "normalized": score, "score": score * column.weight}
            for name, raw, score in zip(
                decision.feasible, column.raw.tolist(), column.score.tolist(), strict=True
            )
        }
        for column in decision.scores
    }
    plan = decision.volumes
    if plan is not None:
        bind = {f"{namespace}/{claim}": volume for claim, volume in plan.bind.items()}
        provision = sorted(f"{namespace}/{claim}" for claim in plan.provision)
        volumes = {"bind": bind, "provision": provision}
        found["volumes"] = {key: value for key, value in volumes.items() if value}
    return found


def _preempt(decision: Decision) -> dict[str, Any]:
    found: dict[str, Any] = {"code": decision.post_code}
    if decision.post_message:
        found["message"] = decision.post_message
    preemption = decision.preemption
    if decision.post_code != "Success" or preemption is None or preemption.node is None:
        return found
    found["node"] = preemption.node
    found["victims"] = list(preemption.candidates[preemption.node].pods)
    found["candidates"] = {
        name: {"victims": list(victims.pods), "pdbViolations": victims.violations}
        for name, victims in preemption.candidates.items()
    }
    if preemption.tie:
        found["ties"] = list(preemption.tie)
    if preemption.cleared:
        found["clearedNominations"] = sorted(key for _, key in preemption.cleared)
    return found
