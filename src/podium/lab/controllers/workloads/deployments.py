"""Deployments: a replica set for each version of the template, and the way from one to the next.

Upstream: pkg/controller/deployment.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import Controller, Hearing
from podium.lab.controllers.framework.controller_ref import adopted, reference, selector
from podium.lab.controllers.framework.object_fields import (
    annotation,
    controller_of,
    is_leaving,
    key_of,
    labels_of,
    moment,
    replicas_of,
    uid_of,
)
from podium.lab.controllers.framework.pod_info import Key, PodFacts
from podium.lab.controllers.framework.pod_template import digest
from podium.lab.controllers.workloads import deployment_rollout, deployment_status
from podium.lab.controllers.workloads.deployment_rollout import Standing
from podium.objects.kinds.meta import JsonObject

HASH: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
_DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
_MOST: Final = "deployment.kubernetes.io/max-replicas"
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_NOT_COPIED: Final = frozenset({REVISION, _DESIRED, _MOST, _APPLIED})


class Deployments(Controller):
    """Moves pods from old replica sets to the one of the present template."""

    name: ClassVar = "deployment-controller"
    hears_pods = True

    def __init__(self, cluster: Cluster) -> None:
        """Work on *cluster*."""
        super().__init__(cluster)
        self._sets: dict[str, dict[Key, JsonObject]] = {}

    def hears(self) -> dict[str, Hearing]:
        """Of deployments and replica sets."""
        return {"Deployment": self.hear_own, "ReplicaSet": self.hear_set}

    def hear_set(self, old: JsonObject | None, new: JsonObject | None) -> None:
        """A replica set changed: its deployment looks again."""
        for each in (old, new):
            owner = None if each is None else controller_of(each)
            if each is not None and owner is not None and owner["kind"] == "Deployment":
                sets = self._sets.setdefault(owner["uid"], {})
                sets.pop(key_of(each), None)
                if each is new:
                    sets[key_of(each)] = each
                elif not sets:
                    del self._sets[owner["uid"]]
                self.add((each["metadata"]["namespace"], owner["name"]))
            elif each is not None and each is new:
                self._found_orphan(each)

    def hear_pod(self, old: PodFacts | None, new: PodFacts | None) -> None:
        """A pod went: one that waits for old pods to be gone may go on."""
        if new is None and old is not None and old.owner and old.owner[0] == "ReplicaSet":
            made = self.cluster.get("ReplicaSet", old.key[0], old.owner[1])
            above = None if made is None else controller_of(made)
            if above is not None and above["kind"] == "Deployment":
                self.add((old.key[0], above["name"]))

    def _found_orphan(self, item: JsonObject) -> None:
        for each in self.cluster.within("Deployment", item["metadata"]["namespace"]):
            if selector(each["spec"].get("selector")).matches(labels_of(item)):
                self.add(key_of(each))

    def sync(self, key: Any) -> None:
        """One step of the rollout, then the status."""
        owner = self.cluster.get("Deployment", *key)
        if owner is None:
            return
        if not is_leaving(owner):
            self._adopt(owner)
            self._step(owner)
        self._report(key)

    def sets(self, owner: JsonObject) -> list[JsonObject]:
        """Its replica sets, oldest first."""
        found = self._sets.get(uid_of(owner), {}).values()
        return sorted(found, key=_age)

    def _adopt(self, owner: JsonObject) -> None:
        wanted = selector(owner["spec"].get("selector"))
        for each in list(self.cluster.within("ReplicaSet", owner["metadata"]["namespace"])):
            free = controller_of(each) is None and not is_leaving(each)
            if free and wanted.matches(labels_of(each)):
                self.cluster.change("ReplicaSet", key_of(each), lambda it: adopted(it, owner))

    def _step(self, owner: JsonObject) -> None:
        everyone = self.sets(owner)
        new = current(owner, everyone)
        spec = owner["spec"]
        replicas = replicas_of(owner)
        strategy = spec.get("strategy") or {}
        recreate = strategy.get("type") == "Recreate"
        bounds = deployment_rollout.limits(replicas, strategy)
        if new is not None:
            new = self._revised(owner, new, everyone)
            everyone = self.sets(owner)
        old = [each for each in everyone if new is None or each is not new]
        if spec.get("paused") or self._was_scaled(replicas, everyone):
            self._scale_all(owner, new, everyone, 0 if recreate else bounds.surge)
            return
        before = [_standing(each) for each in old]
        if recreate:
            pods = sum(len(self.cluster.pods.of_owner(uid_of(each)).pods) for each in old)
            if pods and before:
                before[0] = before[0]._replace(pods=pods)
            wishes = deployment_rollout.recreated(
                replicas, None if new is None else _standing(new), before
            )
            if new is None and any(each.wish or each.pods for each in before):
                self._scale(owner, old, wishes[1:])
                return
            new = new or self._make(owner, everyone, wishes[0])
        else:
            if new is None:
                total = sum(each.wish for each in before)
                room = max(replicas + bounds.surge - total, 0)
                new = self._make(owner, everyone, min(room, replicas))
            wishes = deployment_rollout.rolled(replicas, _standing(new), before, bounds)
        self._scale(owner, [new, *old], wishes)
        self._forget_history(owner, old)

    def _was_scaled(self, replicas: int, everyone: list[JsonObject]) -> bool:
        return any(
            replicas_of(each) > 0 and annotation(each, _DESIRED) not in {"", str(replicas)}
            for each in everyone
        )

    def _scale_all(
        self, owner: JsonObject, new: JsonObject | None, everyone: list[JsonObject], surge: int
    ) -> None:
        """Follow a new number of replicas without rolling on."""
        replicas = replicas_of(owner)
        active = [each for each in everyone if replicas_of(each) > 0]
        alone = active[0] if len(active) == 1 else (new or everyone[-1]) if not active else None
        if not active and not everyone:
            return
        if alone is not None:
            self._scale(owner, [alone], [replicas])
            return
        standing = None if new is None else _standing(new)
        if standing and standing.wish == replicas == standing.available:
            old = [each for each in active if each is not new]
            self._scale(owner, old, [0] * len(old))
            return
        wishes = [replicas_of(each) for each in active]
        self._scale(owner, active, deployment_rollout.spread(replicas, wishes, surge))

    def _scale(self, owner: JsonObject, sets: list[JsonObject], wishes: list[int]) -> None:
        for each, wish in zip(sets, wishes, strict=True):
            before = replicas_of(each)
            notes = self._counts(owner)
            annotations = each["metadata"].get("annotations") or {}
            if wish == before and notes.items() <= annotations.items():
                continue

            def scaled(it: JsonObject, notes: JsonObject = notes, wish: int = wish) -> None:
                it["metadata"].setdefault("annotations", {}).update(notes)
                it["spec"]["replicas"] = wish

            self.cluster.change("ReplicaSet", key_of(each), scaled)
            if wish != before:
                self._tell(owner, each["metadata"]["name"], before, wish)

    def _tell(self, owner: JsonObject, name: str, before: int, wish: int) -> None:
        way = "up" if wish > before else "down"
        text = f"Scaled {way} replica set {name} from {before} to {wish}"
        self.cluster.events.normal(owner, "ScalingReplicaSet", text, self.name)

    def _counts(self, owner: JsonObject) -> dict[str, str]:
        replicas = replicas_of(owner)
        strategy = owner["spec"].get("strategy") or {}
        surge = 0
        if strategy.get("type") != "Recreate":
            surge = deployment_rollout.limits(replicas, strategy).surge
        return {_DESIRED: str(replicas), _MOST: str(replicas + surge)}

    def _make(self, owner: JsonObject, everyone: list[JsonObject], wish: int) -> JsonObject:
        """The replica set of the present template."""
        template = owner["spec"]["template"]
        tag = {HASH: digest([template, (owner.get("status") or {}).get("collisionCount", 0)])}
        metadata = template.get("metadata") or {}
        labels = {**(metadata.get("labels") or {}), **tag}
        wanted = owner["spec"].get("selector") or {}
        revision = str(max((_revision(each) for each in everyone), default=0) + 1)
        spec: JsonObject = {
            "replicas": wish,
            "selector": {**wanted, "matchLabels": {**(wanted.get("matchLabels") or {}), **tag}},
            "template": {**template, "metadata": {**metadata, "labels": labels}},
        }
        if owner["spec"].get("minReadySeconds"):
            spec["minReadySeconds"] = owner["spec"]["minReadySeconds"]
        made = self.cluster.create(
            "ReplicaSet",
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {
                    "name": f"{owner['metadata']['name']}-{tag[HASH]}",
                    "namespace": owner["metadata"]["namespace"],
                    "labels": labels,
                    "annotations": self._copied(owner) | self._counts(owner) | {REVISION: revision},
                    "ownerReferences": [reference(owner)],
                },
                "spec": spec,
            },
        )
        if wish:
            self._tell(owner, made["metadata"]["name"], 0, wish)
        self._note_revision(owner, revision)
        return made

    def _revised(
        self, owner: JsonObject, new: JsonObject, everyone: list[JsonObject]
    ) -> JsonObject:
        """The present replica set with the highest revision, and the deployment's annotations."""
        others = (_revision(each) for each in everyone if each is not new)
        revision = str(max(_revision(new), max(others, default=0) + 1))
        annotations = new["metadata"].get("annotations") or {}
        notes = self._copied(owner) | {REVISION: revision}
        min_ready = owner["spec"].get("minReadySeconds") or 0
        if not notes.items() <= annotations.items() or min_ready != (
            new["spec"].get("minReadySeconds") or 0
        ):

            def revised(it: JsonObject) -> None:
                it["metadata"].setdefault("annotations", {}).update(notes)
                it["spec"]["minReadySeconds"] = min_ready

            new = self.cluster.change("ReplicaSet", key_of(new), revised) or new
        self._note_revision(owner, revision)
        return new

    def _copied(self, owner: JsonObject) -> dict[str, str]:
        written = owner["metadata"].get("annotations") or {}
        return {name: text for name, text in written.items() if name not in _NOT_COPIED}

    def _note_revision(self, owner: JsonObject, revision: str) -> None:
        present = self.cluster.get("Deployment", *key_of(owner))
        if present is not None and annotation(present, REVISION) != revision:

            def numbered(it: JsonObject) -> None:
                it["metadata"].setdefault("annotations", {})[REVISION] = revision

            self.cluster.change("Deployment", key_of(owner), numbered)

    def _forget_history(self, owner: JsonObject, old: list[JsonObject]) -> None:
        kept = owner["spec"].get("revisionHistoryLimit")
        kept = 10 if kept is None else kept
        idle = [
            each
            for each in sorted(old, key=_revision)
            if not replicas_of(each)
            and not (each.get("status") or {}).get("replicas")
            and not is_leaving(each)
        ]
        for each in idle[: max(len(idle) - kept, 0)]:
            self.cluster.delete(each)

    def _report(self, key: Any) -> None:
        owner = self.cluster.get("Deployment", *key)
        if owner is None:
            return
        everyone = self.sets(owner)
        new = current(owner, everyone)
        status, wait = deployment_status.status(owner, new, everyone, self.cluster.now())
        self.cluster.report(owner, status)
        if wait is not None:
            self.add(key, after=wait)


def current(owner: JsonObject, sets: list[JsonObject]) -> JsonObject | None:
    """The oldest replica set whose template is the present one."""
    wanted = owner["spec"].get("template") or {}
    return next((each for each in sets if _plain(each["spec"]["template"]) == wanted), None)


def _plain(template: JsonObject) -> JsonObject:
    """A replica set's template as its deployment has it."""
    metadata = template.get("metadata") or {}
    labels = {name: text for name, text in (metadata.get("labels") or {}).items() if name != HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def _standing(item: JsonObject) -> Standing:
    status = item.get("status") or {}
    return Standing(
        replicas_of(item), status.get("replicas", 0), status.get("availableReplicas", 0)
    )


def _revision(item: JsonObject) -> int:
    text = annotation(item, REVISION)
    return int(text) if text.isdigit() else 0


def _age(item: JsonObject) -> tuple[float, int, str]:
    metadata = item["metadata"]
    return (
        moment(metadata.get("creationTimestamp")) or 0.0,
        _revision(item),
        metadata["name"],
    )
