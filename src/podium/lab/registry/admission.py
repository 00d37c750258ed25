"""Admission: checks and defaults of an object that depend on other objects.

A limit range changes what is scheduled: a container that requests nothing gets the default request
of its namespace. Pods are checked when they are created, claims also when they are updated.
Services get cluster IPs and node ports.

Upstream: plugin/pkg/admission: namespace/lifecycle, limitranger, runtimeclass, priority,
defaulttolerationseconds, storage/storageclass/setdefault, resourcequota; pkg/registry/resource,
pkg/registry/core/service (ipallocator, portallocator).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from podium.lab.api.resources import Resource, stored
from podium.lab.api.status import (
    StatusError,
    forbidden,
    forbidden_field,
    internal,
    invalid,
    invalid_value,
    not_found,
    terminating,
)
from podium.lab.kinds.device_class import set_taint_times
from podium.lab.registry.resource_lists import (
    Amounts,
    amounts,
    containers_of,
    pod_amounts,
    text_of,
)
from podium.lab.store.store import Key
from podium.objects.kinds.meta import JsonObject
from podium.objects.names import quoted
from podium.objects.quantity import nano

if TYPE_CHECKING:
    from podium.lab.registry.registry import Registry


_ANNOTATION: Final = "kubernetes.io/limit-ranger"
_BILLION: Final = 10**9
_CLAIM: Final = "PersistentVolumeClaim"


def limits_of(registry: Registry, namespace: str) -> list[list[JsonObject]]:
    """The limits of each limit range in a namespace, in the order of their names."""
    records = registry.store.table("limitranges").in_namespace(namespace)
    return [
        (records[key].object().get("spec") or {}).get("limits") or [] for key in sorted(records)
    ]


def set_default_resources(registry: Registry, pod: JsonObject) -> None:
    """Give containers the default requests and limits of their namespace, and annotate the pod."""
    spec, metadata = pod["spec"], pod["metadata"]
    for limits in limits_of(registry, metadata["namespace"]):
        set_parts: list[str] = []
        for what, containers in (
            ("container", spec.get("containers") or ()),
            ("init container", spec.get("initContainers") or ()),
        ):
            for container in containers:
                set_parts += _set_defaults(container, limits, what)
        if set_parts:
            text = "LimitRanger plugin set: " + "; ".join(set_parts)
            metadata.setdefault("annotations", {})[_ANNOTATION] = text


def _set_defaults(container: JsonObject, limits: list[JsonObject], what: str) -> list[str]:
    """Set the defaults of one container; a text for requests and one for limits if any were set."""
    texts = []
    for part, field, word in (
        ("requests", "defaultRequest", "request"),
        ("limits", "default", "limit"),
    ):
        defaults = _container_defaults(limits, field)
        resources = container.setdefault("resources", {})
        missing = sorted(defaults.keys() - (resources.get(part) or {}).keys())
        if missing:
            wanted = resources.setdefault(part, {})
            wanted.update({name: defaults[name] for name in missing})
            texts.append(f"{', '.join(missing)} {word} for {what} {container.get('name', '')}")
    return texts


def _container_defaults(limits: list[JsonObject], field: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for limit in limits:
        if limit.get("type") == "Container":
            found.update(limit.get(field) or {})
    return found


def check_pod(registry: Registry, pod: JsonObject) -> None:
    """Refuse a new pod that does not keep the bounds of its namespace."""
    for limits in limits_of(registry, pod["metadata"]["namespace"]):
        problems = list(_pod_problems(pod["spec"], limits))
        if problems:
            raise forbidden("pods", pod["metadata"].get("name", ""), _together(problems))


def check_claim(registry: Registry, claim: JsonObject) -> None:
    """Refuse a claim that requests less or more storage than its namespace allows."""
    requests = amounts(((claim.get("spec") or {}).get("resources") or {}).get("requests"))
    for limits in limits_of(registry, claim["metadata"]["namespace"]):
        problems: list[str] = []
        for limit in limits:
            if limit.get("type") == _CLAIM:
                problems += _below_minimum(limit, requests, {})
                problems += _requested_above(limit, requests)
        if problems:
            name = claim["metadata"].get("name", "")
            raise forbidden("persistentvolumeclaims", name, _together(problems))


def _together(problems: list[str]) -> str:
    """Several errors as Go prints an aggregate; equal ones once."""
    texts = list(dict.fromkeys(problems))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _pod_problems(spec: JsonObject, limits: list[JsonObject]) -> Iterator[str]:
    for limit in limits:
        if limit.get("type") == "Container":
            for container in containers_of(spec):
                resources = container.get("resources") or {}
                asked, most = amounts(resources.get("requests")), amounts(resources.get("limits"))
                yield from _problems(limit, asked, most)
        elif limit.get("type") == "Pod":
            asked = pod_amounts(spec, "requests", with_overhead=False)
            most = pod_amounts(spec, "limits", with_overhead=False)
            yield from _problems(limit, asked, most)


def _problems(limit: JsonObject, requests: Amounts, most: Amounts) -> Iterator[str]:
    yield from _below_minimum(limit, requests, most)
    yield from _above_maximum(limit, requests, most)
    yield from _above_ratio(limit, requests, most)


def _bounds(limit: JsonObject, field: str) -> Mapping[str, str]:
    found: Mapping[str, str] = limit.get(field) or {}
    return {name: found[name] for name in sorted(found)}


def _below_minimum(limit: JsonObject, requests: Amounts, most: Amounts) -> Iterator[str]:
    for name, bound in _bounds(limit, "min").items():
        least = nano(bound)
        about = f"minimum {name} usage per {limit['type']} is {bound}"
        if name not in requests:
            yield f"{about}.  No request is specified"
        elif requests[name] < least:
            yield f"{about}, but request is {text_of(name, requests[name])}"
        elif name in most and most[name] < least:
            yield f"{about}, but limit is {text_of(name, most[name])}"


def _above_maximum(limit: JsonObject, requests: Amounts, most: Amounts) -> Iterator[str]:
    for name, bound in _bounds(limit, "max").items():
        highest = nano(bound)
        about = f"maximum {name} usage per {limit['type']} is {bound}"
        if name not in most:
            yield f"{about}.  No limit is specified"
        elif most[name] > highest:
            yield f"{about}, but limit is {text_of(name, most[name])}"
        elif name in requests and requests[name] > highest:
            yield f"{about}, but request is {text_of(name, requests[name])}"


def _requested_above(limit: JsonObject, requests: Amounts) -> Iterator[str]:
    for name, bound in _bounds(limit, "max").items():
        about = f"maximum {name} usage per {limit['type']} is {bound}"
        if name not in requests:
            yield f"{about}.  No request is specified"
        elif requests[name] > nano(bound):
            yield f"{about}, but request is {text_of(name, requests[name])}"


def _above_ratio(limit: JsonObject, requests: Amounts, most: Amounts) -> Iterator[str]:
    for name, bound in _bounds(limit, "maxLimitRequestRatio").items():
        about = f"{name} max limit to request ratio per {limit['type']} is {bound}"
        if not requests.get(name):
            yield f"{about}, but no request is specified or request is 0"
        elif not most.get(name):
            yield f"{about}, but no limit is specified or limit is 0"
        elif most[name] * _BILLION > nano(bound) * requests[name]:
            yield f"{about}, but provided ratio is {most[name] / requests[name]:f}"


#: The IPs of 10.96.0.0/16 without the first and the last.
_IP_COUNT = 2**16 - 2
#: The IP of the service `kubernetes`: the first of the range, as in every cluster.
API_SERVER_IP = "10.96.0.1"
_NODE_PORTS = range(30000, 32768)
_WITH_NODE_PORTS = frozenset({"NodePort", "LoadBalancer"})


def keep_allocated(item: JsonObject, old: JsonObject) -> None:
    """Copy the cluster IP and node ports that an update of a service leaves out."""
    spec, before = item["spec"], old.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return
    for field in ("clusterIP", "clusterIPs"):
        if field in before:
            spec.setdefault(field, before[field])
    allocated = {each.get("port"): each.get("nodePort") for each in before.get("ports") or ()}
    if spec.get("type") in _WITH_NODE_PORTS:
        for port in spec.get("ports") or ():
            if not port.get("nodePort") and allocated.get(port.get("port")):
                port["nodePort"] = allocated[port["port"]]


def allocate(registry: Registry, item: JsonObject) -> None:
    """Allocate the cluster IP and node ports that a service lacks."""
    spec = item["spec"]
    if spec.get("type") == "ExternalName":
        return
    if not spec.get("clusterIP"):
        spec["clusterIP"] = _free_ip(registry)
    spec["clusterIPs"] = [spec["clusterIP"]]
    if spec.get("type") in _WITH_NODE_PORTS:
        _allocate_ports(registry, item)


def _other_services(registry: Registry, item: JsonObject | None) -> Iterator[JsonObject]:
    own = item and (item["metadata"].get("namespace"), item["metadata"].get("name"))
    for record in registry.store.table("services").records.values():
        if tuple(record.key) != own:
            yield record.object()


def _free_ip(registry: Registry) -> str:
    """A random free IP; the range is far larger than the number of services."""
    records = registry.store.table("services").records.values()
    taken = {each.fields.get("spec.clusterIP") for each in records}
    if len(taken) >= _IP_COUNT:
        raise internal("failed to allocate a serviceIP: range is full")
    while True:
        number = registry.rng.randint(1, _IP_COUNT)
        address = f"10.96.{number >> 8}.{number & 255}"
        if address not in taken:
            return address


def _allocate_ports(registry: Registry, item: JsonObject) -> None:
    taken = {
        port["nodePort"]
        for other in _other_services(registry, item)
        for port in (other.get("spec") or {}).get("ports") or ()
        if port.get("nodePort")
    }
    for index, port in enumerate(item["spec"].get("ports") or ()):
        wanted = port.get("nodePort")
        if wanted:
            _check_port(item, index, wanted, taken)
        else:
            free = [each for each in _NODE_PORTS if each not in taken]
            if not free:
                raise internal("failed to allocate a nodePort: range is full")
            wanted = port["nodePort"] = registry.rng.choice(free)
        taken.add(wanted)


def _check_port(item: JsonObject, index: int, wanted: int, taken: set[int]) -> None:
    why = ""
    if wanted not in _NODE_PORTS:
        ports = f"{_NODE_PORTS[0]}-{_NODE_PORTS[-1]}"
        why = f"provided port is not in the valid range. The range of valid ports is {ports}"
    elif wanted in taken:
        why = "provided port is already allocated"
    if why:
        problem = invalid_value(f"spec.ports[{index}].nodePort", wanted, why)
        raise invalid("Service", "", item["metadata"].get("name", ""), [problem])


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
            "clusterIP": API_SERVER_IP,
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
        set_default_resources(registry, item)
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
        allocate(registry, item)
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
        keep_allocated(item, old)
        allocate(registry, item)
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
        check_pod(registry, item)
    elif resource.kind == "PersistentVolumeClaim":
        check_claim(registry, item)


def check_deletion(resource: Resource, name: str) -> None:
    """Refuse the deletion of a system namespace."""
    if resource.kind == "Namespace" and name in NAMESPACES[:3]:
        raise forbidden("namespaces", name, "this namespace may not be deleted")


def _set_priority(registry: Registry, item: JsonObject) -> None:
    spec = item["spec"]
    priority_class = _priority_class(registry, spec, "pods", _pod_name(item))
    policy = priority_class.get("preemptionPolicy") or "PreemptLowerPriority"
    computed = {"priority": priority_class.get("value", 0), "preemptionPolicy": policy}
    for field, value in computed.items():
        given = spec.get(field)
        if given is not None and given != value:
            raise _priority_mismatch(item, field, given, value)
        spec[field] = value


def _set_group_priority(registry: Registry, item: JsonObject) -> None:
    """Resolve the priority class of a pod group, as for pods."""
    spec, name = item.setdefault("spec", {}), str(item["metadata"].get("name", ""))
    computed = _priority_class(registry, spec, "podgroups", name).get("value", 0)
    given = spec.get("priority")
    if given is not None and given != computed:
        why = (
            f"priority set in the pod group ({given}) must match the priority computed "
            f"({computed}) based on the priority class set in the spec"
        )
        raise forbidden("podgroups", name, why)
    spec["priority"] = computed


def _priority_class(registry: Registry, spec: JsonObject, plural: str, name: str) -> JsonObject:
    """The class that a spec names, or the default one, which is then named; empty if none is."""
    wanted = spec.get("priorityClassName") or ""
    if wanted:
        found = registry.find("priorityclasses", wanted)
        if found is None:
            raise forbidden(plural, name, f"no PriorityClass with name {wanted} was found")
        return found
    found = default_priority_class(registry)
    if found is None:
        return {}
    spec["priorityClassName"] = found["metadata"]["name"]
    return found


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
