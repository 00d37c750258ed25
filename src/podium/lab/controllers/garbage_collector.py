"""The garbage collector: deletes objects whose owners are gone.

It also carries out the finalizers `foregroundDeletion` (an owner goes after its dependents) and
`orphan` (dependents lose their owner reference and stay).

Upstream: pkg/controller/garbagecollector.
"""

from __future__ import annotations

from typing import ClassVar, Final

from podium.lab.api.resources import BY_NAME, RECORDS_ONLY, STORED
from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import Controller, changed
from podium.lab.controllers.framework.object_fields import (
    ObjectPlace,
    is_terminating,
    key_of,
    remove_owner,
    uid_of,
)
from podium.lab.controllers.framework.pods import LabPods
from podium.lab.registry.deletion import FOREGROUND, ORPHAN
from podium.objects.kinds.meta import JsonObject

#: The config map that lists the uids of owners which were not part of an imported cluster.
MISSING_OWNERS: Final = ("kube-system", "podium-lab-world")
MISSING_OWNERS_FIELD: Final = "owners-elsewhere"
#: Seconds until a dependent is checked whose owner is unknown: the owner may be created next.
_UNKNOWN_OWNER_DELAY: Final = 0.05


class GarbageCollector(Controller[str | ObjectPlace]):
    """Follows owner references. Its keys are the uids of owners and the places of objects."""

    name: ClassVar = "garbage-collector"

    def __init__(self, cluster: Cluster) -> None:
        """Watch all kinds but events and leases."""
        super().__init__(cluster)
        self._live: set[str] = set()
        self._dependents: dict[str, dict[ObjectPlace, None]] = {}
        self._missing_owners: set[str] = set()
        #: Owners in foreground deletion that wait for their dependents, by uid.
        self._waiting: dict[str, ObjectPlace] = {}
        for row in STORED.values():
            if row.kind not in RECORDS_ONLY:  # these neither have owners nor own anything
                self.watch(row.kind, self._on_object)
        self.watch_pods(None, listed=self._on_listed_pods)
        self.watch_custom(self._on_change)

    def _on_object(self, old: JsonObject | None, new: JsonObject | None) -> None:
        self._on_change(changed(old, new)["kind"], old, new)

    def _on_change(self, kind: str, old: JsonObject | None, new: JsonObject | None) -> None:
        """Follow the owners of an object; *kind* is the qualified name of a custom resource."""
        item = changed(old, new)
        uid, place = uid_of(item), ObjectPlace(kind, key_of(item))
        owners = _owner_uids(new)
        before = _owner_uids(old)
        if owners != before:
            for owner in before:
                self._remove_dependent(owner, place)
            for owner in owners:
                self._dependents.setdefault(owner, {})[place] = None
                if owner not in self._live:
                    self.enqueue(place, after=_UNKNOWN_OWNER_DELAY)
        if new is None:
            self._live.discard(uid)
            if uid in self._dependents:
                self.enqueue(uid)
            for owner in owners or before:
                self.enqueue(owner)
            return
        self._live.add(uid)
        if place == ("ConfigMap", MISSING_OWNERS):
            listed = (new.get("data") or {}).get(MISSING_OWNERS_FIELD, "")
            self._missing_owners = set(listed.split())
        finalizers = set(new["metadata"].get("finalizers") or ())
        if is_terminating(new) and finalizers & {FOREGROUND, ORPHAN}:
            self.enqueue(place)

    def _on_listed_pods(self, pods: LabPods) -> None:
        live, dependents = self._live, self._dependents
        for pod in pods.all.values():
            place = ObjectPlace("Pod", pod.key)
            for owner in pod.owners:
                places = dependents.get(owner)
                if places is None:
                    places = dependents[owner] = {}
                places[place] = None
                if owner not in live:
                    self.enqueue(place, after=_UNKNOWN_OWNER_DELAY)
            live.add(pod.uid)
            if pod.terminating and not {FOREGROUND, ORPHAN}.isdisjoint(pod.finalizers):
                self.enqueue(place)

    def _remove_dependent(self, owner: str, place: ObjectPlace) -> None:
        places = self._dependents.get(owner)
        if places is not None:
            places.pop(place, None)
            if not places:
                del self._dependents[owner]

    def sync(self, key: str | ObjectPlace) -> None:
        """Check the dependents of an owner (a uid), or the owners of an object (a place)."""
        if isinstance(key, str):
            self._sync_owner(key)
            return
        item = self._find(key)
        if item is None:
            return
        finalizers = item["metadata"].get("finalizers") or ()
        if is_terminating(item) and ORPHAN in finalizers:
            self._orphan_dependents(key, item)
        elif is_terminating(item) and FOREGROUND in finalizers:
            self._delete_dependents_first(key, item)
        else:
            self._delete_if_unowned(key, item)

    def _sync_owner(self, uid: str) -> None:
        places = self._dependents.get(uid, ())
        if uid not in self._live:
            for place in list(places):
                self.enqueue(place)
        elif uid in self._waiting:
            self.enqueue(self._waiting[uid])

    def _delete_if_unowned(self, place: ObjectPlace, item: JsonObject) -> None:
        """Delete an object that has owner references and none of whose owners exists."""
        references = item["metadata"].get("ownerReferences") or []
        if not references or is_terminating(item):
            return
        if any(self._may_exist(each) for each in references):
            return
        self.cluster.delete(item, propagation="Background", kind=place.kind)

    def _may_exist(self, reference: JsonObject) -> bool:
        """Whether an owner exists here, was left behind, or is of a kind that is not served."""
        uid = reference.get("uid", "")
        kind = reference.get("kind", "")
        custom = self.cluster.registry.custom
        served = kind in BY_NAME or custom.has_kind(reference.get("apiVersion", ""), kind)
        return uid in self._live or uid in self._missing_owners or not served

    def _orphan_dependents(self, owner: ObjectPlace, item: JsonObject) -> None:
        uid = uid_of(item)
        for place in list(self._dependents.get(uid, ())):
            self.cluster.update(place.kind, place.key, lambda found: remove_owner(found, uid))
        self.cluster.remove_finalizer(*owner, ORPHAN)

    def _delete_dependents_first(self, owner: ObjectPlace, item: JsonObject) -> None:
        """Delete dependents, and the owner itself once none of them blocks its deletion."""
        uid = uid_of(item)
        blocking: list[ObjectPlace] = []
        for place in list(self._dependents.get(uid, ())):
            found = self._find(place)
            if found is None:
                continue
            references = found["metadata"].get("ownerReferences") or ()
            own = [each for each in references if each.get("uid") == uid]
            if any(each.get("blockOwnerDeletion") for each in own):
                blocking.append(place)
            has_other = any(each.get("uid") in self._live for each in references if each not in own)
            if not is_terminating(found) and not has_other:
                has_dependents = uid_of(found) in self._dependents
                propagation = "Foreground" if has_dependents else "Background"
                self.cluster.delete(found, propagation=propagation, kind=place.kind)
        if any(place in self._dependents.get(uid, ()) for place in blocking):
            self._waiting[uid] = owner
        else:
            self._waiting.pop(uid, None)
            self.cluster.remove_finalizer(*owner, FOREGROUND)

    def _find(self, place: ObjectPlace) -> JsonObject | None:
        return self.cluster.get(place.kind, *place.key)


def _owner_uids(item: JsonObject | None) -> list[str]:
    if item is None:
        return []
    return [each.get("uid", "") for each in item["metadata"].get("ownerReferences") or ()]
