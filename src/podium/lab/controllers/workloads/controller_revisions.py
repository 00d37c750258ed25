"""The versions of a template that daemon sets and stateful sets have had, as ControllerRevisions.

A set that comes from another cluster without its revisions is taken to be up to date: the hash
that its pods have is the name of its present template.

Upstream: pkg/controller/history.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from podium.lab.controllers.framework.controller_ref import reference
from podium.lab.controllers.framework.object_fields import controller_of, key_of, labels_of, uid_of
from podium.lab.controllers.framework.pod_template import digest
from podium.objects.kinds.meta import JsonObject

if TYPE_CHECKING:
    from podium.lab.controllers.framework.cluster import Cluster

HASH: Final = "controller-revision-hash"
_KEPT: Final = 10


def present_revision(cluster: Cluster, owner: JsonObject, *, prefix: str = "") -> str:
    """The hash of the present template, which is written down if it is new.

    *prefix* stands before the hash in the label of pods.
    """
    revisions = _revisions(cluster, owner)
    template = owner["spec"]["template"]
    found = next((each for each in revisions if _template(each) == template), None)
    if found is None:
        tag = _hash_of_pods(cluster, owner) if not revisions else ""
        found = _write(cluster, owner, revisions, tag or f"{prefix}{digest(template)}")
    elif found is not revisions[-1]:
        number = revisions[-1]["revision"] + 1

        def again(it: JsonObject) -> None:
            it["revision"] = number

        cluster.change("ControllerRevision", key_of(found), again)
    _forget(cluster, owner, revisions, found)
    return labels_of(found)[HASH]


def template_of(cluster: Cluster, owner: JsonObject, tag: str) -> JsonObject:
    """The template that pods with this hash are made of; the present one if it is forgotten."""
    revisions = _revisions(cluster, owner)
    found = next((each for each in revisions if labels_of(each).get(HASH) == tag), None)
    present: JsonObject = owner["spec"]["template"]
    return present if found is None else _template(found)


def _revisions(cluster: Cluster, owner: JsonObject) -> list[JsonObject]:
    uid = uid_of(owner)
    own = [
        each
        for each in cluster.within("ControllerRevision", owner["metadata"]["namespace"])
        if (by := controller_of(each)) is not None and by["uid"] == uid
    ]
    return sorted(own, key=lambda each: each.get("revision", 0))


def _template(revision: JsonObject) -> JsonObject:
    template = ((revision.get("data") or {}).get("spec") or {}).get("template") or {}
    return {name: part for name, part in template.items() if name != "$patch"}


def _hash_of_pods(cluster: Cluster, owner: JsonObject) -> str:
    pods = cluster.pods.of_owner(uid_of(owner))
    hashes = Counter(pod.labels[HASH] for pod in pods if HASH in pod.labels)
    return hashes.most_common(1)[0][0] if hashes else ""


def _write(
    cluster: Cluster, owner: JsonObject, revisions: list[JsonObject], tag: str
) -> JsonObject:
    name = owner["metadata"]["name"]
    labels = (owner["spec"]["template"].get("metadata") or {}).get("labels") or {}
    return cluster.create(
        "ControllerRevision",
        {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": tag if tag.startswith(f"{name}-") else f"{name}-{tag}",
                "namespace": owner["metadata"]["namespace"],
                "labels": {**labels, HASH: tag},
                "ownerReferences": [reference(owner)],
            },
            "data": {"spec": {"template": {**owner["spec"]["template"], "$patch": "replace"}}},
            "revision": revisions[-1]["revision"] + 1 if revisions else 1,
        },
    )


def _forget(
    cluster: Cluster, owner: JsonObject, revisions: list[JsonObject], present: JsonObject
) -> None:
    """Delete the oldest revisions that no pod has."""
    limit = owner["spec"].get("revisionHistoryLimit")
    surplus = len(revisions) - (_KEPT if limit is None else limit)
    if surplus <= 0:
        return
    live = {pod.labels.get(HASH) for pod in cluster.pods.of_owner(uid_of(owner))}
    live.add(labels_of(present)[HASH])
    old = [each for each in revisions if labels_of(each).get(HASH) not in live]
    for each in old[:surplus]:
        cluster.delete(each)
