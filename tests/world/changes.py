"""Changes of the cluster, as its users and controllers make them. Each finds its own target."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from podium.lab.api.options import DeleteOptions
from podium.lab.api.status import StatusError
from podium.lab.registry.registry import Registry
from world import objects

Act = Callable[[Registry, random.Random], None]


def apply(registry: Registry, act: str, number: int) -> None:
    """Make a change; one that the API server refuses is none."""
    with suppress(StatusError):
        _ACTS[act](registry, random.Random(number))  # noqa: S311


def acts() -> frozenset[str]:
    """The names of all changes."""
    return frozenset(_ACTS)


def _one(registry: Registry, rng: random.Random, kind: str, **selector: str) -> Any:
    """An object of a kind; 404 if there is none."""
    found = registry.list(kind, **selector)
    return rng.choice(found) if found else registry.get(kind, "none", "default")


def _edit(registry: Registry, item: Any, change: Callable[[Any], None]) -> None:
    def edited(found: Any) -> Any:
        change(found)
        return found

    metadata = item["metadata"]
    registry.modify(item["kind"], metadata["name"], metadata.get("namespace", ""), change=edited)


def _delete(registry: Registry, item: Any, grace: int | None = None) -> None:
    metadata = item["metadata"]
    options = DeleteOptions(grace=grace, uid=metadata["uid"])
    registry.delete(item["kind"], metadata["name"], metadata.get("namespace", ""), options)


def _create_pod(registry: Registry, rng: random.Random) -> None:
    made = objects.pod(rng.choice(objects.POD_NAMES), rng)
    if made["spec"].get("volumes"):
        name = f"c-{made['metadata']['name']}"
        if registry.find("PersistentVolumeClaim", name, "default") is None:
            registry.create("PersistentVolumeClaim", objects.claim(name, rng))
    registry.create("Pod", made)


def _replace_pod(registry: Registry, rng: random.Random) -> None:
    """A pod under the same name, in the same moment: watchers may never see the one before."""
    old = _one(registry, rng, "Pod")
    _unfinalize(registry, old)
    _delete(registry, registry.get("Pod", old["metadata"]["name"], "default"), grace=0)
    registry.create("Pod", objects.pod(old["metadata"]["name"], rng))


def _unfinalize(registry: Registry, pod: Any) -> None:
    if pod["metadata"].get("finalizers"):
        _edit(registry, pod, lambda it: it["metadata"].pop("finalizers", None))


def let_go(registry: Registry, name: str) -> None:
    """Remove a pod, also one that something keeps while it is being deleted."""
    pod = registry.find("Pod", name, "default")
    if pod is not None:
        _unfinalize(registry, pod)
        if not pod["metadata"].get("deletionTimestamp"):
            _delete(registry, pod, grace=0)


def _delete_pod(registry: Registry, rng: random.Random) -> None:
    _delete(registry, _one(registry, rng, "Pod"))


def _remove_pod(registry: Registry, rng: random.Random) -> None:
    pod = _one(registry, rng, "Pod")
    _unfinalize(registry, pod)
    _delete(registry, pod, grace=0)


def _delete_nominated(registry: Registry, rng: random.Random) -> None:
    """Delete a pod that waits for the room that its preemption makes, if there is one."""
    pods = [
        each
        for each in registry.list("Pod")
        if each["status"].get("nominatedNodeName") and not each["spec"].get("nodeName")
    ]
    if pods:
        _delete(registry, rng.choice(pods), grace=rng.choice((None, 0)))


def _evict_pod(registry: Registry, rng: random.Random) -> None:
    registry.evict(_one(registry, rng, "Pod")["metadata"]["name"], "default")


def _label_pod(registry: Registry, rng: random.Random) -> None:
    pod = _one(registry, rng, "Pod")
    _edit(registry, pod, lambda it: it["metadata"].setdefault("labels", {}).update(seen="yes"))


def _ungate_pod(registry: Registry, rng: random.Random) -> None:
    gated = [each for each in registry.list("Pod") if each["spec"].get("schedulingGates")]
    if gated:
        _edit(registry, rng.choice(gated), lambda it: it["spec"].pop("schedulingGates"))


def _foreign_pod(registry: Registry, rng: random.Random) -> None:
    """A pod that another scheduler places, or that its creator has placed."""
    pod = objects.pod(rng.choice(objects.POD_NAMES), rng, gates=False)
    pod["spec"].pop("volumes", None)
    node = _one(registry, rng, "Node")["metadata"]["name"]
    if rng.random() < 0.5:
        pod["spec"]["nodeName"] = node
        registry.create("Pod", pod)
    else:
        pod["spec"]["schedulerName"] = "another"
        registry.create("Pod", pod)
        registry.bind(pod["metadata"]["name"], "default", node)


def _create_node(registry: Registry, rng: random.Random) -> None:
    made = objects.node(f"n{rng.randrange(8)}", rng)
    status = made["status"]
    name = made["metadata"]["name"]
    registry.create("Node", made)
    registry.modify(
        "Node", name, change=lambda it: it | {"status": ready(status)}, subresource="status"
    )


def ready(status: Any) -> Any:
    """The status of a node whose kubelet reports that it is ready."""
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {**status, "conditions": [condition]}


def _delete_node(registry: Registry, rng: random.Random) -> None:
    _delete(registry, _one(registry, rng, "Node"))


def _cordon_node(registry: Registry, rng: random.Random) -> None:
    def toggle(node: Any) -> None:
        node["spec"]["unschedulable"] = not node["spec"].get("unschedulable", False)

    _edit(registry, _one(registry, rng, "Node"), toggle)


def _taint_node(registry: Registry, rng: random.Random) -> None:
    def toggle(node: Any) -> None:
        others = [each for each in node["spec"].get("taints") or () if each["key"] != "dedicated"]
        had = len(others) < len(node["spec"].get("taints") or ())
        node["spec"]["taints"] = others if had else [*others, objects.taint(rng)]

    _edit(registry, _one(registry, rng, "Node"), toggle)


def _resize_node(registry: Registry, rng: random.Random) -> None:
    name = _one(registry, rng, "Node")["metadata"]["name"]
    room = objects.node(name, rng)["status"]

    def resized(node: Any) -> Any:
        node["status"].update(room)
        return node

    registry.modify("Node", name, change=resized, subresource="status")


def _label_node(registry: Registry, rng: random.Random) -> None:
    def label(node: Any) -> None:
        node["metadata"]["labels"]["disk"] = rng.choice(("ssd", "hdd"))

    _edit(registry, _one(registry, rng, "Node"), label)


def _scale_set(registry: Registry, rng: random.Random) -> None:
    name, replicas = f"set{rng.randrange(2)}", rng.randrange(5)
    if registry.find("ReplicaSet", name, "default") is None:
        registry.create("ReplicaSet", objects.replica_set(name, replicas, rng))
    else:
        found = registry.get("ReplicaSet", name, "default")
        _edit(registry, found, lambda it: it["spec"].update(replicas=replicas))


def _delete_set(registry: Registry, rng: random.Random) -> None:
    _delete(registry, _one(registry, rng, "ReplicaSet"))


def _create_service(registry: Registry, rng: random.Random) -> None:
    registry.create("Service", objects.service(f"s{rng.randrange(2)}"))


def _delete_service(registry: Registry, rng: random.Random) -> None:
    registry.delete("Service", f"s{rng.randrange(2)}", "default")


def _create_budget(registry: Registry, rng: random.Random) -> None:
    registry.create("PodDisruptionBudget", objects.budget(f"b{rng.randrange(2)}", rng))


def _delete_budget(registry: Registry, rng: random.Random) -> None:
    registry.delete("PodDisruptionBudget", f"b{rng.randrange(2)}", "default")


def _delete_claim(registry: Registry, rng: random.Random) -> None:
    _delete(registry, _one(registry, rng, "PersistentVolumeClaim"))


def _compact(registry: Registry, rng: random.Random) -> None:
    """Forget the history of some resources: a watch that is behind must list again."""
    for _, table in registry.store.tables():
        if rng.random() < 0.7:
            table.compact(registry.store.version)


def _resize_pod(registry: Registry, rng: random.Random) -> None:
    """Change what a running pod requests, in its spec and in its status, as a kubelet does."""
    running = [
        each
        for each in registry.list("Pod")
        if each["spec"].get("nodeName") and each["status"].get("phase") == "Running"
    ]
    if not running:
        return
    cpu = rng.choice(("10m", "100m", "400m"))

    def resized(pod: Any) -> Any:
        for container in pod["spec"]["containers"]:
            container["resources"]["requests"]["cpu"] = cpu
        return pod

    def reported(pod: Any) -> Any:
        pod["status"]["containerStatuses"] = [
            {
                "name": each["name"],
                "image": each["image"],
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "allocatedResources": each["resources"]["requests"],
                "resources": each["resources"],
            }
            for each in pod["spec"]["containers"]
        ]
        return pod

    name = rng.choice(running)["metadata"]["name"]
    registry.modify("Pod", name, "default", change=resized, subresource="resize")
    registry.modify("Pod", name, "default", change=reported, subresource="status")


def _burst(registry: Registry, rng: random.Random) -> None:
    """Many pods that no rule can tell apart."""
    like = objects.pod("like", rng, gates=False)
    like["spec"].pop("volumes", None)
    for name in rng.sample(objects.POD_NAMES, 10):
        if registry.find("Pod", name, "default") is None:
            metadata = {**like["metadata"], "name": name}
            registry.create("Pod", {**like, "metadata": metadata})


def _publish_devices(registry: Registry, rng: random.Random) -> None:
    name = _one(registry, rng, "Node")["metadata"]["name"]
    registry.create("ResourceSlice", objects.device_slice(name, rng))


def _remove_devices(registry: Registry, rng: random.Random) -> None:
    _delete(registry, _one(registry, rng, "ResourceSlice"))


def _claiming_pod(registry: Registry, rng: random.Random) -> None:
    """A pod with a claim of devices, which it may share with a pod before it."""
    made = objects.pod(rng.choice(objects.POD_NAMES), rng)
    made["spec"].pop("volumes", None)
    name = f"d-{rng.randrange(4)}"
    if registry.find("ResourceClaim", name, "default") is None:
        registry.create("ResourceClaim", objects.device_claim(name, rng))
    made["spec"]["resourceClaims"] = [{"name": "some", "resourceClaimName": name}]
    registry.create("Pod", made)


def _extended_pod(registry: Registry, rng: random.Random) -> None:
    """A pod that asks for devices as for any resource: a claim is made for it."""
    made = objects.pod(rng.choice(objects.POD_NAMES), rng)
    made["spec"].pop("volumes", None)
    resources = made["spec"]["containers"][0]["resources"]
    resources["limits"] = {objects.EXTENDED_RESOURCE: rng.choice(("1", "1", "2"))}
    resources["requests"] |= resources["limits"]
    registry.create("Pod", made)


def _preferring_burst(registry: Registry, rng: random.Random) -> None:
    """Pods with the same preferences, one after the other."""
    _burst_like(registry, objects.preferring(rng), rng)


def _spreading_burst(registry: Registry, rng: random.Random) -> None:
    """Equal pods that must spread over zones, one after the other."""
    _burst_like(registry, objects.spreading(rng), rng)


def _burst_like(registry: Registry, like: Any, rng: random.Random) -> None:
    for name in rng.sample(objects.POD_NAMES, 8):
        if registry.find("Pod", name, "default") is None:
            registry.create("Pod", {**like, "metadata": {**like["metadata"], "name": name}})


def _slot_pod(registry: Registry, rng: random.Random) -> None:
    """A pod for which a reserve rule takes a slot of its node."""
    made = objects.pod(rng.choice(objects.POD_NAMES), rng)
    made["spec"].pop("volumes", None)
    made["metadata"]["labels"]["slot"] = "yes"
    registry.create("Pod", made)


def _second_pod(registry: Registry, rng: random.Random) -> None:
    """A pod of the second profile."""
    made = objects.pod(rng.choice(objects.POD_NAMES), rng)
    made["spec"].pop("volumes", None)
    made["spec"]["schedulerName"] = "second"
    registry.create("Pod", made)


def _create_group(registry: Registry, rng: random.Random) -> None:
    """A group, with as many pods as it needs or one less."""
    name = f"g{rng.randrange(3)}"
    if registry.find("PodGroup", name, "default") is None:
        registry.create("PodGroup", objects.pod_group(name, rng))
    for _ in range(rng.randint(1, 3)):
        _add_member(registry, name, rng)


def _join_group(registry: Registry, rng: random.Random) -> None:
    """A pod of a group, which may not exist yet."""
    _add_member(registry, f"g{rng.randrange(3)}", rng)


def _add_member(registry: Registry, group: str, rng: random.Random) -> None:
    made = objects.pod(rng.choice(objects.POD_NAMES), rng, gates=False)
    made["spec"].pop("volumes", None)
    made["spec"]["schedulingGroup"] = {"podGroupName": group}
    made["spec"]["priorityClassName"] = "middle"
    with suppress(StatusError):
        registry.create("Pod", made)


def _delete_group(registry: Registry, rng: random.Random) -> None:
    _delete(registry, _one(registry, rng, "PodGroup"))


_ACTS: dict[str, Act] = {
    "create-pod": _create_pod,
    "replace-pod": _replace_pod,
    "delete-pod": _delete_pod,
    "remove-pod": _remove_pod,
    "delete-nominated": _delete_nominated,
    "evict-pod": _evict_pod,
    "label-pod": _label_pod,
    "ungate-pod": _ungate_pod,
    "foreign-pod": _foreign_pod,
    "create-node": _create_node,
    "delete-node": _delete_node,
    "cordon-node": _cordon_node,
    "taint-node": _taint_node,
    "resize-node": _resize_node,
    "label-node": _label_node,
    "scale-set": _scale_set,
    "delete-set": _delete_set,
    "create-service": _create_service,
    "delete-service": _delete_service,
    "create-budget": _create_budget,
    "delete-budget": _delete_budget,
    "delete-claim": _delete_claim,
    "compact": _compact,
    "resize-pod": _resize_pod,
    "burst": _burst,
    "publish-devices": _publish_devices,
    "remove-devices": _remove_devices,
    "claiming-pod": _claiming_pod,
    "extended-pod": _extended_pod,
    "preferring-burst": _preferring_burst,
    "spreading-burst": _spreading_burst,
    "slot-pod": _slot_pod,
    "second-pod": _second_pod,
    "create-group": _create_group,
    "join-group": _join_group,
    "delete-group": _delete_group,
}
