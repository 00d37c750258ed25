"""Controller references: which workload manages an object, adoption and release of pods.

Upstream: pkg/controller/controller_ref_manager.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.object_fields import (
    Key,
    is_terminating,
    remove_owner,
    uid_of,
)
from podium.lab.controllers.framework.pod_info import PodInfo
from podium.objects.kinds.meta import JsonObject
from podium.objects.selectors.selectors import Selector


def controller_ref(owner: JsonObject) -> JsonObject:
    """The owner reference that makes *owner* the managing controller of an object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def adopt(item: JsonObject, owner: JsonObject) -> None:
    """Add the controller reference of *owner* to an object."""
    metadata = item["metadata"]
    metadata["ownerReferences"] = [*(metadata.get("ownerReferences") or ()), controller_ref(owner)]


def claim_pods(
    cluster: Cluster,
    owner: JsonObject,
    selector: Selector,
    relabelled: Iterable[Key],
    *,
    may_own: Callable[[PodInfo], bool] = lambda _: True,
) -> None:
    """Release owned pods that *selector* no longer matches, and adopt matching orphans.

    *relabelled* are the keys of pods whose labels changed since the last sync; *may_own* says which
    orphans can be adopted at all.
    """
    if is_terminating(owner):
        return
    uid = uid_of(owner)
    owned = cluster.pods.of_owner(uid).pods
    for key in relabelled:
        pod = owned.get(key)
        if pod is not None and not pod.terminating and not selector.matches(pod.labels):
            cluster.update("Pod", key, lambda found: remove_owner(found, uid))
    for orphan in list(cluster.pods.orphans_in(owner["metadata"]["namespace"]).values()):
        if orphan.active and may_own(orphan) and selector.matches(orphan.labels):
            cluster.update("Pod", orphan.key, lambda found: adopt(found, owner))
