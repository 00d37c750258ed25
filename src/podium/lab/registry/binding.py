"""Binding a pod to a node: the one write that schedulers live for.

Upstream: pkg/registry/core/pod/storage (BindingREST, setPodHostAndAnnotations).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.lab.api.field_errors import not_supported, required
from podium.lab.api.options import WriteOptions
from podium.lab.api.resources import stored
from podium.lab.api.status import JsonDict, StatusError, bad_request, conflict, invalid, success
from podium.lab.registry.metadata import stamp

if TYPE_CHECKING:
    from podium.lab.registry.registry import Registry

_RESOURCE = "pods/binding"


def bind(
    registry: Registry, namespace: str, name: str, binding: JsonDict, options: WriteOptions
) -> JsonDict:
    """Put the pod on the node that *binding* names, unless it is somewhere already."""
    about = binding.get("metadata") or {}
    if about.get("name") and about["name"] != name:
        raise bad_request("name in URL does not match name in Binding object")
    target = binding.get("target") or {}
    node = _target(name, target)
    row = stored("pods")
    record = registry.record("pods", name, namespace)
    pod, old = record.object(), record.object()
    _refuse(pod, name, about.get("uid") or "", about.get("resourceVersion") or "")
    spec = pod["spec"]
    spec["nodeName"] = node
    if about.get("annotations"):
        pod["metadata"].setdefault("annotations", {}).update(about["annotations"])
    if about.get("labels"):
        pod["metadata"].setdefault("labels", {}).update(about["labels"])
    _scheduled(pod, stamp(registry.clock()))
    if not options.dry_run:
        registry.write(row, pod, old)
    return success()


def _target(name: str, target: JsonDict) -> str:
    kind = target.get("kind") or ""
    if kind not in {"", "Node"}:
        problem = not_supported("target.kind", kind, ["Node", "<empty>"])
        raise invalid("Binding", "", name, [problem])
    node = target.get("name") or ""
    if not node:
        raise invalid("Binding", "", name, [required("target.name")])
    return str(node)


def _refuse(pod: JsonDict, name: str, uid: str, version: str) -> None:
    about = pod["metadata"]
    if uid and uid != about["uid"]:
        raise conflict(
            _RESOURCE,
            name,
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {about['uid']}",
        )
    if version and version != about["resourceVersion"]:
        raise conflict(
            _RESOURCE,
            name,
            f"Precondition failed: ResourceVersion in precondition: {version}, "
            f"ResourceVersion in object meta: {about['resourceVersion']}",
        )
    if about.get("deletionTimestamp"):
        raise _conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
    node = pod["spec"].get("nodeName")
    if node:
        raise _conflict(name, f'pod {name} is already assigned to node "{node}"')
    if pod["spec"].get("schedulingGates"):
        raise _conflict(name, f"pod {name} has non-empty .spec.schedulingGates")


def _conflict(name: str, why: str) -> StatusError:
    return conflict(_RESOURCE, name, why)


def _scheduled(pod: JsonDict, now: str) -> None:
    """The pod says itself that it has a node."""
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
