"""Objects whose owners are gone go, too: in the background, first, or never (orphans).

Upstream: pkg/controller/garbagecollector.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from podium.lab.api.options import DeleteOptions
from podium.lab.api.resources import BY_NAME, STORED
from podium.lab.api.status import StatusError
from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import Controller, Hearing
from podium.lab.controllers.framework.object_fields import is_leaving, key_of, uid_of
from podium.lab.controllers.framework.pod_info import Key
from podium.objects.kinds.meta import JsonObject

#: Where it is written down which owners were left behind when a world was brought here.
WORLD: Final = ("kube-system", "podium-lab-world")
FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"
#: Kinds that nobody owns and that own nothing: no need to hear of every one of them.
_UNOWNED: Final = frozenset({"Event", "Lease"})

_Place = tuple[str, Key]  # kind and key


class Garbage(Controller):
    """Follows references to owners."""

    name: ClassVar = "garbage-collector"

    def __init__(self, cluster: Cluster) -> None:
        """Work on *cluster*."""
        super().__init__(cluster)
        self._live: set[str] = set()
        self._dependents: dict[str, dict[_Place, None]] = {}
        #: Owners of which nobody here knows whether they live.
        self._elsewhere: set[str] = set()
        #: Owners that wait for their dependents to be gone.
        self._waiting: dict[str, _Place] = {}

    def hears(self) -> dict[str, Hearing]:
        """Of everything but events."""
        return {row.kind: self.hear for row in STORED.values() if row.kind not in _UNOWNED}

    def hear(self, old: JsonObject | None, new: JsonObject | None) -> None:
        """An object came, changed or went."""
        item = new if new is not None else old
        assert item is not None
        uid, place = uid_of(item), (item["kind"], key_of(item))
        owners = _owners(new)
        before = _owners(old)
        if owners != before:
            for owner in before:
                self._forget(owner, place)
            for owner in owners:
                self._dependents.setdefault(owner, {})[place] = None
                if owner not in self._live:
                    self.add(place, after=0.05)  # the owner may come in a moment
        if new is None:
            self._live.discard(uid)
            if uid in self._dependents:
                self.add(uid)
            for owner in owners or before:
                self.add(owner)
            return
        self._live.add(uid)
        if place == ("ConfigMap", WORLD):
            self._elsewhere = set((new.get("data") or {}).get("owners-elsewhere", "").split())
        if is_leaving(new) and set(new["metadata"].get("finalizers") or ()) & {FOREGROUND, ORPHAN}:
            self.add(place)

    def _forget(self, owner: str, place: _Place) -> None:
        places = self._dependents.get(owner)
        if places is not None:
            places.pop(place, None)
            if not places:
                del self._dependents[owner]

    def sync(self, key: Any) -> None:
        """An owner (by uid) that went or whose dependent went; or an object, by its place."""
        if isinstance(key, str):
            self._owner_changed(key)
            return
        item = self._find(key)
        if item is None:
            return
        finalizers = item["metadata"].get("finalizers") or ()
        if is_leaving(item) and ORPHAN in finalizers:
            self._orphan(item)
        elif is_leaving(item) and FOREGROUND in finalizers:
            self._delete_dependents_first(item)
        else:
            self._collect(key, item)

    def _owner_changed(self, uid: str) -> None:
        places = self._dependents.get(uid, ())
        if uid not in self._live:
            for place in list(places):
                self.add(place)
        elif uid in self._waiting:
            self.add(self._waiting[uid])

    def _collect(self, place: _Place, item: JsonObject) -> None:
        """Delete an object all of whose owners are gone."""
        references = item["metadata"].get("ownerReferences") or []
        if not references or is_leaving(item):
            return
        if any(self._lives(each) for each in references):
            return
        self._delete(place, item, "Background")

    def _lives(self, reference: JsonObject) -> bool:
        """Whether an owner exists, or may exist where this world came from."""
        uid = reference.get("uid", "")
        return uid in self._live or uid in self._elsewhere or not _known(reference)

    def _orphan(self, item: JsonObject) -> None:
        """Let all dependents go free, then the object."""
        uid = uid_of(item)
        for place in list(self._dependents.get(uid, ())):
            self.cluster.change(place[0], place[1], lambda found: _freed(found, uid))
        self._release(item, ORPHAN)

    def _delete_dependents_first(self, item: JsonObject) -> None:
        uid = uid_of(item)
        here = (item["kind"], key_of(item))
        blocking: list[_Place] = []
        for place in list(self._dependents.get(uid, ())):
            found = self._find(place)
            if found is None:
                continue
            references = found["metadata"].get("ownerReferences") or ()
            mine = [each for each in references if each.get("uid") == uid]
            if any(each.get("blockOwnerDeletion") for each in mine):
                blocking.append(place)
            others = any(each.get("uid") in self._live for each in references if each not in mine)
            if not is_leaving(found) and not others:
                self._delete(place, found, "Foreground" if self._has_own(found) else "Background")
        if any(place in self._dependents.get(uid, ()) for place in blocking):
            self._waiting[uid] = here
        else:
            self._waiting.pop(uid, None)
            self._release(item, FOREGROUND)

    def _has_own(self, item: JsonObject) -> bool:
        return uid_of(item) in self._dependents

    def _release(self, item: JsonObject, finalizer: str) -> None:
        def released(found: JsonObject) -> None:
            kept = [each for each in found["metadata"].get("finalizers") or () if each != finalizer]
            found["metadata"]["finalizers"] = kept
            if not kept:
                del found["metadata"]["finalizers"]

        self.cluster.change(item["kind"], key_of(item), released)

    def _delete(self, place: _Place, item: JsonObject, propagation: str) -> None:
        options = DeleteOptions(uid=uid_of(item), propagation=propagation)
        try:
            self.cluster.registry.delete(place[0], place[1][1], place[1][0], options)
        except StatusError as error:
            if error.code not in {404, 409}:
                raise

    def _find(self, place: _Place) -> JsonObject | None:
        return self.cluster.get(place[0], *place[1])


def _owners(item: JsonObject | None) -> list[str]:
    if item is None:
        return []
    return [each.get("uid", "") for each in item["metadata"].get("ownerReferences") or ()]


def _known(reference: JsonObject) -> bool:
    """Whether owners of this kind are kept here; of others nobody knows whether they live."""
    return reference.get("kind", "") in BY_NAME


def _freed(item: JsonObject, uid: str) -> None:
    kept = [each for each in item["metadata"].get("ownerReferences") or () if each["uid"] != uid]
    item["metadata"]["ownerReferences"] = kept
    if not kept:
        del item["metadata"]["ownerReferences"]
