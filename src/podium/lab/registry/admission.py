"""What is decided about a new object by looking at others: its namespace, its priority, defaults.

Upstream: plugin/pkg/admission: namespace/lifecycle, priority, defaulttolerationseconds,
storage/storageclass/setdefault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.lab.api.resources import Resource, stored
from podium.lab.api.status import JsonDict, forbidden, not_found, terminating
from podium.lab.registry import addresses
from podium.lab.store.store import Key
from podium.objects.names import quoted

if TYPE_CHECKING:
    from podium.lab.registry.registry import Registry

#: Namespaces that exist from the beginning; the first three cannot be deleted.
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_OUTAGES = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def found(registry: Registry) -> None:
    """Make what a cluster always has."""
    for name in NAMESPACES:
        if registry.find("namespaces", name) is None:
            registry.create("namespaces", {"metadata": {"name": name}})
    for name, value in _SYSTEM.items():
        if registry.find("priorityclasses", name) is None:
            described = "Used for system critical pods that must run in the cluster."
            registry.create(
                "priorityclasses",
                {"metadata": {"name": name}, "value": value, "description": described},
            )


def enter(registry: Registry, row: Resource, namespace: str, name: str) -> None:
    """Refuse a namespace that does not exist or is going away."""
    if not row.namespaced:
        return
    record = registry.store.get("namespaces", Key("", namespace))
    if record is None:
        raise not_found("namespaces", namespace)
    if record.fields.get("status.phase") == "Terminating":
        raise terminating(row.qualified, name, namespace)


def admit(registry: Registry, row: Resource, item: JsonDict) -> None:
    """Complete a new object."""
    if row.kind == "Pod":
        _prioritize(registry, item)
        _tolerate_outages(item["spec"])
    elif row.kind == "PersistentVolumeClaim":
        _choose_storage(registry, item)
    elif row.kind == "PriorityClass":
        _refuse_second_default(registry, row, item)
    elif row.kind == "Service":
        addresses.assign(registry, item)


def readmit(registry: Registry, row: Resource, item: JsonDict, old: JsonDict) -> None:
    """Complete an object that replaces another."""
    if row.kind == "Pod":
        spec, before = item["spec"], old["spec"]
        for field in ("priority", "preemptionPolicy"):
            if field in before:
                spec.setdefault(field, before[field])
        _tolerate_outages(spec)
    elif row.kind == "PriorityClass":
        _refuse_second_default(registry, row, item)
    elif row.kind == "Service":
        addresses.keep(item, old)
        addresses.assign(registry, item)


def refuse_deletion(row: Resource, name: str) -> None:
    """Some objects stay."""
    if row.kind == "Namespace" and name in NAMESPACES[:3]:
        raise forbidden("namespaces", name, "this namespace may not be deleted")


def _prioritize(registry: Registry, item: JsonDict) -> None:
    spec = item["spec"]
    name = spec.get("priorityClassName") or ""
    chosen: JsonDict | None = None
    if name:
        chosen = registry.find("priorityclasses", name)
        if chosen is None:
            pod = item["metadata"].get("name") or item["metadata"].get("generateName", "")
            why = f"no PriorityClass with name {name} was found"
            raise forbidden("pods", pod, why)
    else:
        chosen = default_priority_class(registry)
        if chosen is not None:
            spec["priorityClassName"] = chosen["metadata"]["name"]
    priority = 0 if chosen is None else chosen.get("value", 0)
    policy = "PreemptLowerPriority"
    if chosen is not None:
        policy = chosen.get("preemptionPolicy") or policy
    for field, computed in (("priority", priority), ("preemptionPolicy", policy)):
        given = spec.get(field)
        if given is not None and given != computed:
            raise _mismatch(item, field, given, computed)
        spec[field] = computed


def _mismatch(item: JsonDict, field: str, given: object, computed: object) -> Exception:
    pod = item["metadata"].get("name") or item["metadata"].get("generateName", "")
    if field == "priority":
        why = (
            f"the integer value of priority ({given}) must not be provided in pod spec; "
            f"priority admission controller computed {computed} from the given PriorityClass name"
        )
    else:
        why = (
            f"the string value of PreemptionPolicy ({given}) must not be provided in pod spec; "
            f"priority admission controller computed {computed} from the given PriorityClass name"
        )
    return forbidden("pods", pod, why)


def default_priority_class(registry: Registry) -> JsonDict | None:
    """The class of pods that name none: the lowest of the global defaults, if there are any."""
    table = registry.store.table(stored("priorityclasses").storage)
    defaults = [
        each.object() for each in table.records.values() if b'"globalDefault":true' in each.data
    ]
    defaults = [each for each in defaults if each.get("globalDefault")]
    return min(defaults, key=lambda each: each.get("value", 0), default=None)


def _refuse_second_default(registry: Registry, row: Resource, item: JsonDict) -> None:
    if not item.get("globalDefault"):
        return
    current = default_priority_class(registry)
    name = item["metadata"].get("name", "")
    if current is not None and current["metadata"]["name"] != name:
        other = current["metadata"]["name"]
        raise forbidden(
            row.qualified,
            name,
            f"PriorityClass {quoted(other)} is already marked as default. "
            "Only one default can exist",
        )


def _tolerate_outages(spec: JsonDict) -> None:
    """Pods stay for five minutes on a node that is not ready, unless they say otherwise."""
    tolerations = spec.get("tolerations") or []
    wanting = [key for key in _OUTAGES if not any(_covers(each, key) for each in tolerations)]
    if wanting:
        spec["tolerations"] = [*tolerations, *map(_five_minutes, wanting)]


def _covers(toleration: JsonDict, key: str) -> bool:
    effect = toleration.get("effect") or "NoExecute"
    return effect == "NoExecute" and (toleration.get("key") or key) == key


def _five_minutes(key: str) -> JsonDict:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


def _choose_storage(registry: Registry, item: JsonDict) -> None:
    """A claim that names no storage class gets the default one, the newest if there are two."""
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
