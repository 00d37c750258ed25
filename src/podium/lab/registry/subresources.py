"""Subresources of pods and workloads: binding, eviction and scale.

Upstream: pkg/registry/core/pod/storage (BindingREST, setPodHostAndAnnotations, eviction.go),
pkg/registry/apps/*/storage (ScaleREST).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.lab.api.encoding import APPLY_PATCH, PATCH_TYPES
from podium.lab.api.options import DeleteOptions, WriteOptions
from podium.lab.api.resources import Resource, stored
from podium.lab.api.status import (
    StatusError,
    bad_request,
    conflict,
    internal,
    invalid,
    invalid_value,
    not_supported,
    required,
    success,
    too_many_requests,
    unsupported_media_type,
    wrong_name,
)
from podium.lab.kinds.kind import condition_status, selector_text
from podium.lab.patch.patches import apply_patch
from podium.lab.registry.metadata import version_precondition
from podium.lab.schema.typed_bodies import read_object, to_json
from podium.lab.store.selection import compile_selector
from podium.objects.kinds.meta import JsonObject

if TYPE_CHECKING:
    from podium.lab.registry.registry import Registry


_RESOURCE = "pods/binding"


def bind(
    registry: Registry, namespace: str, name: str, binding: JsonObject, options: WriteOptions
) -> JsonObject:
    """Bind a pod to the node that *binding* names; a conflict if it has a node."""
    metadata = binding.get("metadata") or {}
    if metadata.get("name") and metadata["name"] != name:
        raise bad_request("name in URL does not match name in Binding object")
    target = binding.get("target") or {}
    node = _node_of(name, target)
    resource = stored("pods")
    record = registry.record("pods", name, namespace)
    pod, old = record.object(), record.object()
    _check_bindable(pod, name, metadata.get("uid") or "", metadata.get("resourceVersion") or "")
    spec = pod["spec"]
    spec["nodeName"] = node
    if metadata.get("annotations"):
        pod["metadata"].setdefault("annotations", {}).update(metadata["annotations"])
    if metadata.get("labels"):
        pod["metadata"].setdefault("labels", {}).update(metadata["labels"])
    _set_scheduled(pod, registry.timestamp())
    if not options.dry_run:
        registry.write(resource, pod, old)
    return success()


def _node_of(name: str, target: JsonObject) -> str:
    kind = target.get("kind") or ""
    if kind not in {"", "Node"}:
        problem = not_supported("target.kind", kind, ["Node", "<empty>"])
        raise invalid("Binding", "", name, [problem])
    node = target.get("name") or ""
    if not node:
        raise invalid("Binding", "", name, [required("target.name")])
    return str(node)


def _check_bindable(pod: JsonObject, name: str, uid: str, version: str) -> None:
    metadata = pod["metadata"]
    if uid and uid != metadata["uid"]:
        raise conflict(
            _RESOURCE,
            name,
            f"Precondition failed: UID in precondition: {uid}, "
            f"UID in object meta: {metadata['uid']}",
        )
    if version and version != metadata["resourceVersion"]:
        raise conflict(
            _RESOURCE,
            name,
            f"Precondition failed: ResourceVersion in precondition: {version}, "
            f"ResourceVersion in object meta: {metadata['resourceVersion']}",
        )
    if metadata.get("deletionTimestamp"):
        raise _conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
    node = pod["spec"].get("nodeName")
    if node:
        raise _conflict(name, f'pod {name} is already assigned to node "{node}"')
    if pod["spec"].get("schedulingGates"):
        raise _conflict(name, f"pod {name} has non-empty .spec.schedulingGates")


def _conflict(name: str, why: str) -> StatusError:
    return conflict(_RESOURCE, name, why)


def _set_scheduled(pod: JsonObject, now: str) -> None:
    """Set the condition PodScheduled of a pod."""
    status = pod.setdefault("status", {})
    others = [each for each in status.get("conditions") or () if each.get("type") != "PodScheduled"]
    status["conditions"] = [
        *others,
        {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": now,
        },
    ]


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
        if compile_selector((each.get("spec") or {}).get("selector")).matches(labels)
    ]
    if len(budgets) > 1:
        raise internal(_SEVERAL_BUDGETS)
    for budget in budgets:
        if condition_status(pod, "Ready") != "True" and _allows_unhealthy(budget):
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


def _allows_unhealthy(budget: JsonObject) -> bool:
    """Whether a budget lets unready pods go: by policy, or while enough others are healthy."""
    spec, status = budget.get("spec") or {}, budget.get("status") or {}
    if spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    return bool(healthy >= desired > 0)


_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
#: Where workloads have their replicas; the definition of a custom resource says it for its objects.
_SCALE_PATHS = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


def scale_of(item: JsonObject, resource: Resource) -> JsonObject:
    """The `Scale` of a workload, or of a custom object whose definition says where it is."""
    metadata, paths = item["metadata"], _SCALE_PATHS
    if resource.custom is not None:
        paths = resource.custom.scale or {}
    status: JsonObject = {"replicas": _at(item, paths.get("statusReplicasPath")) or 0}
    if resource.custom is None:
        status["selector"] = _selector_text((item.get("spec") or {}).get("selector"))
    elif selector := _at(item, paths.get("labelSelectorPath")):
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in _METADATA if name in metadata},
        "spec": {"replicas": _at(item, paths.get("specReplicasPath")) or 0},
        "status": status,
    }


def _at(item: JsonObject, path: str | None) -> Any:
    """The value at a path of fields (`.spec.replicas`); `None` if there is none."""
    found: Any = item
    for name in (path or "").strip(".").split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _set_replicas(item: JsonObject, resource: Resource, replicas: int) -> None:
    path = _SCALE_PATHS["specReplicasPath"]
    if resource.custom is not None and resource.custom.scale:
        path = resource.custom.scale.get("specReplicasPath") or path
    *parents, last = path.strip(".").split(".")
    target = item
    for name in parents:
        target = target.setdefault(name, {})
    target[last] = replicas


def _selector_text(selector: JsonObject | None) -> str:
    """The selector of a workload as text; that of a replication controller is a map of labels."""
    if selector and not {"matchLabels", "matchExpressions"} & selector.keys():
        selector = {"matchLabels": selector}
    return selector_text(selector or {})


def patch_scale(content_type: str, current: JsonObject, patch: Any) -> JsonObject:
    """A `Scale` after a patch of any type but server-side apply."""
    if content_type == APPLY_PATCH:
        raise unsupported_media_type([each for each in PATCH_TYPES if each != APPLY_PATCH])
    new = apply_patch("Scale", content_type, current, patch)
    return read_object("Scale", "autoscaling/v1", to_json(new))


def update_scale(
    registry: Registry,
    resource: Resource,
    place: tuple[str, str],
    scale: JsonObject,
    options: WriteOptions,
) -> JsonObject:
    """Set the replicas of a workload to those of *scale*; *place* is its namespace and name."""
    namespace, name = place
    metadata = scale.get("metadata") or {}
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise bad_request("spec.replicas: expected a whole number")
    if replicas < 0:
        problem = invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid("Scale", "autoscaling", name, [problem])
    if metadata.get("name") and metadata["name"] != name:
        raise wrong_name(metadata["name"], name)
    old = registry.get(resource.storage, name, namespace)
    version = version_precondition(metadata)
    if version and version != old["metadata"]["resourceVersion"]:
        raise conflict(resource.qualified, name)

    def change(item: JsonObject) -> JsonObject:
        _set_replicas(item, resource, replicas)
        return item

    made = registry.modify(resource.storage, name, namespace, change=change, options=options)
    return scale_of(made, resource)
