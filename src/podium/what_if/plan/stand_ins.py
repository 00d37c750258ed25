"""Objects in the place of those that pods of a cluster refer to and that the input does not have.

A dump of nodes and pods has no replica sets, but the pods say whose they are: their controllers
exist in the cluster and create them anew. What the pods say about an object is written into a
stand-in for it: controllers and admission find what they would find in the cluster. The pods say
nothing about the volume of a claim. A pod with that claim finds no node, and the plan says what it
does not know.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from podium.lab.contents.cluster_import import POD_LABELS
from podium.lab.contents.documents import Document
from podium.lab.controllers.framework.controller import Controller, no_listed_pods
from podium.lab.controllers.framework.object_fields import Key, is_terminating, key_of
from podium.lab.controllers.framework.pods import FINISHED
from podium.lab.store.imported_pods import MetadataHead, StatusHead
from podium.library.absence import UNKNOWN_VOLUME
from podium.library.workloads import OF_NODES
from podium.objects.kinds.meta import LabelSelector
from podium.objects.names import RANDOM_LENGTH
from podium.objects.selectors.selectors import SelectorError, from_label_selector

if TYPE_CHECKING:
    from podium.lab.controllers.framework.cluster import Cluster
    from podium.objects.kinds.meta import JsonObject, OwnerReference

#: Controllers whose stand-ins work as they do: replicas are counted, templates are those of pods.
_REPLICATED: Final = ("ReplicaSet", "ReplicationController", "StatefulSet")
_CLAIM, _SET, _BUDGET = "PersistentVolumeClaim", "StatefulSet", "PodDisruptionBudget"
_HASH: Final = "pod-template-hash"
_REVISION: Final = "deployment.kubernetes.io/revision"
_CREATED_BY_POD: Final = frozenset({"nodeName", "priority", "preemptionPolicy"})
_SYSTEM_CLASSES: Final = ("system-cluster-critical", "system-node-critical")


class _Part(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A part of a pod; fields that are not listed are skipped."""


class _Claim(_Part, frozen=True):
    claim_name: str = ""


class _Volume(_Part, frozen=True):
    persistent_volume_claim: _Claim | None = None


class _Spec(_Part, frozen=True):
    volumes: list[_Volume] | None = None
    priority_class_name: str | None = None
    priority: int | None = None
    preemption_policy: str | None = None
    runtime_class_name: str | None = None
    overhead: dict[str, Any] | None = None


class _PodReferences(_Part, frozen=True):
    """What a pod says about other objects."""

    metadata: MetadataHead
    spec: _Spec = _Spec()
    status: StatusHead | None = None

    @property
    def controller(self) -> OwnerReference | None:
        """The controller that the pod belongs to."""
        owners = self.metadata.owner_references or ()
        return next((each for each in owners if each.controller), None)

    @property
    def active(self) -> bool:
        """Whether it counts as a replica."""
        phase = (self.status.phase if self.status else None) or "Pending"
        return not self.metadata.deletion_timestamp and phase not in FINISHED

    @property
    def namespace(self) -> str:
        """Its namespace; pods of a cluster have one."""
        return self.metadata.namespace or "default"


_decoder: Final = msgspec.json.Decoder(_PodReferences)


@dataclass(slots=True)
class StandIns:
    """The objects that are added to an input, and what is not known all the same."""

    documents: list[Document] = field(default_factory=list)
    #: The uids of controllers whose pods are created anew one by one.
    controllers: set[str] = field(default_factory=set)
    #: How many pods refer to absent objects of a kind.
    absent: Counter[str] = field(default_factory=Counter)
    #: Whether the input comes from a cluster, and which of its kinds there are.
    is_dump: bool = False
    kinds: set[str] = field(default_factory=set)


def stand_ins(documents: Sequence[Document]) -> StandIns:
    """What is missing from the objects of a cluster, as far as its pods show."""
    found = StandIns(kinds={each.kind for each in documents})
    pods = list(_references(documents))
    found.is_dump = any(pod.metadata.uid for pod in pods) or any(
        (each.item.get("metadata") or {}).get("uid") for each in documents if each.kind == "Node"
    )
    others = _OtherObjects(documents)
    owned: dict[str, list[_PodReferences]] = {}
    for pod in pods:
        owner = pod.controller if pod.metadata.uid else None
        if owner is not None and owner.uid and owner.uid not in others.uids:
            owned.setdefault(owner.uid, []).append(pod)
            found.absent[owner.kind] += pod.active
    for uid, group in owned.items():
        owner = group[0].controller
        assert owner is not None
        if owner.kind in _REPLICATED:
            found.documents.append(Document("", _replicated(owner, group, others)))
        elif owner.kind not in OF_NODES:
            found.controllers.add(uid)
    _share_replicas(found.documents, others)
    _expect_replicas(found.documents, owned, others)
    _add_classes(found, pods, others)
    _add_claims(found, pods, others)
    return found


def _references(documents: Iterable[Document]) -> Iterator[_PodReferences]:
    """What the pods say; pods with fields of a wrong type are left to the loader."""
    for document in documents:
        if document.kind != "Pod":
            continue
        try:
            if document.text is not None:
                yield _decoder.decode(document.text)
            else:
                yield msgspec.convert(document.item, _PodReferences)
        except msgspec.ValidationError:
            continue


class _OtherObjects:
    """The objects of the input that pods refer to."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self.uids: set[str] = set()
        #: Objects by kind, namespace and name.
        self.named: dict[tuple[str, str, str], JsonObject] = {}
        for document in documents:
            about = {} if document.kind == "Pod" else document.item.get("metadata")
            if isinstance(about, dict) and about:
                self.uids.add(str(about.get("uid") or ""))
                key = (document.kind, about.get("namespace") or "", str(about.get("name")))
                self.named[key] = document.item

    def has(self, kind: str, name: str, namespace: str = "") -> bool:
        """Whether there is such an object."""
        return (kind, namespace, name) in self.named

    def lacks(self, claim: JsonObject | None) -> str:
        """The kind that is missing for the storage of a pod: the claim, its volume or class."""
        if claim is None:
            return _CLAIM
        spec = claim.get("spec") or {}
        volume, name = spec.get("volumeName"), spec.get("storageClassName")
        if volume:
            return "" if self.has("PersistentVolume", volume) else "PersistentVolume"
        return "" if not name or self.has("StorageClass", name) else "StorageClass"

    def deployment_of(self, namespace: str, replica_set: str, tag: str) -> JsonObject | None:
        """The deployment that a replica set with this hash belongs to by its name."""
        name = replica_set.removesuffix(f"-{tag}") if tag else ""
        found = self.named.get(("Deployment", namespace, name))
        return found if found is not None and found["metadata"].get("uid") else None


def _replicated(
    owner: OwnerReference, group: Sequence[_PodReferences], others: _OtherObjects
) -> JsonObject:
    """A workload with the labels of its pods, whose template is made from one of them."""
    namespace = group[0].namespace
    labels = dict(set.intersection(*(set((each.metadata.labels or {}).items()) for each in group)))
    labels = {key: labels[key] for key in sorted(labels)}
    metadata: JsonObject = {
        "name": owner.name,
        "namespace": namespace,
        "uid": owner.uid,
        "labels": labels,
        "creationTimestamp": min(each.metadata.creation_timestamp or "" for each in group) or None,
    }
    if metadata["creationTimestamp"] is None:
        del metadata["creationTimestamp"]
    if owner.kind == "StatefulSet":
        labels = {key: text for key, text in labels.items() if key not in POD_LABELS}
    spec: JsonObject = {
        "replicas": sum(each.active for each in group),
        "selector": labels if owner.kind == "ReplicationController" else {"matchLabels": labels},
    }
    if owner.kind == "StatefulSet":
        ordinals = [
            int(tail) for each in group if (tail := each.metadata.name.rpartition("-")[2]).isdigit()
        ]
        start = min(ordinals, default=0)
        spec["replicas"] = max(ordinals, default=-1) - start + 1
        spec["updateStrategy"] = {"type": "OnDelete"}
        if start:
            spec["ordinals"] = {"start": start}
    version = "v1" if owner.kind == "ReplicationController" else "apps/v1"
    item = {"apiVersion": version, "kind": owner.kind, "metadata": metadata, "spec": spec}
    deployment = None
    if owner.kind == "ReplicaSet":
        deployment = others.deployment_of(namespace, owner.name, labels.get(_HASH, ""))
    if deployment is not None:
        above = deployment["metadata"]
        metadata["ownerReferences"] = [
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "name": above["name"],
                "uid": above["uid"],
                "controller": True,
            }
        ]
    return item


def _share_replicas(documents: Iterable[Document], others: _OtherObjects) -> None:
    """Let the newest replica set of each deployment be its present one.

    It has the template of the deployment, and the replicas that the others leave.
    """
    by_deployment: dict[tuple[str, str], list[JsonObject]] = {}
    for item in (each.item for each in documents):
        for reference in item["metadata"].get("ownerReferences") or ():
            key = (item["metadata"]["namespace"], reference["name"])
            by_deployment.setdefault(key, []).append(item)
    for (namespace, name), replica_sets in by_deployment.items():
        deployment = others.named["Deployment", namespace, name]
        replica_sets.sort(key=lambda each: each["metadata"].get("creationTimestamp") or "")
        *older, newest = replica_sets
        template = copy.deepcopy((deployment.get("spec") or {}).get("template") or {})
        if template:
            tag = newest["metadata"]["labels"].get(_HASH, "")
            labels = template.setdefault("metadata", {}).setdefault("labels", {})
            newest["spec"]["selector"] = {"matchLabels": {**labels, _HASH: tag}}
            labels[_HASH] = tag
            newest["spec"]["template"] = template
        wanted = deployment["spec"].get("replicas", 1)
        newest["spec"]["replicas"] = max(
            wanted - sum(each["spec"]["replicas"] for each in older), newest["spec"]["replicas"]
        )
        revision = (deployment["metadata"].get("annotations") or {}).get(_REVISION)
        if revision:
            newest["metadata"]["annotations"] = {_REVISION: revision}


def _expect_replicas(
    documents: Iterable[Document],
    owned: Mapping[str, Sequence[_PodReferences]],
    others: _OtherObjects,
) -> None:
    """Let stateful sets want as many pods as the disruption controller expected.

    A set creates its pods one after the other: it may want more than there are.
    """
    sets = {each.item["metadata"]["uid"]: each.item for each in documents if each.kind == _SET}
    for budget in (item for key, item in others.named.items() if key[0] == _BUDGET):
        expected = (budget.get("status") or {}).get("expectedPods") or 0
        namespace = budget["metadata"].get("namespace") or "default"
        with suppress(msgspec.ValidationError, SelectorError):
            written = (budget.get("spec") or {}).get("selector")
            selector = from_label_selector(msgspec.convert(written, LabelSelector | None))
            covered = [
                uid
                for uid, group in owned.items()
                if group[0].namespace == namespace
                and any(selector.matches(each.metadata.labels or {}) for each in group)
            ]
            if len(covered) == 1 and covered[0] in sets:
                spec = sets[covered[0]]["spec"]
                spec["replicas"] = max(spec["replicas"], expected)


def _add_classes(found: StandIns, pods: Iterable[_PodReferences], others: _OtherObjects) -> None:
    """Add priority and runtime classes with the values that pods hold."""
    made: set[tuple[str, str]] = set()
    for pod in pods:
        spec = pod.spec
        name = spec.priority_class_name or ""
        key = ("PriorityClass", name)
        known = key in made or others.has(*key) or name in _SYSTEM_CLASSES
        if name and pod.metadata.uid and spec.priority is not None and not known:
            made.add(key)
            item: JsonObject = {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": spec.priority,
            }
            if spec.preemption_policy:
                item["preemptionPolicy"] = spec.preemption_policy
            found.documents.append(Document("", item))
        name = spec.runtime_class_name or ""
        key = ("RuntimeClass", name)
        if name and pod.metadata.uid and key not in made and not others.has(*key):
            made.add(key)
            item = {
                "apiVersion": "node.k8s.io/v1",
                "kind": "RuntimeClass",
                "metadata": {"name": name},
                "handler": name,
            }
            if spec.overhead:
                item["overhead"] = {"podFixed": spec.overhead}
            found.documents.append(Document("", item))


def _add_claims(found: StandIns, pods: Iterable[_PodReferences], others: _OtherObjects) -> None:
    """Add claims of pods; each is bound to a volume that the input does not have."""
    made: set[Key] = set()
    for pod in pods:
        if not pod.metadata.uid or not pod.active:
            continue
        names = {
            each.persistent_volume_claim.claim_name
            for each in pod.spec.volumes or ()
            if each.persistent_volume_claim is not None
        }
        claims = {name: others.named.get((_CLAIM, pod.namespace, name)) for name in names}
        found.absent.update({others.lacks(claim) for claim in claims.values()} - {""})
        for name in sorted(name for name, claim in claims.items() if claim is None):
            if (pod.namespace, name) in made:
                continue
            made.add((pod.namespace, name))
            item = {
                "apiVersion": "v1",
                "kind": _CLAIM,
                "metadata": {
                    "name": name,
                    "namespace": pod.namespace,
                    "uid": f"{UNKNOWN_VOLUME}-{pod.namespace}-{name}",
                    "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
                },
                "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": UNKNOWN_VOLUME},
                "status": {"phase": "Bound"},
            }
            found.documents.append(Document("", item))


class AbsentControllers(Controller[Key]):
    """Creates pods anew whose controller is not in the input and has no stand-in.

    Such controllers are jobs and those of custom resources. A pod with a random name gets a new one
    as soon as it is terminating; any other keeps its name, and is created once it is gone.
    """

    name: ClassVar = "controllers that are not in the input"

    def __init__(self, cluster: Cluster, uids: set[str]) -> None:
        """Watch the pods of the controllers with these *uids*."""
        super().__init__(cluster)
        self._uids = uids
        self._due: dict[Key, JsonObject] = {}
        self.watch("Pod", self._on_pod)
        self.watch_pods(None, listed=no_listed_pods)

    def _on_pod(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if old is None or (new is not None and not is_terminating(new)):
            return
        about = old["metadata"]
        owners = about.get("ownerReferences") or ()
        if not any(each.get("controller") and each.get("uid") in self._uids for each in owners):
            return
        ends = new is None if _keeps_name(about) else not is_terminating(old)
        if ends and (old.get("status") or {}).get("phase") not in FINISHED:
            self._due[key_of(old)] = old
            self.enqueue(key_of(old))

    def sync(self, key: Key) -> None:
        """Create the pod in the place of the one that had this key."""
        old = self._due.get(key)
        namespace = self.cluster.get("Namespace", "", key[0])
        if old is None or namespace is None or is_terminating(namespace):
            return
        about = old["metadata"]
        metadata = {
            part: copy.deepcopy(about[part])
            for part in ("namespace", "labels", "annotations", "ownerReferences")
            if part in about
        }
        if _keeps_name(about):
            metadata["name"] = about["name"]
        else:
            metadata["generateName"] = about["generateName"]
        spec = {part: value for part, value in old["spec"].items() if part not in _CREATED_BY_POD}
        self.cluster.create("Pod", {"metadata": metadata, "spec": spec})
        del self._due[key]


def _keeps_name(metadata: JsonObject) -> bool:
    """Whether the name of a pod is not one that the API server made up."""
    prefix, name = metadata.get("generateName"), metadata["name"]
    if not prefix or not name.startswith(prefix):
        return True
    tail = name[len(prefix) :]
    return len(tail) != RANDOM_LENGTH
