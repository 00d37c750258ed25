"""Decisions read from JSON, so that those of another process are shown in the same way."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

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
from podium.render.decision.as_json import API_VERSION, Data
from podium.render.decision.causes import (
    causes_from_data,
    preemption_causes_from_data,
    score_cause_from_data,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


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
        made.preemption = _preemption(preemption)
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
    made.verdicts, made.histogram = Verdicts(), Counter()
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
        made.histogram[code] += each["count"]
        examined += named
        codes += [code] * len(named)
    made.extender_failed = by_extenders
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


def _preemption(data: Data) -> Preemption:
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
