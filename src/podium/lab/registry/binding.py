"""Binding of pods to nodes.

Upstream: pkg/registry/core/pod/storage (BindingREST, setPodHostAndAnnotations).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.lab.api.field_errors import not_supported, required
from podium.lab.api.options import WriteOptions
from podium.lab.api.resources import stored
from podium.lab.api.status import StatusError, bad_request, conflict, invalid, success
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
