"""Eviction of pods: a deletion that disruption budgets may refuse.

Upstream: pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from podium.lab.api.options import DeleteOptions, WriteOptions
from podium.lab.api.resources import stored
from podium.lab.api.status import bad_request, internal, success, too_many_requests
from podium.objects.kinds.meta import JsonObject, LabelSelector
from podium.objects.selectors.selectors import SelectorError, from_label_selector

if TYPE_CHECKING:
    from podium.lab.registry.registry import Registry

_FINISHED = frozenset({"Succeeded", "Failed"})
_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL_BUDGETS = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not "
    "support."
)


def evict(
    registry: Registry, namespace: str, name: str, eviction: JsonObject, options: WriteOptions
) -> JsonObject:
    """Delete a pod, or refuse with 429 if its disruption budget is used up."""
    metadata = eviction.get("metadata") or {}
    if metadata.get("name") and metadata["name"] != name:
        raise bad_request("name in URL does not match name in Eviction object")
    asked = DeleteOptions.read(eviction.get("deleteOptions") or {}, {})
    dry = asked.dry_run or options.dry_run
    pod = registry.get("pods", name, namespace)
    if not _ignores_budgets(pod):
        _use_disruption(registry, pod, namespace, dry=dry)
    registry.delete(
        "pods",
        name,
        namespace,
        DeleteOptions(asked.grace, asked.uid, asked.version, asked.propagation, dry),
    )
    return success()


def _ignores_budgets(pod: JsonObject) -> bool:
    """Whether a pod is finished, terminating or pending: budgets do not count it."""
    phase = (pod.get("status") or {}).get("phase")
    return bool(pod["metadata"].get("deletionTimestamp")) or phase in {*_FINISHED, "Pending"}


def _use_disruption(registry: Registry, pod: JsonObject, namespace: str, *, dry: bool) -> None:
    """Take one disruption from the budget of a pod, if it has one; 429 if none is left."""
    labels = pod["metadata"].get("labels") or {}
    budgets = [
        each
        for each in registry.list("poddisruptionbudgets", namespace)
        if _selects((each.get("spec") or {}).get("selector"), labels)
    ]
    if len(budgets) > 1:
        raise internal(_SEVERAL_BUDGETS)
    for budget in budgets:
        if not _is_ready(pod) and _allows_unhealthy(budget):
            continue
        status = budget.setdefault("status", {})
        if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
            raise too_many_requests(
                _REFUSED,
                seconds=10,
                causes=[_cause(budget, "is still being processed by the server")],
            )
        allowed = status.get("disruptionsAllowed", 0)
        if allowed <= 0:
            needs = (
                f"needs {status.get('desiredHealthy', 0)} healthy pods and has "
                f"{status.get('currentHealthy', 0)} currently"
            )
            raise too_many_requests(_REFUSED, causes=[_cause(budget, needs)])
        status["disruptionsAllowed"] = allowed - 1
        disrupted = status.setdefault("disruptedPods", {})
        disrupted[pod["metadata"]["name"]] = registry.timestamp()
        if not dry:
            resource = stored("poddisruptionbudgets")
            registry.update(resource.plural, budget, subresource="status")


def _cause(budget: JsonObject, what: str) -> JsonObject:
    message = f"The disruption budget {budget['metadata']['name']} {what}"
    return {"reason": "DisruptionBudget", "message": message}


def _is_ready(pod: JsonObject) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _allows_unhealthy(budget: JsonObject) -> bool:
    """Whether a budget lets unready pods go: by policy, or while enough others are healthy."""
    spec, status = budget.get("spec") or {}, budget.get("status") or {}
    if spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    return bool(healthy >= desired > 0)


def _selects(selector: JsonObject | None, labels: dict[str, str]) -> bool:
    try:
        wanted = None if selector is None else msgspec.convert(selector, LabelSelector)
        return from_label_selector(wanted).matches(labels)
    except (SelectorError, msgspec.ValidationError):
        return False
