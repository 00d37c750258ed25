"""Who manages which pods: references to owners, adopting and letting go.

Upstream: pkg/controller/controller_ref_manager.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from podium.lab.controllers.framework.object_fields import is_leaving, uid_of
from podium.lab.controllers.framework.pod_info import Key
from podium.objects.kinds.meta import JsonObject, LabelSelector
from podium.objects.selectors.selectors import NOTHING, Selector, SelectorError, from_label_selector

if TYPE_CHECKING:
    from podium.lab.controllers.framework.cluster import Cluster


def reference(owner: JsonObject) -> JsonObject:
    """The reference by which *owner* manages another object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def selector(written: Any) -> Selector:
    """A label selector, ready to match; absent and invalid ones select nothing."""
    return NOTHING if written is None else _compiled(msgspec.json.encode(written))


@lru_cache(maxsize=1 << 12)
def _compiled(text: bytes) -> Selector:
    try:
        return from_label_selector(msgspec.json.decode(text, type=LabelSelector))
    except (SelectorError, msgspec.ValidationError):
        return NOTHING


def claim(cluster: Cluster, owner: JsonObject, wanted: Selector, strangers: Iterable[Key]) -> None:
    """Let go of pods that are not the owner's any more, and adopt those that could be.

    *strangers* are the keys of pods whose labels changed since the last time.
    """
    if is_leaving(owner):
        return
    uid = uid_of(owner)
    owned = cluster.pods.of_owner(uid).pods
    for key in strangers:
        pod = owned.get(key)
        if pod is not None and not pod.leaving and not wanted.matches(pod.labels):
            cluster.change("Pod", key, lambda found: _let_go(found, uid))
    for free in list(cluster.pods.unmanaged(owner["metadata"]["namespace"]).values()):
        if free.active and wanted.matches(free.labels):
            cluster.change("Pod", free.key, lambda found: adopted(found, owner))


def adopted(found: JsonObject, owner: JsonObject) -> None:
    """Make *owner* the one who manages the object."""
    metadata = found["metadata"]
    metadata["ownerReferences"] = [*(metadata.get("ownerReferences") or ()), reference(owner)]


def _let_go(found: JsonObject, uid: str) -> None:
    """The object without its reference to the owner."""
    metadata = found["metadata"]
    kept = [each for each in metadata.get("ownerReferences") or () if each.get("uid") != uid]
    metadata["ownerReferences"] = kept
    if not kept:
        del metadata["ownerReferences"]
