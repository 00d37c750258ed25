"""Admission: checks and defaults of an object that depend on other objects.

Upstream: plugin/pkg/admission: namespace/lifecycle, limitranger, runtimeclass, priority,
defaulttolerationseconds, storage/storageclass/setdefault, resourcequota; pkg/registry/resource.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.lab.api.field_errors import forbidden_field
from podium.lab.api.resources import Resource, stored
from podium.lab.api.status import StatusError, forbidden, invalid, not_found, terminating
from podium.lab.kinds.device_fields import set_taint_times
from podium.lab.registry import (
    limit_ranges,
    service_allocation,
)
from podium.lab.registry.resource_lists import amounts
from podium.lab.store.store import Key
from podium.objects.kinds.meta import JsonObject
from podium.objects.names import quoted

if TYPE_CHECKING:
    from podium.lab.api.resources import Resource
    from podium.lab.registry.registry import Registry

#: Namespaces with this label may use devices that others use, to watch them.
_ADMIN_LABEL: Final = "resource.kubernetes.io/admin-access"
#: Namespaces that exist from the beginning; the first three cannot be deleted.
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_SYSTEM_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
#: Taints that pods tolerate for five minutes by default.
_OUTAGE_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_OUTAGE_SECONDS = 300


def check_admin_access(registry: Registry, resource: Resource, item: JsonObject) -> None:
    """Refuse a claim or template with admin access in a namespace that does not allow it."""
    spec = item.get("spec") or {}
    if resource.kind == "ResourceClaimTemplate":
        spec = spec.get("spec") or {}
    for index, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        if (request.get("exactly") or {}).get("adminAccess"):
            path = f"spec.devices.requests[{index}].adminAccess"
            _refuse_without_label(registry, resource, item, path)
            return


def check_granted_admin_access(registry: Registry, resource: Resource, item: JsonObject) -> None:
    """Refuse an allocation with admin access in a namespace that does not allow it."""
    devices = ((item.get("status") or {}).get("allocation") or {}).get("devices") or {}
    for index, result in enumerate(devices.get("results") or ()):
        if result.get("adminAccess"):
            path = f"status.allocation.devices.results[{index}].adminAccess"
            _refuse_without_label(registry, resource, item, path)
            return


def _refuse_without_label(
    registry: Registry, resource: Resource, item: JsonObject, path: str
) -> None:
    about = item["metadata"]
    namespace = registry.find("namespaces", about.get("namespace", "")) or {"metadata": {}}
    if (namespace["metadata"].get("labels") or {}).get(_ADMIN_LABEL) == "true":
        return
    what = (
        f"admin access to devices requires the `{_ADMIN_LABEL}: true` label on the containing "
        "namespace"
    )
    name = about.get("name") or about.get("generateName") or ""
    raise invalid(resource.kind, resource.group, name, [forbidden_field(path, what)])


def set_runtime_class(registry: Registry, pod: JsonObject) -> None:
    """Complete a new pod from its runtime class; refuse an overhead that is not the class's."""
    spec = pod["spec"]
    name = spec.get("runtimeClassName")
    given: JsonObject | None = None
    if name:
        given = registry.find("runtimeclasses", name)
        if given is None:
            raise _rejected(pod, f"pod rejected: RuntimeClass {quoted(name)} not found")
    overhead = ((given or {}).get("overhead") or {}).get("podFixed")
    if (given or {}).get("overhead") is None:
        if spec.get("overhead") is not None:
            why = "Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise _rejected(pod, f"pod rejected: {why}")
    else:
        if spec.get("overhead") and amounts(spec["overhead"]) != amounts(overhead):
            why = "Pod's Overhead doesn't match RuntimeClass's defined Overhead"
            raise _rejected(pod, f"pod rejected: {why}")
        spec["overhead"] = dict(overhead or {})
    scheduling = (given or {}).get("scheduling")
    if scheduling:
        _set_node_selector(pod, scheduling.get("nodeSelector") or {})
        merged = merge_tolerations(
            spec.get("tolerations") or [], scheduling.get("tolerations") or []
        )
        if merged:
            spec["tolerations"] = merged


def _set_node_selector(pod: JsonObject, wanted: dict[str, str]) -> None:
    if not wanted:
        return
    own = pod["spec"].setdefault("nodeSelector", {})
    for key, value in wanted.items():
        if own.get(key, value) != value:
            why = (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {own[key]}"
            )
            raise _rejected(pod, why)
        own[key] = value


def _rejected(pod: JsonObject, why: str) -> StatusError:
    return forbidden("pods", pod["metadata"].get("name", ""), why)


def merge_tolerations(first: list[JsonObject], second: list[JsonObject]) -> list[JsonObject]:
    """Both lists in one, without the tolerations that another one includes."""
    everything = [*first, *second]
    merged: list[JsonObject] = []
    for index, each in enumerate(everything):
        if any(_includes(kept, each) for kept in merged):
            continue
        if any(each != later and _includes(later, each) for later in everything[index + 1 :]):
            continue
        merged.append(each)
    return merged


def _includes(wide: JsonObject, narrow: JsonObject) -> bool:
    """Whether everything that *narrow* tolerates is tolerated by *wide*."""
    if wide == narrow:
        return True
    operator = wide.get("operator") or "Equal"
    wide_key, wide_effect = wide.get("key") or "", wide.get("effect") or ""
    if (narrow.get("key") or "") != wide_key and (wide_key or operator != "Exists"):
        return False
    if wide_effect and (narrow.get("effect") or "") != wide_effect:
        return False
    if wide_effect == "NoExecute" and wide.get("tolerationSeconds") is not None:
        seconds = narrow.get("tolerationSeconds")
        if seconds is None or seconds > wide["tolerationSeconds"]:
            return False
    if operator == "Exists":
        return True
    same_value = (narrow.get("value") or "") == (wide.get("value") or "")
    return narrow.get("operator") == "Equal" and same_value


def create_system_objects(registry: Registry) -> None:
    """Create the namespaces, the priority classes and the service that every cluster has."""
    for name in NAMESPACES:
        if registry.find("namespaces", name) is None:
            registry.create("namespaces", {"metadata": {"name": name}})
    for name, value in _SYSTEM_PRIORITIES.items():
        if registry.find("priorityclasses", name) is None:
            description = "Used for system critical pods that must run in the cluster."
            registry.create(
                "priorityclasses",
                {"metadata": {"name": name}, "value": value, "description": description},
            )
    if registry.find("services", "kubernetes", "default") is None:
        registry.create("services", _api_server_service())


def _api_server_service() -> JsonObject:
    """The service `kubernetes` in the namespace `default`, behind which the API server is."""
    labels = {"component": "apiserver", "provider": "kubernetes"}
    return {
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "spec": {
            "clusterIP": service_allocation.API_SERVER_IP,
            "ports": [{"name": "https", "port": 443, "targetPort": 6443}],
        },
    }


def check_namespace(registry: Registry, resource: Resource, namespace: str, name: str) -> None:
    """Refuse a new object in a namespace that does not exist or is terminating."""
    if not resource.namespaced:
        return
    record = registry.store.get("namespaces", Key("", namespace))
    if record is None:
        raise not_found("namespaces", namespace)
    if record.fields.get("status.phase") == "Terminating":
        raise terminating(resource.qualified, name, namespace)


def admit_create(registry: Registry, resource: Resource, item: JsonObject) -> None:
    """Complete a new object from others: limits, runtime class, priority, storage class, IP."""
    if resource.kind == "Pod":
        limit_ranges.set_default_resources(registry, item)
        set_runtime_class(registry, item)
        _set_priority(registry, item)
        _tolerate_outages(item["spec"])
    elif resource.kind == "PodGroup":
        _set_group_priority(registry, item)
    elif resource.kind == "PersistentVolumeClaim":
        _set_default_storage_class(registry, item)
    elif resource.kind == "PriorityClass":
        _refuse_second_default(registry, resource, item)
    elif resource.kind == "Service":
        service_allocation.allocate(registry, item)
    elif resource.kind in {"ResourceClaim", "ResourceClaimTemplate"}:
        check_admin_access(registry, resource, item)
    elif resource.kind in {"ResourceSlice", "DeviceTaintRule"}:
        set_taint_times(item, registry.timestamp())


def admit_update(registry: Registry, resource: Resource, item: JsonObject, old: JsonObject) -> None:
    """Complete an object that replaces *old*; allocated fields that it leaves out are kept."""
    if resource.kind == "Pod":
        spec, before = item["spec"], old["spec"]
        for field in ("priority", "preemptionPolicy"):
            if field in before:
                spec.setdefault(field, before[field])
        _tolerate_outages(spec)
    elif resource.kind == "PriorityClass":
        _refuse_second_default(registry, resource, item)
    elif resource.kind == "Service":
        service_allocation.keep_allocated(item, old)
        service_allocation.allocate(registry, item)
    elif resource.kind in {"ResourceSlice", "DeviceTaintRule"}:
        set_taint_times(item, registry.timestamp())


def admit_status(registry: Registry, resource: Resource, item: JsonObject, old: JsonObject) -> None:
    """Refuse a status that others than the validation of its kind forbid."""
    if resource.kind == "ResourceClaim" and not (old.get("status") or {}).get("allocation"):
        check_granted_admin_access(registry, resource, item)


def check_bounds(
    registry: Registry, resource: Resource, item: JsonObject, old: JsonObject | None = None
) -> None:
    """Refuse a valid object that does not keep the bounds of the limit ranges of its namespace."""
    if resource.kind == "Pod" and old is None:
        limit_ranges.check_pod(registry, item)
    elif resource.kind == "PersistentVolumeClaim":
        limit_ranges.check_claim(registry, item)


def check_deletion(resource: Resource, name: str) -> None:
    """Refuse the deletion of a system namespace."""
    if resource.kind == "Namespace" and name in NAMESPACES[:3]:
        raise forbidden("namespaces", name, "this namespace may not be deleted")


def _set_priority(registry: Registry, item: JsonObject) -> None:
    spec = item["spec"]
    name = spec.get("priorityClassName") or ""
    priority_class: JsonObject | None = None
    if name:
        priority_class = registry.find("priorityclasses", name)
        if priority_class is None:
            why = f"no PriorityClass with name {name} was found"
            raise forbidden("pods", _pod_name(item), why)
    else:
        priority_class = default_priority_class(registry)
        if priority_class is not None:
            spec["priorityClassName"] = priority_class["metadata"]["name"]
    priority = 0 if priority_class is None else priority_class.get("value", 0)
    policy = "PreemptLowerPriority"
    if priority_class is not None:
        policy = priority_class.get("preemptionPolicy") or policy
    for field, computed in (("priority", priority), ("preemptionPolicy", policy)):
        given = spec.get(field)
        if given is not None and given != computed:
            raise _priority_mismatch(item, field, given, computed)
        spec[field] = computed


def _set_group_priority(registry: Registry, item: JsonObject) -> None:
    """Resolve the priority class of a pod group, as for pods."""
    spec, about = item.setdefault("spec", {}), item["metadata"]
    name = spec.get("priorityClassName") or ""
    if name:
        found = registry.find("priorityclasses", name)
        if found is None:
            why = f"no PriorityClass with name {name} was found"
            raise forbidden("podgroups", str(about.get("name", "")), why)
    else:
        found = default_priority_class(registry)
        if found is not None:
            spec["priorityClassName"] = found["metadata"]["name"]
    computed = 0 if found is None else found.get("value", 0)
    given = spec.get("priority")
    if given is not None and given != computed:
        why = (
            f"priority set in the pod group ({given}) must match the priority computed "
            f"({computed}) based on the priority class set in the spec"
        )
        raise forbidden("podgroups", str(about.get("name", "")), why)
    spec["priority"] = computed


def _priority_mismatch(
    item: JsonObject, field: str, given: object, computed: object
) -> StatusError:
    what = (
        f"the integer value of priority ({given})"
        if field == "priority"
        else f"the string value of PreemptionPolicy ({given})"
    )
    why = (
        f"{what} must not be provided in pod spec; "
        f"priority admission controller computed {computed} from the given PriorityClass name"
    )
    return forbidden("pods", _pod_name(item), why)


def _pod_name(item: JsonObject) -> str:
    return str(item["metadata"].get("name") or item["metadata"].get("generateName", ""))


def default_priority_class(registry: Registry) -> JsonObject | None:
    """The class of pods that name none: the lowest of the global defaults, if there are any."""
    table = registry.store.table(stored("priorityclasses").storage)
    defaults = [
        each.object() for each in table.records.values() if b'"globalDefault":true' in each.data
    ]
    defaults = [each for each in defaults if each.get("globalDefault")]
    return min(defaults, key=lambda each: each.get("value", 0), default=None)


def _refuse_second_default(registry: Registry, resource: Resource, item: JsonObject) -> None:
    if not item.get("globalDefault"):
        return
    current = default_priority_class(registry)
    name = item["metadata"].get("name", "")
    if current is not None and current["metadata"]["name"] != name:
        other = current["metadata"]["name"]
        raise forbidden(
            resource.qualified,
            name,
            f"PriorityClass {quoted(other)} is already marked as default. "
            "Only one default can exist",
        )


def _tolerate_outages(spec: JsonObject) -> None:
    """Add the tolerations for not-ready and unreachable nodes that a pod does not have."""
    tolerations = spec.get("tolerations") or []
    missing = [
        key for key in _OUTAGE_TAINTS if not any(_tolerates(each, key) for each in tolerations)
    ]
    if missing:
        spec["tolerations"] = [*tolerations, *map(_outage_toleration, missing)]


def _tolerates(toleration: JsonObject, key: str) -> bool:
    effect = toleration.get("effect") or "NoExecute"
    return effect == "NoExecute" and (toleration.get("key") or key) == key


def _outage_toleration(key: str) -> JsonObject:
    return {
        "key": key,
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": _OUTAGE_SECONDS,
    }


def _set_default_storage_class(registry: Registry, item: JsonObject) -> None:
    """Give a claim without a storage class the default one; of several, the newest."""
    annotations = item["metadata"].get("annotations") or {}
    spec = item.setdefault("spec", {})
    if "storageClassName" in spec or _BETA_CLASS in annotations:
        return
    classes = [
        each
        for each in registry.list("storageclasses")
        if (each["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"
    ]
    if classes:
        classes.sort(key=lambda each: each["metadata"]["name"])
        newest = max(classes, key=lambda each: each["metadata"]["creationTimestamp"])
        spec["storageClassName"] = newest["metadata"]["name"]
