"""The pods of a workload: its selector, pods made from its template, adoption and release.

Upstream: pkg/controller/controller_ref_manager.go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import msgspec

from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.object_fields import (
    Key,
    is_terminating,
    remove_owner,
    uid_of,
)
from podium.lab.controllers.framework.pods import PodInfo
from podium.lab.registry.metadata import NAME_LETTERS
from podium.objects.kinds.meta import JsonObject, LabelSelector
from podium.objects.selectors.selectors import NOTHING, Selector, SelectorError, from_label_selector


def compile_selector(written: Any) -> Selector:
    """The selector of a `LabelSelector` field; absent and invalid ones select nothing."""
    return NOTHING if written is None else _compile(msgspec.json.encode(written))


@lru_cache(maxsize=1 << 12)
def _compile(text: bytes) -> Selector:
    try:
        return from_label_selector(msgspec.json.decode(text, type=LabelSelector))
    except (SelectorError, msgspec.ValidationError):
        return NOTHING


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


def pod_from_template(template: JsonObject, owner: JsonObject) -> JsonObject:
    """A pod managed by *owner*; the API server generates its name."""
    written = template.get("metadata") or {}
    metadata: JsonObject = {
        "generateName": f"{owner['metadata']['name']}-",
        "namespace": owner["metadata"]["namespace"],
        "labels": dict(written.get("labels") or {}),
        "ownerReferences": [controller_ref(owner)],
    }
    for part in ("annotations", "finalizers"):
        if written.get(part):
            metadata[part] = written[part]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": dict(template.get("spec") or {}),
    }


def template_hash(value: Any, length: int = 10) -> str:
    """A hash of a JSON value that can stand in a name; the order of keys does not matter."""
    data = hashlib.sha256(msgspec.json.encode(value, order="sorted")).digest()
    number = int.from_bytes(data)
    letters = []
    for _ in range(length):
        number, letter = divmod(number, len(NAME_LETTERS))
        letters.append(NAME_LETTERS[letter])
    return "".join(letters)
