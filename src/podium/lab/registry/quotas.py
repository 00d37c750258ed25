"""Resource quotas at admission: a new object must fit into what its namespace has left.

The use so far is `status.used` of the quota, as in a cluster. Admission adds what it lets in. The
quota controller counts again when objects leave. A quota whose status was not counted yet is
counted at once.

Upstream: apiserver/pkg/admission/plugin/resourcequota/controller.go,
apiserver/pkg/quota/v1/generic, pkg/quota/v1/evaluator/core.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from podium.lab.api.encoding import parse_time
from podium.lab.api.resources import Resource, stored
from podium.lab.api.status import forbidden
from podium.lab.kinds.pod import qos_class
from podium.lab.registry.resource_lists import (
    Amounts,
    add,
    amounts,
    containers_of,
    pod_amounts,
    text_of,
    texts_of,
)
from podium.lab.store.store import Key
from podium.objects.kinds.meta import JsonObject
from podium.objects.names import is_native
from podium.objects.quantity import nano

if TYPE_CHECKING:
    from podium.lab.registry.registry import Registry

_ONE: Final = 10**9
_STORAGE_CLASS: Final = ".storageclass.storage.k8s.io/"
_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_POD_RESOURCES: Final = frozenset(
    {"count/pods", "pods", "cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory",
     "requests.ephemeral-storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage"}
)  # fmt: skip
_CLAIM_RESOURCES: Final = ("persistentvolumeclaims", "requests.storage")
_SERVICE_RESOURCES: Final = frozenset(
    {"count/services", "services", "services.nodeports", "services.loadbalancers"}
)
#: Resources that every container must set once a quota limits them.
_MUST_BE_SET: Final = frozenset(
    {"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}
)
#: Resources that have a second name besides `count/…`.
_LEGACY_COUNTS: Final = frozenset(
    {"configmaps", "resourcequotas", "replicationcontrollers", "secrets"}
)
_AFFINITIES: Final = ("podAffinity", "podAntiAffinity")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
#: Kinds whose updates can use more than before.
_CHARGED_ON_UPDATE = frozenset({"Service", "PersistentVolumeClaim"})


def limited_names(resource: Resource, names: Iterable[str]) -> list[str]:
    """Those of *names* that objects of a resource use."""
    kind = resource.kind
    if kind == "Pod":
        return [each for each in names if _is_pod_resource(each)]
    if kind == "Service":
        return [each for each in names if each in _SERVICE_RESOURCES]
    if kind == "PersistentVolumeClaim":
        return [each for each in names if _is_claim_resource(each)]
    counted = _count_names(resource)
    return [each for each in names if each in counted]


def _is_pod_resource(name: str) -> bool:
    if name in _POD_RESOURCES or name.startswith(("hugepages-", "requests.hugepages-")):
        return True
    return name.startswith("requests.") and not is_native(name)


def _is_claim_resource(name: str) -> bool:
    if name == "count/persistentvolumeclaims" or name in _CLAIM_RESOURCES:
        return True
    return name.endswith(tuple(f"{_STORAGE_CLASS}{each}" for each in _CLAIM_RESOURCES))


def _count_names(resource: Resource) -> list[str]:
    names = [f"count/{resource.qualified}"]
    return [*names, resource.plural] if resource.qualified in _LEGACY_COUNTS else names


def usage(resource: Resource, item: JsonObject, now: float) -> Amounts:
    """What an object uses of every resource that a quota can limit."""
    if resource.kind == "Pod":
        return _pod_usage(item, now)
    if resource.kind == "Service":
        return _service_usage(item["spec"])
    if resource.kind == "PersistentVolumeClaim":
        return _claim_usage(item)
    return dict.fromkeys(_count_names(resource), _ONE)


def _pod_usage(pod: JsonObject, now: float) -> Amounts:
    """All pods count as objects; only those that have not ended use anything."""
    found: Amounts = {"count/pods": _ONE}
    if not _uses_anything(pod, now):
        return found
    spec = pod["spec"]
    requests = pod_amounts(spec, "requests", with_overhead=True)
    limits = pod_amounts(spec, "limits", with_overhead=True)
    return found | _compute_usage(requests, limits)


def _uses_anything(pod: JsonObject, now: float) -> bool:
    if (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
        return False
    metadata = pod["metadata"]
    deleted = parse_time(metadata.get("deletionTimestamp"))
    grace = metadata.get("deletionGracePeriodSeconds")
    return deleted is None or grace is None or now <= deleted + grace


def _compute_usage(requests: Mapping[str, int], limits: Mapping[str, int]) -> Amounts:
    found: Amounts = {"pods": _ONE}
    for name in ("cpu", "memory", "ephemeral-storage"):
        if name in requests:
            found[name] = found[f"requests.{name}"] = requests[name]
        if name in limits:
            found[f"limits.{name}"] = limits[name]
    for name, amount in requests.items():
        if name.startswith("hugepages-"):
            found[name] = found[f"requests.{name}"] = amount
        elif not is_native(name):
            found[f"requests.{name}"] = amount
    return found


def _service_usage(spec: JsonObject) -> Amounts:
    found: Amounts = {
        "count/services": _ONE,
        "services": _ONE,
        "services.nodeports": 0,
        "services.loadbalancers": 0,
    }
    ports = spec.get("ports") or ()
    if spec.get("type") == "NodePort":
        found["services.nodeports"] = len(ports) * _ONE
    elif spec.get("type") == "LoadBalancer":
        if spec.get("allocateLoadBalancerNodePorts") is False:
            ports = [each for each in ports if each.get("nodePort")]
        found["services.nodeports"] = len(ports) * _ONE
        found["services.loadbalancers"] = _ONE
    return found


def _claim_usage(claim: JsonObject) -> Amounts:
    found: Amounts = {"persistentvolumeclaims": _ONE, "count/persistentvolumeclaims": _ONE}
    spec = claim.get("spec") or {}
    annotations = claim["metadata"].get("annotations") or {}
    storage_class = annotations.get(_BETA_CLASS) or spec.get("storageClassName") or ""
    if storage_class:
        found[f"{storage_class}{_STORAGE_CLASS}persistentvolumeclaims"] = _ONE
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is not None:
        allocated = ((claim.get("status") or {}).get("allocatedResources") or {}).get("storage", 0)
        amount = -(-max(nano(storage), nano(allocated)) // _ONE) * _ONE
        found["requests.storage"] = amount
        if storage_class:
            found[f"{storage_class}{_STORAGE_CLASS}requests.storage"] = amount
    return found


def missing_resources(pod: JsonObject, limited: Iterable[str]) -> dict[str, list[str]]:
    """The limited resources that containers of a pod do not set, with the containers' names."""
    spec = pod["spec"]
    if spec.get("resources"):
        return {}
    wanted = _MUST_BE_SET.intersection(limited)
    found: dict[str, list[str]] = {}
    for container in containers_of(spec):
        resources = container.get("resources") or {}
        own = _compute_usage(
            dict.fromkeys(resources.get("requests") or (), 0),
            dict.fromkeys(resources.get("limits") or (), 0),
        )
        for name in sorted(wanted - own.keys()):
            found.setdefault(name, []).append(container["name"])
    return {name: sorted(set(found[name])) for name in sorted(found)}


def matches_scopes(quota: JsonObject, resource: Resource, item: JsonObject) -> bool:
    """Whether an object is in all scopes of a quota; only pods are in any scope."""
    spec = quota.get("spec") or {}
    scopes = [{"scopeName": each, "operator": "Exists"} for each in spec.get("scopes") or ()]
    scopes += (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    if not scopes:
        return True
    return resource.kind == "Pod" and all(_in_scope(each, item) for each in scopes)


def _in_scope(scope: JsonObject, pod: JsonObject) -> bool:
    spec, name = pod["spec"], scope.get("scopeName")
    if name in {"Terminating", "NotTerminating"}:
        return has_deadline(pod) is (name == "Terminating")
    if name in {"BestEffort", "NotBestEffort"}:
        return (qos_class(spec) == "BestEffort") is (name == "BestEffort")
    if name == "PriorityClass":
        return _matches_priority(scope, spec.get("priorityClassName") or "")
    return name == "CrossNamespacePodAffinity" and _crosses_namespaces(spec.get("affinity") or {})


def has_deadline(pod: JsonObject) -> bool:
    """Whether a pod is in the scope Terminating: it has an active deadline."""
    seconds = pod["spec"].get("activeDeadlineSeconds")
    return seconds is not None and seconds >= 0


def _matches_priority(scope: JsonObject, name: str) -> bool:
    values = scope.get("values") or ()
    match scope.get("operator"):
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
        case "In":
            return name in values if name else False
        case "NotIn":
            return name not in values
    return False


def _crosses_namespaces(affinity: JsonObject) -> bool:
    for kind in _AFFINITIES:
        terms = affinity.get(kind) or {}
        weighted = [each.get("podAffinityTerm") or {} for each in terms.get(_PREFERRED) or ()]
        for term in [*(terms.get(_REQUIRED) or ()), *weighted]:
            if term.get("namespaces") or term.get("namespaceSelector") is not None:
                return True
    return False


def charge(
    registry: Registry, resource: Resource, item: JsonObject, old: JsonObject | None = None
) -> list[JsonObject]:
    """The quotas of the namespace with what *item* uses added to them; 403 if one is exceeded.

    The caller stores them with `store_charges` once the object itself is stored.
    """
    namespace = item["metadata"].get("namespace")
    records = registry.store.table("resourcequotas").in_namespace(namespace) if namespace else {}
    if not records or not _is_charged(resource, item, old):
        return []
    charged = []
    for key in sorted(records):
        quota = records[key].object()
        hard = (quota.get("spec") or {}).get("hard") or {}
        limited = limited_names(resource, hard)
        if not limited or not matches_scopes(quota, resource, item):
            continue
        _check_set(resource, item, quota, limited)
        status = quota.get("status") or {}
        if status.get("hard") != hard:
            status = count(registry, quota)
        before = old if old is not None and matches_scopes(quota, resource, old) else None
        found = _more_than(resource, item, before, registry.clock())
        delta = {name: found[name] for name in limited if found.get(name, 0) > 0}
        if not delta:
            continue
        used = amounts(status.get("used"))
        _check_left(resource, item, quota, delta, used)
        add(used, delta)
        charged.append(quota | {"status": {"hard": hard, "used": texts_of(used)}})
    return charged


def store_charges(registry: Registry, quotas: Iterable[JsonObject]) -> None:
    """Store the quotas that `charge` returned."""
    resource = stored("resourcequotas")
    for quota in quotas:
        record = registry.store.get("resourcequotas", _key(quota))
        if record is not None:
            registry.write(resource, quota, record.object())


def count(registry: Registry, quota: JsonObject) -> JsonObject:
    """The status of a quota, counted from all objects of its namespace."""
    namespace = quota["metadata"]["namespace"]
    hard: Mapping[str, str] = (quota.get("spec") or {}).get("hard") or {}
    used: Amounts = dict.fromkeys(hard, 0)
    for resource in registry.stored_resources():
        limited = limited_names(resource, hard) if resource.namespaced else []
        if not limited:
            continue
        for record in registry.store.table(resource.storage).in_namespace(namespace).values():
            item = record.object()
            if matches_scopes(quota, resource, item):
                found = usage(resource, item, registry.clock())
                add(used, {name: found[name] for name in limited if name in found})
    return {"hard": dict(hard), "used": texts_of(used)}


def _key(quota: JsonObject) -> Key:
    return Key(quota["metadata"]["namespace"], quota["metadata"]["name"])


def _is_charged(resource: Resource, item: JsonObject, old: JsonObject | None) -> bool:
    if old is None:
        return True
    if resource.kind == "Pod":
        return has_deadline(item) != has_deadline(old)
    return resource.kind in _CHARGED_ON_UPDATE


def _more_than(
    resource: Resource, item: JsonObject, before: JsonObject | None, now: float
) -> Amounts:
    """What an object uses more than *before*, its state before an update."""
    found = usage(resource, item, now)
    if before is not None:
        earlier = usage(resource, before, now)
        found = {name: amount - earlier.get(name, 0) for name, amount in found.items()}
    return found


def _check_set(resource: Resource, item: JsonObject, quota: JsonObject, limited: list[str]) -> None:
    if resource.kind != "Pod":
        return
    missing = missing_resources(item, limited)
    if missing:
        texts = [f"{name} for: {','.join(containers)}" for name, containers in missing.items()]
        why = f"failed quota: {quota['metadata']['name']}: must specify {'; '.join(texts)}"
        raise forbidden(resource.qualified, item["metadata"].get("name", ""), why)


def _check_left(
    resource: Resource, item: JsonObject, quota: JsonObject, delta: Amounts, used: Amounts
) -> None:
    hard = amounts(quota["spec"]["hard"])
    exceeded = sorted(name for name in delta if used.get(name, 0) + delta[name] > hard[name])
    if not exceeded:
        return

    def shown(found: Mapping[str, int]) -> str:
        return ",".join(f"{name}={text_of(name, found.get(name, 0))}" for name in exceeded)

    limits = ",".join(f"{name}={quota['spec']['hard'][name]}" for name in exceeded)
    why = (
        f"exceeded quota: {quota['metadata']['name']}, requested: {shown(delta)}, "
        f"used: {shown(used)}, limited: {limits}"
    )
    raise forbidden(resource.qualified, item["metadata"].get("name", ""), why)
