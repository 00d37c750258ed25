"""The leases of a lab's nodes, which kubelets renew in a cluster.

`kubectl describe node` shows them. Nothing in a lab depends on them: conditions say whether a node
is ready.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from podium.lab.api.status import StatusError

if TYPE_CHECKING:
    from podium.lab.registry.registry import Registry

NAMESPACE: Final = "kube-node-lease"
#: How often leases are renewed, at least; in a large lab, ten of them each second.
_SECONDS: Final = 10.0
_EACH_SECOND: Final = 10
#: How long a lease holds, as kubelets write it.
_DURATION: Final = 40


async def keep_node_leases(registry: Registry) -> None:
    """Renew the leases of all nodes, over and over."""
    while True:
        nodes = 0
        with suppress(StatusError):  # somebody deleted the namespace, or wrote a lease
            nodes = renew_node_leases(registry)
        await asyncio.sleep(max(_SECONDS, nodes / _EACH_SECOND))


def renew_node_leases(registry: Registry) -> int:
    """Renew the lease of every node, and delete those of nodes that are gone; how many nodes."""
    nodes = {each["metadata"]["name"]: each["metadata"]["uid"] for each in registry.list("Node")}
    leases = {each["metadata"]["name"]: each for each in registry.list("Lease", NAMESPACE)}
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    for name, uid in nodes.items():
        lease = leases.pop(name, None)
        if lease is not None:
            spec = {**(lease.get("spec") or {}), "renewTime": now}
            registry.update("Lease", {**lease, "spec": spec}, namespace=NAMESPACE)
            continue
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
        spec = {"holderIdentity": name, "leaseDurationSeconds": _DURATION, "renewTime": now}
        about = {"name": name, "ownerReferences": [owner]}
        registry.create("Lease", {"metadata": about, "spec": spec}, namespace=NAMESPACE)
    for name, lease in leases.items():
        owners = lease["metadata"].get("ownerReferences") or ()
        if any(each.get("kind") == "Node" for each in owners):
            registry.delete("Lease", name, NAMESPACE)
    return len(nodes)
