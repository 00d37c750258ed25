"""The history of templates of daemon sets and stateful sets, stored as ControllerRevisions.

A set that was imported without its revisions counts as up to date: its first revision gets the
hash that most of its pods carry.

Upstream: pkg/controller/history.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import controller_ref, template_hash
from podium.lab.controllers.framework.object_fields import (
    controller_of,
    key_of,
    labels_of,
    uid_of,
)
from podium.objects.kinds.meta import JsonObject

HASH_LABEL: Final = "controller-revision-hash"


def current_revision_hash(cluster: Cluster, owner: JsonObject, *, prefix: str = "") -> str:
    """The hash of the owner's present template; a new template is stored as a revision.

    The hash begins with *prefix*, as pods of stateful sets carry it.
    """
    revisions = _revisions(cluster, owner)
    template = owner["spec"]["template"]
    found = next((each for each in revisions if _template_of(each) == template), None)
    if found is None:
        carried = _most_common_hash(cluster, owner) if not revisions else ""
        tag = carried or f"{prefix}{template_hash(template)}"
        found = _create_revision(cluster, owner, revisions, tag)
    elif found is not revisions[-1]:
        number = revisions[-1]["revision"] + 1

        def renumber(it: JsonObject) -> None:
            it["revision"] = number

        cluster.update("ControllerRevision", key_of(found), renumber)
    _delete_old_revisions(cluster, owner, revisions, found)
    return labels_of(found)[HASH_LABEL]


def template_of_revision(cluster: Cluster, owner: JsonObject, tag: str) -> JsonObject:
    """The template with this hash; the present one if its revision was deleted."""
    revisions = _revisions(cluster, owner)
    found = next((each for each in revisions if labels_of(each).get(HASH_LABEL) == tag), None)
    present: JsonObject = owner["spec"]["template"]
    return present if found is None else _template_of(found)


def _revisions(cluster: Cluster, owner: JsonObject) -> list[JsonObject]:
    """The revisions of an owner, oldest first."""
    uid = uid_of(owner)
    own = [
        each
        for each in cluster.list_in_namespace("ControllerRevision", owner["metadata"]["namespace"])
        if (controller := controller_of(each)) is not None and controller["uid"] == uid
    ]
    return sorted(own, key=lambda each: each.get("revision", 0))


def _template_of(revision: JsonObject) -> JsonObject:
    template = ((revision.get("data") or {}).get("spec") or {}).get("template") or {}
    return {name: part for name, part in template.items() if name != "$patch"}


def _most_common_hash(cluster: Cluster, owner: JsonObject) -> str:
    pods = cluster.pods.of_owner(uid_of(owner))
    hashes = Counter(pod.labels[HASH_LABEL] for pod in pods if HASH_LABEL in pod.labels)
    return hashes.most_common(1)[0][0] if hashes else ""


def _create_revision(
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
                "labels": {**labels, HASH_LABEL: tag},
                "ownerReferences": [controller_ref(owner)],
            },
            "data": _sorted(
                {"spec": {"template": {**owner["spec"]["template"], "$patch": "replace"}}}
            ),
            "revision": revisions[-1]["revision"] + 1 if revisions else 1,
        },
    )


def _sorted(value: Any) -> Any:
    """A value with all keys in order: clients compare revisions byte by byte."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list) else value


def _delete_old_revisions(
    cluster: Cluster, owner: JsonObject, revisions: list[JsonObject], current: JsonObject
) -> None:
    """Delete the oldest revisions beyond the history limit whose hash no pod carries."""
    surplus = len(revisions) - owner["spec"]["revisionHistoryLimit"]
    if surplus <= 0:
        return
    carried = {pod.labels.get(HASH_LABEL) for pod in cluster.pods.of_owner(uid_of(owner))}
    carried.add(labels_of(current)[HASH_LABEL])
    unused = [each for each in revisions if labels_of(each).get(HASH_LABEL) not in carried]
    for each in unused[:surplus]:
        cluster.delete(each)
