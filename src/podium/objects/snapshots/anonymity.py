"""Which fields of an object are names, labels, images; each is passed through `Pseudonyms`.

Works on the plain form of what scheduling reads (see `trimming`), in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.objects.kinds.meta import JsonObject
from podium.objects.snapshots.pseudonyms import (
    CLAIM,
    CLASS,
    NAMESPACE,
    NODE,
    OBJECT,
    OWNER,
    POD,
    UID,
    VALUE,
    VOLUME,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.objects.snapshots.pseudonyms import Pseudonyms

_CATEGORIES: Final = {
    "Node": NODE,
    "CSINode": NODE,
    "Namespace": NAMESPACE,
    "Pod": POD,
    "PersistentVolume": VOLUME,
    "PersistentVolumeClaim": CLAIM,
    "StorageClass": CLASS,
    "ReplicaSet": OWNER,
    "StatefulSet": OWNER,
    "ReplicationController": OWNER,
}
_AVOID: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def rename(kind: str, item: JsonObject, names: Pseudonyms) -> None:
    """Pass every telling text of an object through *names*."""
    _Renaming(names).object(kind, item)


class _Renaming:
    def __init__(self, names: Pseudonyms) -> None:
        self.names = names

    # Everything -----------------------------------------------------------------------------

    def object(self, kind: str, item: JsonObject) -> None:
        about = item["metadata"]
        spec, status = item.get("spec", {}), item.get("status", {})
        if kind == "Pod":
            self.pod(about.get("name", ""), spec, status)
        else:
            change: Callable[[JsonObject], None] | None = getattr(self, f"_{kind.lower()}", None)
            if change is not None:
                change(item)
        self.metadata(kind, about)

    def metadata(self, kind: str, about: JsonObject) -> None:
        if kind != "CSIDriver":  # drivers are products, and resources are named after them
            self._one(about, "name", _CATEGORIES.get(kind, OBJECT))
        self._one(about, "namespace", NAMESPACE)
        self._one(about, "uid", UID)
        self._labels(about, "labels")
        for owner in about.get("ownerReferences", ()):
            self._one(owner, "name", _CATEGORIES.get(owner.get("kind", ""), OWNER))
            self._one(owner, "uid", UID)
        annotations = about.get("annotations", {})
        self._one(annotations, _SELECTED_NODE, NODE)
        self._one(annotations, _CLASS, CLASS)
        if _AVOID in annotations:
            annotations[_AVOID] = self._avoided(annotations[_AVOID])

    def _one(self, holder: JsonObject, field: str, category: str) -> None:
        if field in holder:
            holder[field] = self.names.name(category, holder[field])

    def _key(self, holder: JsonObject, field: str) -> None:
        if field in holder:
            holder[field] = self.names.key(holder[field])

    def _labels(self, holder: JsonObject, field: str) -> None:
        names = self.names
        if field in holder:
            found = holder[field].items()
            holder[field] = {names.key(key): names.value(key, text) for key, text in found}

    def _requirements(self, holder: JsonObject, field: str) -> None:
        names = self.names
        for each in holder.get(field, ()):
            key = each.get("key", "")
            names.compares(key, each.get("operator", ""))
            if "values" in each:
                each["values"] = [names.value(key, text) for text in each["values"]]
            self._key(each, "key")

    def _selector(self, holder: JsonObject, field: str) -> None:
        found = holder.get(field)
        if found is not None:
            self._labels(found, "matchLabels")
            self._requirements(found, "matchExpressions")

    def _node_selector(self, found: JsonObject | None) -> None:
        for term in (found or {}).get("nodeSelectorTerms", ()):
            self._node_term(term)

    def _node_term(self, term: JsonObject) -> None:
        self._requirements(term, "matchExpressions")
        for each in term.get("matchFields", ()):
            if "values" in each:
                each["values"] = self.names.names(NODE, each["values"])

    def _avoided(self, text: str) -> str:
        """The controllers that a node would rather not have; what cannot be read avoids nobody."""
        try:
            found = msgspec.json.decode(text)
        except msgspec.MsgspecError:
            return "unreadable"
        return msgspec.json.encode(self._named_within(found)).decode()

    def _named_within(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._named_within(each) for each in value]
        if not isinstance(value, dict):
            return value
        categories = {"name": OWNER, "uid": UID}
        kept = {"kind", "apiversion", "controller", "podsignature", "podcontroller"}
        found = {}
        for key, each in value.items():
            folded = key.lower()
            if folded in categories and isinstance(each, str):
                found[key] = self.names.name(categories[folded], each)
            elif folded in kept or folded == "preferavoidpods":
                found[key] = self._named_within(each)
        return found

    # Pods -----------------------------------------------------------------------------------

    def pod(self, name: str, spec: JsonObject, status: JsonObject) -> None:
        self._one(spec, "nodeName", NODE)
        self._one(spec, "priorityClassName", OBJECT)
        self._labels(spec, "nodeSelector")
        self._affinity(spec.get("affinity", {}))
        for each in spec.get("tolerations", ()):
            self._taint(each)
        for each in spec.get("topologySpreadConstraints", ()):
            self._key(each, "topologyKey")
            self._selector(each, "labelSelector")
            self._keys(each, "matchLabelKeys")
        for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
            self._container(container)
        for volume in spec.get("volumes", ()):
            self._volume(name, volume)
        for gate in spec.get("schedulingGates", ()):
            self._key(gate, "name")
        self._one(status, "nominatedNodeName", NODE)
        for field in ("containerStatuses", "initContainerStatuses"):
            for each in status.get(field, ()):
                self._one(each, "name", OBJECT)

    def _keys(self, holder: JsonObject, field: str) -> None:
        if field in holder:
            holder[field] = [self.names.key(key) for key in holder[field]]

    def _taint(self, each: JsonObject) -> None:
        self.names.compares(each.get("key", ""), each.get("operator", ""))
        if "value" in each:
            each["value"] = self.names.value(each.get("key", ""), each["value"])
        self._key(each, "key")

    def _affinity(self, affinity: JsonObject) -> None:
        by_node = affinity.get("nodeAffinity", {})
        self._node_selector(by_node.get(_REQUIRED))
        for each in by_node.get(_PREFERRED, ()):
            self._node_term(each.get("preference", {}))
        for side in ("podAffinity", "podAntiAffinity"):
            terms = affinity.get(side, {})
            for each in terms.get(_REQUIRED, ()):
                self._pod_term(each)
            for each in terms.get(_PREFERRED, ()):
                self._pod_term(each.get("podAffinityTerm", {}))

    def _pod_term(self, term: JsonObject) -> None:
        self._key(term, "topologyKey")
        self._selector(term, "labelSelector")
        self._selector(term, "namespaceSelector")
        if "namespaces" in term:
            term["namespaces"] = self.names.names(NAMESPACE, term["namespaces"])
        self._keys(term, "matchLabelKeys")
        self._keys(term, "mismatchLabelKeys")

    def _container(self, container: JsonObject) -> None:
        self._one(container, "name", OBJECT)
        if "image" in container:
            container["image"] = self.names.image(container["image"])
        for port in container.get("ports", ()):
            if "hostIP" in port:
                port["hostIP"] = self.names.address(port["hostIP"])

    def _volume(self, pod: str, volume: JsonObject) -> None:
        if "ephemeral" in volume:
            self.names.ephemeral_claim(pod, volume.get("name", ""))
        self._one(volume, "name", OBJECT)
        self._one(volume.get("persistentVolumeClaim", {}), "claimName", CLAIM)
        self._disks(volume)
        if "image" in volume and "reference" in volume["image"]:
            volume["image"]["reference"] = self.names.image(volume["image"]["reference"])

    def _disks(self, holder: JsonObject) -> None:
        for source, fields in (
            ("gcePersistentDisk", ("pdName",)),
            ("awsElasticBlockStore", ("volumeID",)),
            ("azureDisk", ("diskName", "diskURI")),
            ("cinder", ("volumeID",)),
            ("portworxVolume", ("volumeID",)),
            ("iscsi", ("iqn",)),
            ("rbd", ("image", "pool")),
        ):
            for field in fields:
                self._one(holder.get(source, {}), field, VALUE)
        monitors = holder.get("rbd", {})
        if "monitors" in monitors:
            monitors["monitors"] = self.names.names(VALUE, monitors["monitors"])

    # Other kinds ----------------------------------------------------------------------------

    def _node(self, item: JsonObject) -> None:
        for taint in item.get("spec", {}).get("taints", ()):
            self._taint(taint)
        for image in item.get("status", {}).get("images", ()):
            if "names" in image:
                image["names"] = [self.names.image(name) for name in image["names"]]

    def _service(self, item: JsonObject) -> None:
        self._labels(item.get("spec", {}), "selector")

    def _replicationcontroller(self, item: JsonObject) -> None:
        self._labels(item.get("spec", {}), "selector")

    def _replicaset(self, item: JsonObject) -> None:
        self._selector(item.get("spec", {}), "selector")

    def _statefulset(self, item: JsonObject) -> None:
        self._selector(item.get("spec", {}), "selector")

    def _poddisruptionbudget(self, item: JsonObject) -> None:
        self._selector(item.get("spec", {}), "selector")
        status = item.get("status", {})
        if "disruptedPods" in status:
            found = status["disruptedPods"].items()
            status["disruptedPods"] = {self.names.name(POD, name): at for name, at in found}

    def _persistentvolume(self, item: JsonObject) -> None:
        spec = item.get("spec", {})
        self._one(spec, "storageClassName", CLASS)
        self._one(spec, "volumeAttributesClassName", OBJECT)
        claim = spec.get("claimRef", {})
        self._one(claim, "name", CLAIM)
        self._one(claim, "namespace", NAMESPACE)
        self._one(claim, "uid", UID)
        self._node_selector(spec.get("nodeAffinity", {}).get("required"))
        self._disks(spec)
        self._one(spec.get("csi", {}), "volumeHandle", VALUE)

    def _persistentvolumeclaim(self, item: JsonObject) -> None:
        spec = item.get("spec", {})
        self._selector(spec, "selector")
        self._one(spec, "volumeName", VOLUME)
        self._one(spec, "storageClassName", CLASS)
        self._one(spec, "volumeAttributesClassName", OBJECT)

    def _storageclass(self, item: JsonObject) -> None:
        for term in item.get("allowedTopologies", ()):
            self._requirements(term, "matchLabelExpressions")

    def _csistoragecapacity(self, item: JsonObject) -> None:
        self._one(item, "storageClassName", CLASS)
        self._selector(item, "nodeTopology")

    def _volumeattachment(self, item: JsonObject) -> None:
        spec = item.get("spec", {})
        self._one(spec, "nodeName", NODE)
        self._one(spec.get("source", {}), "persistentVolumeName", VOLUME)
