"""Resource quotas at admission: a new object must fit into what its namespace has left.

The use so far is `status.used` of the quota, as in a cluster: admission adds what it lets in, and
the quota controller counts again when objects leave. A quota whose status was not counted yet is
counted at once.

Upstream: apiserver/pkg/admission/plugin/resourcequota/controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from podium.lab.api.resources import Resource, stored
from podium.lab.api.status import forbidden
from podium.lab.registry.quota_usage import (
    has_deadline,
    limited_names,
    matches_scopes,
    missing_resources,
    usage,
)
from podium.lab.registry.resource_lists import Amounts, add, amounts, text_of, texts_of
from podium.lab.store.store import Key
from podium.objects.kinds.meta import JsonObject

if TYPE_CHECKING:
    from podium.lab.registry.registry import Registry

#: Kinds whose updates can use more than before.
_CHARGED_ON_UPDATE = frozenset({"Service", "PersistentVolumeClaim"})


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
