"""Cycles of pods and pod groups in the format of recordings of kube-scheduler v1.37."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.cluster.pod_groups.simulated import GroupStep
    from podium.engine.framework.decision import Decision
    from podium.objects.kinds.meta import JsonObject
    from podium.objects.kinds.pod_group import PodGroup


def group_cycle(step: GroupStep, order: Sequence[str], evicted: Sequence[str]) -> JsonObject:
    """One cycle of a group; the outcomes of its pods are in the *order* of the scenario."""
    decision = step.decision
    outcomes = {member.pod.key: _outcome(step, index) for index, member in _members(step)}
    found: JsonObject = {
        "entity": f"podgroup {decision.group}",
        "members": [member.pod.key for member in decision.members],
        "attempts": [_attempt(each) for each in decision.searches],
        "pods": [outcomes[key] for key in order if key in outcomes],
    }
    return _with_evicted(found, evicted)


def _members(step: GroupStep) -> list[tuple[int, Any]]:
    return list(enumerate(step.decision.members))


def pod_cycle(decision: Decision, evicted: Sequence[str]) -> JsonObject:
    """One cycle of a pod without a group."""
    outcome: JsonObject = {"pod": decision.pod}
    if decision.node is not None:
        outcome["node"] = decision.node
    else:
        outcome["code"] = "Error" if decision.error and decision.nodes else "Unschedulable"
        outcome["message"] = decision.message
        preemption = decision.preemption
        if preemption is not None and preemption.node is not None:
            outcome["nominated"] = preemption.node
    found = {
        "entity": f"pod {decision.pod}",
        "attempts": [_attempt(decision)],
        "pods": [outcome],
    }
    return _with_evicted(found, evicted)


def conditions(group: PodGroup) -> list[JsonObject]:
    """The conditions of a group, without what differs from run to run."""
    found = []
    for each in group.status.conditions or ():
        shown = {"type": each.type, "status": each.status, "reason": each.reason}
        found.append(shown | ({"message": each.message} if each.message else {}))
    return found


def _with_evicted(found: JsonObject, evicted: Sequence[str]) -> JsonObject:
    return found | {"evicted": list(evicted)} if evicted else found


def _attempt(decision: Decision) -> JsonObject:
    """One search for a node."""
    found: JsonObject = {"pod": decision.pod, "feasible": list(decision.feasible)}
    if decision.feasible:
        if decision.totals is not None:
            found["total"] = dict(zip(decision.feasible, decision.totals.tolist(), strict=True))
        # The first best one: where the pod goes unless it is undone.
        found["node"] = decision.best[0] if decision.best else decision.node
    else:
        found["message"] = decision.fit_message
    return found


def _outcome(step: GroupStep, index: int) -> JsonObject:
    member, taken = step.decision.members[index], step.steps[index]
    if taken.decision.node is not None:
        return {"pod": member.pod.key, "node": taken.decision.node}
    found: JsonObject = {
        "pod": member.pod.key,
        "code": member.code,
        "message": member.message,
    }
    if member.nomination:
        found["nominated"] = member.nomination
    return found
