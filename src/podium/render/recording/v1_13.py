"""Decisions in the format of recordings of kube-scheduler v1.13, with one step per attempt.

`docs/recordings.md` describes the format. `podium schedule -o recording` writes it, and
`podium history verify` compares it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.objects.kinds.registry import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from podium.cluster.simulation import Step
    from podium.engine.framework.decision import Decision, Preemption
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.meta import Object
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects


def step(decision: Decision, attempt: int) -> dict[str, Any]:
    """The decision of one attempt as a step."""
    found: dict[str, Any] = {"pod": decision.pod, "attempt": attempt}
    if decision.error:
        found["error"] = decision.error
    failed = decision.failed()
    if failed:
        found["failed"] = failed
    if decision.feasible:
        found["feasible"] = list(decision.feasible)
    if decision.totals is not None:
        if decision.scores:
            found["scores"] = {
                column.name: _column(decision.feasible, column.score) for column in decision.scores
            }
        found["total"] = _column(decision.feasible, decision.totals)
    if decision.node is not None:
        found["host"] = decision.node
    elif not decision.error:
        found["message"] = decision.message
    if decision.preemption is not None:
        found["preempt"] = preempt(decision.preemption)
    return found


def _column(nodes: Sequence[str], values: np.ndarray) -> dict[str, int]:
    """The value of each node, or one value for `*` if all are equal."""
    numbers = values.tolist()
    if len(set(numbers)) == 1:
        return {"*": numbers[0]}
    return dict(zip(nodes, numbers, strict=True))


def preempt(preemption: Preemption) -> dict[str, Any]:
    """The outcome of preemption, its candidates and victims."""
    node = preemption.node
    chosen = preemption.candidates[node] if node is not None else None
    found: dict[str, Any] = {
        "eligible": preemption.eligible,
        "potentialNodes": list(preemption.potential),
        "candidates": {
            name: {"victims": sorted(victims.pods), "numPDBViolations": victims.violations}
            for name, victims in preemption.candidates.items()
        },
        "node": node,
        "victims": sorted(chosen.pods) if chosen else [],
        "numPDBViolations": chosen.violations if chosen else 0,
        "clearedNominations": sorted(key for _, key in preemption.cleared),
    }
    if preemption.tie:
        found["tie"] = list(preemption.tie)
    return found


#: The kinds of objects of a scenario, in the order in which they are written.
KINDS_OF_POLICIES: Final = (
    "Node",
    "Service",
    "ReplicationController",
    "ReplicaSet",
    "StatefulSet",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "StorageClass",
    "PodDisruptionBudget",
    "Pod",
)
_API_VERSIONS: Final = {
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "StorageClass": "storage.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1beta1",
}


def scenario(
    objects: Objects, pending: Sequence[Pod], steps: Sequence[Step], profile: Profile
) -> dict[str, Any]:
    """A scenario without its configuration.

    The objects are written as they were scheduled, with what the API server and controllers add.
    """
    expected: dict[str, Any] = {"predicates": list(profile.configured_predicates)}
    if profile.priorities:
        expected["priorities"] = [f"{rule.name}:{rule.weight}" for rule in profile.priorities]
    expected["steps"] = [step(each.decision, each.attempt) for each in steps]
    return scenario_document(objects, pending, expected)


def scenario_document(
    objects: Objects,
    pending: Sequence[Pod],
    expected: dict[str, Any],
    kinds: Sequence[str] = KINDS_OF_POLICIES,
) -> dict[str, Any]:
    """A scenario of any generation: objects of some *kinds*, pending pods, the *expected* steps."""
    return {
        "name": "podium-schedule",
        "category": "podium",
        "objects": [_plain(kind, item) for kind in kinds for item in objects.of(kind)],
        "pending": [_plain("Pod", pod) for pod in pending],
        "expected": expected,
    }


def _plain(kind: str, item: Object) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(item)
    version = _API_VERSIONS.get(kind) or KINDS[kind].api_versions[0]
    head = {"apiVersion": version, "kind": kind}
    return head | {key: value for key, value in found.items() if value != ""}
