"""Claims find volumes: those that exist, and those that storage classes of the lab make.

Upstream: pkg/controller/volume/persistentvolume.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import Controller, Hearing
from podium.lab.controllers.framework.object_fields import annotation, is_leaving, key_of, uid_of
from podium.lab.controllers.framework.pod_info import PodFacts
from podium.lab.controllers.storage.volume_matching import (
    class_of,
    fits,
    provisioned,
    refers,
    room,
)
from podium.objects.kinds.meta import JsonObject

#: Makes volumes for claims of its classes, in the lab.
PROVISIONER: Final = "lab.podium/volumes"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
_BOUND: Final = "pv.kubernetes.io/bind-completed"
_BY_US: Final = "pv.kubernetes.io/bound-by-controller"
_PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
_PROTECTION: Final = "kubernetes.io/pvc-protection"
_VOLUME_PROTECTION: Final = "kubernetes.io/pv-protection"


class Volumes(Controller):
    """Binds claims and volumes to each other."""

    name: ClassVar = "persistentvolume-controller"
    hears_pods = True

    def __init__(self, cluster: Cluster) -> None:
        """Work on *cluster*."""
        super().__init__(cluster)
        self._leaving: dict[str, set[str]] = {}

    def hears(self) -> dict[str, Hearing]:
        """Of claims, volumes and classes."""
        return {
            "PersistentVolumeClaim": self.hear_claim,
            "PersistentVolume": self.hear_volume,
            "StorageClass": self.hear_class,
        }

    def hear_claim(self, old: JsonObject | None, new: JsonObject | None) -> None:
        """A claim came, changed or went."""
        claim = new if new is not None else old
        assert claim is not None
        namespace, name = key_of(claim)
        waiting = self._leaving.setdefault(namespace, set())
        waiting.discard(name)
        if new is not None and is_leaving(new):
            waiting.add(name)
        self.add(("claim", namespace, name))
        bound = claim["spec"].get("volumeName")
        if new is None and bound:
            self.add(("volume", bound))

    def hear_volume(self, old: JsonObject | None, new: JsonObject | None) -> None:
        """A volume came, changed or went: claims that wait look again."""
        volume = new if new is not None else old
        assert volume is not None
        self.add(("volume", volume["metadata"]["name"]))
        wanted = (volume["spec"].get("claimRef") or {}) if new is not None else {}
        if wanted:
            self.add(("claim", wanted.get("namespace", ""), wanted.get("name", "")))
        elif new is not None:
            self._wake(volume["spec"].get("storageClassName") or "")

    def hear_class(self, old: JsonObject | None, new: JsonObject | None) -> None:
        """A class came: its claims need not wait for it any longer."""
        if new is not None and old is None:
            self._wake(new["metadata"]["name"])

    def hear_pod(self, old: PodFacts | None, new: PodFacts | None) -> None:
        """A pod went, or ended: its claims may go."""
        if old is not None and (new is None or new.finished):
            for name in self._leaving.get(old.key[0], ()):
                self.add(("claim", old.key[0], name))

    def _wake(self, name: str) -> None:
        for claim in self.cluster.all("PersistentVolumeClaim"):
            if class_of(claim) == name and not claim["spec"].get("volumeName"):
                self.add(("claim", *key_of(claim)))

    def sync(self, key: Any) -> None:
        """Look at a claim, or at a volume."""
        if key[0] == "claim":
            claim = self.cluster.get("PersistentVolumeClaim", *key[1:])
            if claim is not None:
                self._claim(claim)
        else:
            volume = self.cluster.get("PersistentVolume", "", key[1])
            if volume is not None:
                self._volume(volume)

    # Claims
    def _claim(self, claim: JsonObject) -> None:
        if is_leaving(claim):
            self._let_go(claim)
            return
        status = claim.get("status") or {}
        name = claim["spec"].get("volumeName")
        if name:
            volume = self.cluster.get("PersistentVolume", "", name)
            if volume is None:
                if annotation(claim, _BOUND):
                    self.cluster.report(claim, {**status, "phase": "Lost"})
            elif refers(volume, claim) or not volume["spec"].get("claimRef"):
                self._bind(claim, volume)
            return
        promised = self._promised(claim)
        if promised is not None:
            self._bind(claim, promised)
            return
        self._find(claim)
        present = self.cluster.get("PersistentVolumeClaim", *key_of(claim))
        if present is not None and not (present.get("status") or {}).get("phase"):
            self.cluster.report(present, {"phase": "Pending"})

    def _find(self, claim: JsonObject) -> None:
        """Bind a claim to a volume that fits, or have one made, or wait."""
        name = class_of(claim)
        kind = self.cluster.get("StorageClass", "", name) if name else None
        node = annotation(claim, SELECTED_NODE)
        late = kind is not None and kind.get("volumeBindingMode") == "WaitForFirstConsumer"
        if late and not node:
            text = "waiting for first consumer to be created before binding"
            self.cluster.events.normal(claim, "WaitForFirstConsumer", text, self.name)
            return
        if not late:
            volumes = self.cluster.all("PersistentVolume")
            fitting = [each for each in volumes if fits(each, claim)]
            if fitting:
                self._bind(claim, min(fitting, key=lambda each: (room(each), key_of(each))))
                return
        provisioner = "" if kind is None else kind.get("provisioner", "")
        if kind is not None and provisioner != _NO_PROVISIONER:
            on = self.cluster.get("Node", "", node) if node else None
            made = self.cluster.create("PersistentVolume", provisioned(claim, kind, on))
            text = f"Successfully provisioned volume {made['metadata']['name']}"
            self.cluster.events.normal(claim, "ProvisioningSucceeded", text, provisioner)
            self._bind(claim, made)
        elif name and kind is None:
            text = f'storageclass.storage.k8s.io "{name}" not found'
            self.cluster.events.warning(claim, "ProvisioningFailed", text, self.name)
        else:
            text = "no persistent volumes available for this claim and no storage class is set"
            self.cluster.events.normal(claim, "FailedBinding", text, self.name)

    def _promised(self, claim: JsonObject) -> JsonObject | None:
        """A volume that is kept for this claim."""
        volumes = self.cluster.all("PersistentVolume")
        return next((each for each in volumes if refers(each, claim)), None)

    def _bind(self, claim: JsonObject, volume: JsonObject) -> None:
        name, key = volume["metadata"]["name"], key_of(claim)
        if (volume["spec"].get("claimRef") or {}).get("uid") != uid_of(claim):
            self.cluster.change("PersistentVolume", ("", name), lambda it: _claimed(it, claim))
        volume = self.cluster.get("PersistentVolume", "", name) or volume
        self.cluster.report(volume, {**(volume.get("status") or {}), "phase": "Bound"})
        if claim["spec"].get("volumeName") != name or not annotation(claim, _BOUND):
            self.cluster.change("PersistentVolumeClaim", key, lambda it: _given(it, name))
        present = self.cluster.get("PersistentVolumeClaim", *key) or claim
        status: JsonObject = {
            **(present.get("status") or {}),
            "phase": "Bound",
            "accessModes": volume["spec"].get("accessModes") or [],
            "capacity": {"storage": (volume["spec"].get("capacity") or {}).get("storage", "0")},
        }
        self.cluster.report(present, status)

    def _let_go(self, claim: JsonObject) -> None:
        """A claim that is being deleted goes when no pod uses it."""
        finalizers = claim["metadata"].get("finalizers") or ()
        if _PROTECTION in finalizers and not self._used(claim):
            key = key_of(claim)
            self.cluster.change(
                "PersistentVolumeClaim", key, lambda it: _unprotected(it, _PROTECTION)
            )

    def _used(self, claim: JsonObject) -> bool:
        namespace, name = key_of(claim)
        for facts in self.cluster.pods.within(namespace).values():
            pod = None if facts.finished else self.cluster.get("Pod", *facts.key)
            for volume in () if pod is None else pod["spec"].get("volumes") or ():
                if (volume.get("persistentVolumeClaim") or {}).get("claimName") == name:
                    return True
        return False

    # Volumes
    def _volume(self, volume: JsonObject) -> None:
        status, wanted = volume.get("status") or {}, volume["spec"].get("claimRef")
        if is_leaving(volume):
            if _VOLUME_PROTECTION in (volume["metadata"].get("finalizers") or ()) and (
                self._claim_of(volume) is None
            ):
                self.cluster.change(
                    "PersistentVolume",
                    key_of(volume),
                    lambda it: _unprotected(it, _VOLUME_PROTECTION),
                )
            return
        if not wanted or not wanted.get("uid"):
            self.cluster.report(volume, {**status, "phase": "Available"})
        elif self._claim_of(volume) is None:
            policy = volume["spec"].get("persistentVolumeReclaimPolicy", "Retain")
            if policy == "Delete" and annotation(volume, _PROVISIONED_BY):
                self.cluster.report(volume, {**status, "phase": "Released"})
                present = self.cluster.get("PersistentVolume", *key_of(volume))
                self.cluster.delete(present or volume)
            else:
                self.cluster.report(volume, {**status, "phase": "Released"})

    def _claim_of(self, volume: JsonObject) -> JsonObject | None:
        wanted = volume["spec"].get("claimRef") or {}
        key = wanted.get("namespace", ""), wanted.get("name", "")
        found = self.cluster.get("PersistentVolumeClaim", *key)
        if found is not None and wanted.get("uid") in {None, "", uid_of(found)}:
            return found
        return None


def _claimed(volume: JsonObject, claim: JsonObject) -> None:
    namespace, name = key_of(claim)
    volume["spec"]["claimRef"] = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": namespace,
        "name": name,
        "uid": uid_of(claim),
        "resourceVersion": claim["metadata"].get("resourceVersion", ""),
    }
    volume["metadata"].setdefault("annotations", {})[_BY_US] = "yes"


def _given(claim: JsonObject, volume: str) -> None:
    annotations = claim["metadata"].setdefault("annotations", {})
    if claim["spec"].get("volumeName") != volume:
        claim["spec"]["volumeName"] = volume
        annotations[_BY_US] = "yes"
    annotations[_BOUND] = "yes"


def _unprotected(item: JsonObject, finalizer: str) -> None:
    kept = [each for each in item["metadata"]["finalizers"] if each != finalizer]
    item["metadata"]["finalizers"] = kept
    if not kept:
        del item["metadata"]["finalizers"]
