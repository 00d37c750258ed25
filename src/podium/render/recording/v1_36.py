"""Decisions in the format of recordings of kube-scheduler v1.36."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from podium.engine.rules.devices.plugin import NAME as DEVICES
from podium.engine.rules.volumes.binding import VOLUME_BINDING
from podium.objects.kinds.devices import EXTENDED_RESOURCE_CLAIM
from podium.render.recording.v1_13 import KINDS_OF_POLICIES, scenario_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.cluster.claims import ClaimWrites
    from podium.cluster.simulation import Step
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.rule import Refused
    from podium.objects.kinds.devices import ResourceClaim
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects

#: The kinds of objects of a scenario, in the order in which they are written.
KINDS: Final = (
    "Namespace",
    *KINDS_OF_POLICIES,
    "CSINode",
    "CSIDriver",
    "CSIStorageCapacity",
    "VolumeAttachment",
    "DeviceClass",
    "ResourceSlice",
    "DeviceTaintRule",
    "ResourceClaim",
)
UNSCHEDULABLE, UNRESOLVABLE = "Unschedulable", "UnschedulableAndUnresolvable"
ERROR = "Error"
#: In place of the uid of a share, which is random in kube-scheduler.
SHARE = "<share>"


def scenario(objects: Objects, pending: Sequence[Pod], steps: Sequence[Step]) -> dict[str, Any]:
    """A scenario without its configuration."""
    made = [step(each) for each in steps]
    return scenario_document(objects, pending, {"steps": made}, KINDS)


def step(made: Step) -> dict[str, Any]:
    """One attempt as a step."""
    decision = made.decision
    found: dict[str, Any] = {"pod": decision.pod}
    if made.attempt > 1:
        found["retry"] = True
    if decision.held is not None:
        return {**found, "preenqueue": _status(decision.held), "feasible": []}
    if decision.error and decision.nodes:
        found |= _error(decision)
    else:
        found |= _verdict(decision, made.pod.namespace)
    if made.claims is not None:
        found |= _claims(made.claims)
    return found


def _verdict(decision: Decision, namespace: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if decision.refused is not None:
        found["prefilter"] = _status(decision.refused)
    found["feasible"] = list(decision.feasible)
    failed = _failed(decision)
    if failed and decision.nominated is None:
        found["failed"] = failed
    if decision.nominated is not None:
        found["nominated"] = decision.nominated
    if decision.node is not None:
        found |= {"placed": decision.node, **_ranking(decision), **_volumes(decision, namespace)}
    else:
        found["message"] = decision.message
    if decision.post_code:
        found["preempt"] = _preempt(decision)
    return found


def _error(decision: Decision) -> dict[str, Any]:
    """An attempt that ended in an error: on some nodes, before them, in scores, or while binding.

    Of an error in scores the real program does not tell the plugin apart from its text.
    """
    texts = sorted(set(decision.node_errors.values())) or [decision.error]
    found: dict[str, Any] = {
        "error": {"plugin": decision.failed_plugin, "code": ERROR, "reasons": texts},
        "feasible": list(decision.feasible),
    }
    if decision.node_errors:
        found["failed"] = {
            name: {"plugin": decision.failed_plugin, "code": ERROR, "reasons": [text]}
            for name, text in decision.node_errors.items()
        }
    elif decision.feasible:
        failed = _failed(decision)
        if decision.best:
            found |= _ranking(decision)
        if failed:
            found["failed"] = failed
    return found


def _claims(writes: ClaimWrites) -> dict[str, Any]:
    """The claims that were written, as they are afterwards."""
    found: dict[str, Any] = {}
    if writes.claims:
        found["claims"] = {
            key: None if claim is None else _claim(claim) for key, claim in writes.claims.items()
        }
    if writes.extended is not None:
        found["extended"] = msgspec.to_builtins(writes.extended)
    return found


def _claim(claim: ResourceClaim) -> dict[str, Any]:
    found: dict[str, Any] = {}
    allocation = claim.status.allocation
    if allocation is not None:
        shown = msgspec.to_builtins(replace(allocation, allocation_timestamp=None))
        for result in shown.get("devices", {}).get("results", ()):
            if "shareID" in result:
                result["shareID"] = SHARE
        found["allocation"] = shown
    if claim.status.reserved_for:
        found["reservedFor"] = msgspec.to_builtins(claim.status.reserved_for)
    if claim.metadata.finalizers:
        found["finalizers"] = list(claim.metadata.finalizers)
    if (claim.metadata.annotations or {}).get(EXTENDED_RESOURCE_CLAIM) == "true":
        found["requests"] = msgspec.to_builtins(claim.spec.devices.requests)
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


def _ranking(decision: Decision) -> dict[str, Any]:
    found: dict[str, Any] = {"best": list(decision.best)}
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
        # Left out of recordings where they tell no nodes apart.
        if column.name not in (DEVICES, VOLUME_BINDING.name) or column.raw.any()
    }
    return found


def _volumes(decision: Decision, namespace: str) -> dict[str, Any]:
    plan = decision.volumes
    if plan is None:
        return {}
    bind = {f"{namespace}/{claim}": volume for claim, volume in plan.bind.items()}
    provision = sorted(f"{namespace}/{claim}" for claim in plan.provision)
    volumes = {"bind": bind, "provision": provision}
    return {"volumes": {key: value for key, value in volumes.items() if value}}


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
