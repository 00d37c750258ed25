"""What an input lacks that the answers about its pods depend on.

Absence is not a fact: an owner, a claim or a budget that was not dumped exists in the cluster. An
answer that depends on it says so once, with the command that would add it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from podium.objects.kinds.registry import (
    DEVICE_CLASS,
    KINDS,
    NAMESPACE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD_DISRUPTION_BUDGET,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    STORAGE_CLASS,
)

if TYPE_CHECKING:
    from podium.objects.kinds.pod import Pod, PodAffinityTerm
    from podium.objects.reading.collection import Objects

#: The kinds that `kubectl get` adds.
_KINDS: Final = (
    *("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job"),
    *("PersistentVolumeClaim", "PersistentVolume", "StorageClass", "PodDisruptionBudget"),
    *("Namespace", "ResourceClaim", "DeviceClass", "ResourceSlice"),
)
#: The volume of a claim that stands for one that is not in the input.
UNKNOWN_VOLUME: Final = "not-in-the-input"
#: What is read together with a kind.
_WITH: Final = {
    "PersistentVolumeClaim": ("PersistentVolume", "StorageClass"),
    "ResourceClaim": ("DeviceClass", "ResourceSlice"),
}


def absence_notes(missing: Mapping[str, int]) -> Iterator[str]:
    """One sentence on the kinds that are missing, with how many pods depend on each.

    A kind on which any pod may depend has 0 pods. Kinds that are not read here are left out.
    """
    known = [kind for kind in _KINDS if kind in missing]
    if not known:
        return
    parts = [
        f"the {kind} of {count} pod{'s' * (count != 1)}"
        if (count := missing[kind])
        else f"any {kind}"
        for kind in known
    ]
    yield (
        f"not in the input: {', '.join(parts)}; that is taken as unknown, not as absent; "
        f"`{adding_command(known)}` adds it"
    )


def adding_command(kinds: Iterable[str]) -> str:
    """The command that reads objects of these kinds from a cluster."""
    names = dict.fromkeys(name for kind in kinds for name in (kind, *_WITH.get(kind, ())))
    return f"kubectl get {','.join(map(_plural, names))} -A -o yaml"


def _plural(kind: str) -> str:
    """What `kubectl get` calls a kind."""
    return f"{kind.lower()}es" if kind.endswith("s") else f"{kind.lower()}s"


def claims_of(pod: Pod) -> list[str]:
    """The names of the volume claims of a pod."""
    return [
        volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes or ()
        if volume.persistent_volume_claim is not None
    ]


class AbsentObjects:
    """The objects that pods of a cluster depend on and that the input does not have.

    A snapshot and manifests that were never in a cluster lack nothing.
    """

    def __init__(self, objects: Objects) -> None:
        """Look at what the input has, if that is a dump of a cluster."""
        self._is_whole = not is_dump(objects)
        self._claims = {
            (each.namespace, each.name): each
            for each in objects.of(PERSISTENT_VOLUME_CLAIM)
            if each.spec.volume_name != UNKNOWN_VOLUME
        }
        self._volumes = {each.name for each in objects.of(PERSISTENT_VOLUME)}
        self._storage_classes = {each.name for each in objects.of(STORAGE_CLASS)}
        self._resource_claims = {
            (each.namespace, each.name): each for each in objects.of(RESOURCE_CLAIM)
        }
        self._device_classes = {each.name for each in objects.of(DEVICE_CLASS)}
        self._has_slices = bool(objects.of(RESOURCE_SLICE))
        self._has_namespaces = bool(objects.of(NAMESPACE))
        self.lacks_budgets = not self._is_whole and not objects.of(POD_DISRUPTION_BUDGET)

    def of(self, pod: Pod) -> str:
        """The first claim, volume or class that a pod needs, in words; empty if there is none."""
        found = (f"{_SHORT[kind]} {name}" for kind, name in self.all_of(pod) if kind in _SHORT)
        first = next(found, "")
        return first and f"{first}, which is not in the input"

    def all_of(self, pod: Pod) -> list[tuple[str, str]]:
        """Kind and name of each; a kind without a name stands for all objects of it."""
        if self._is_whole or not pod.metadata.uid:
            return []
        found = [*self._storage(pod), *self._devices(pod)]
        if not self._has_namespaces and any(_selects_namespaces(each) for each in _terms(pod)):
            found.append((NAMESPACE.name, ""))
        return found

    def _storage(self, pod: Pod) -> Iterator[tuple[str, str]]:
        for name in claims_of(pod):
            claim = self._claims.get((pod.namespace, name))
            if claim is None:
                yield PERSISTENT_VOLUME_CLAIM.name, name
                continue
            volume, kind = claim.spec.volume_name, claim.spec.storage_class_name
            if volume and volume not in self._volumes:
                yield PERSISTENT_VOLUME.name, volume
            if not volume and kind and kind not in self._storage_classes:
                yield STORAGE_CLASS.name, kind

    def _devices(self, pod: Pod) -> Iterator[tuple[str, str]]:
        made = {
            each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses or ()
        }
        for entry in pod.spec.resource_claims or ():
            name = entry.resource_claim_name or made.get(entry.name)
            if not name:
                continue
            claim = self._resource_claims.get((pod.namespace, name))
            if claim is None:
                yield RESOURCE_CLAIM.name, name
                continue
            for request in claim.spec.devices.requests or ():
                kind = request.exactly.device_class_name if request.exactly else ""
                if kind and kind not in self._device_classes:
                    yield DEVICE_CLASS.name, kind
            if not self._has_slices:
                yield RESOURCE_SLICE.name, ""


#: The kinds that make it unknown where a pod can go, as they are called in a sentence.
_SHORT: Final = {
    "PersistentVolumeClaim": "claim",
    "PersistentVolume": "volume",
    "StorageClass": "storage class",
}


def _terms(pod: Pod) -> Iterator[PodAffinityTerm]:
    """The terms of the affinity and anti-affinity of a pod to others."""
    affinity = pod.spec.affinity
    for part in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ():
        if part is not None:
            yield from part.required or ()
            yield from (each.pod_affinity_term for each in part.preferred or ())


def _selects_namespaces(term: PodAffinityTerm) -> bool:
    """Whether the term asks for labels of namespaces; an empty selector takes all of them."""
    selector = term.namespace_selector
    return selector is not None and bool(selector.match_labels or selector.match_expressions)


def absent_kinds(objects: Objects, only: Collection[str] | None = None) -> Counter[str]:
    """How many pods of a cluster refer to objects of each kind that the input does not have.

    A snapshot holds all that there are. *only* are the pods that matter, by namespace and name.
    """
    found: Counter[str] = Counter()
    if not is_dump(objects):
        return found
    owners = {
        item.metadata.uid
        for kind in KINDS.values()
        if kind.name in _KINDS
        for item in objects.of(kind)
    }
    absent = AbsentObjects(objects)
    for pod in objects.pods:
        if not pod.metadata.uid or pod.finished or (only is not None and pod.key not in only):
            continue
        owner = pod.metadata.controller()
        if owner is not None and owner.uid and owner.uid not in owners:
            found[owner.kind] += 1
        found.update({kind for kind, _ in absent.all_of(pod)})
    return +found


def is_dump(objects: Objects) -> bool:
    """Whether the objects come from a cluster and are not known to be all of it.

    Pods that are made from the template of a manifest have a uid, but no node. A snapshot has all,
    but for what its user was not allowed to list.
    """
    if objects.snapshot is not None:
        return bool(objects.snapshot.get("notRead"))
    return any(node.metadata.uid for node in objects.nodes) or any(
        pod.metadata.uid and pod.spec.node_name for pod in objects.pods
    )
