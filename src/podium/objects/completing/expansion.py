"""What controllers make of workloads and pods: pods from templates, claims from claim templates.

Only for pods of manifests: a pod with a uid of its own came from a cluster, where the controller
has made its claims, or has not. Names are `<pod>-<entry>`, so that the same manifests always give
the same claims; claims that exist already are not made again.

Upstream: pkg/controller/resourceclaim, Kubernetes v1.36.

Only workloads without a `metadata.uid` are expanded: one with a uid came from a cluster, together
with its pods. Names and uids are derived from the name of the workload, so that the same manifests
always give the same pods; pods that exist already are not made again.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from podium.errors import InputError
from podium.objects.completing import daemons
from podium.objects.completing.defaults import admission_of
from podium.objects.kinds.defaults import default_claim, default_pod
from podium.objects.kinds.devices import ClaimMeta, ResourceClaim, ResourceClaimTemplate
from podium.objects.kinds.kind import Kind
from podium.objects.kinds.meta import LabelSelector, Object, ObjectMeta, OwnerReference
from podium.objects.kinds.pod import ClaimVolume, Pod, PodResourceClaimStatus, PodSpec, Volume
from podium.objects.kinds.registry import (
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    KINDS,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    STATEFUL_SET,
)
from podium.objects.kinds.workloads import (
    DaemonSet,
    Deployment,
    Job,
    PodTemplate,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    WorkloadSpec,
)
from podium.objects.reading.collection import Objects, label

#: The entry of `spec.resourceClaims` that a claim was made for.
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"


def with_claims_of_templates(objects: Objects) -> Objects:
    """The collection with a claim for each entry of a pod that names a template."""
    templates = {each.key: each for each in objects.of(RESOURCE_CLAIM_TEMPLATE)}
    if not templates:
        return objects
    objects = objects.copied()
    known = {each.key for each in objects.of(RESOURCE_CLAIM)}
    pods = objects.of(POD)
    for index, pod in enumerate(pods):
        if pod.spec.resource_claims and pod.metadata.uid == pod.key:
            made, pods[index] = _make_claims(pod, templates)
            where = objects.where(POD, index)
            for claim in made:
                if claim.key not in known:
                    objects.add(RESOURCE_CLAIM, claim, where)
    return objects


def _make_claims(
    pod: Pod, templates: dict[str, ResourceClaimTemplate]
) -> tuple[list[ResourceClaim], Pod]:
    """The claims of a pod, and the pod with their names in its status."""
    statuses = list(pod.status.resource_claim_statuses or ())
    noted = {status.name for status in statuses}
    claims = []
    for entry in pod.spec.resource_claims or ():
        template = templates.get(f"{pod.namespace}/{entry.resource_claim_template_name}")
        if entry.resource_claim_name is not None or template is None or entry.name in noted:
            continue
        claim = claim_of(template, pod, entry.name, f"{pod.name}-{entry.name}")
        claims.append(claim)
        statuses.append(PodResourceClaimStatus(entry.name, claim.name))
    status = replace(pod.status, resource_claim_statuses=statuses or None)
    return claims, replace(pod, status=status)


def claim_of(template: ResourceClaimTemplate, pod: Pod, entry: str, name: str) -> ResourceClaim:
    """The claim made from a template for one entry of a pod, which controls it."""
    owner = OwnerReference("Pod", pod.name, pod.uid, "v1", controller=True)
    about = template.spec.metadata
    metadata = ClaimMeta(
        name=name,
        namespace=pod.namespace,
        uid=f"{pod.namespace}/{name}",
        labels=about.labels,
        annotations={**(about.annotations or {}), POD_CLAIM_NAME: entry},
        owner_references=[owner],
    )
    return ResourceClaim(metadata=metadata, spec=template.spec.spec)


#: More replicas than any cluster holds are taken for a typing error.
_MAX_PODS = 1_000_000
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # as in Kubernetes: no words by accident
T = TypeVar("T", bound=Object)
_Identity = tuple[str, str, str]  # kind, namespace, name


def expand(objects: Objects) -> Objects:
    """The collection with the pods of its workloads, and the workloads as their owners."""
    workloads = [kind for kind in KINDS.values() if kind.template is not None]
    if all(item.metadata.uid for kind in workloads for item in objects.of(kind)):
        return objects
    return _Controllers(objects.copied()).run()


class _Controllers:
    """Every controller, run once over one collection."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.admission = admission_of(objects)
        self.claims = {each.key for each in objects.of(PERSISTENT_VOLUME_CLAIM)}
        self.pods = {pod.key for pod in objects.pods}
        alive = [pod for pod in objects.pods if not pod.finished]
        self.owned = Counter(_owner(pod) for pod in alive)
        self.deployed = {_owner(each) for each in objects.of(REPLICA_SET)}
        self.on_node = {(_owner(pod), pod.spec.node_name) for pod in alive}
        # Of the workload at hand:
        self.where = ""
        self.written: bytes | None = None
        self.source: bytes | None = None  # its template

    def run(self) -> Objects:
        self.each(REPLICATION_CONTROLLER, self.replicated)
        self.each(DEPLOYMENT, self.deployment)  # makes replica sets, so before those
        self.each(REPLICA_SET, self.replicated)
        self.each(STATEFUL_SET, self.stateful)
        self.each(JOB, self.job)
        self.each(DAEMON_SET, self.daemon)
        return self.objects

    def each(self, kind: Kind[T], controller: Callable[[T], None]) -> None:
        """Run a controller for the workloads of its kind that have no uid, giving them one."""
        items = self.objects.of(kind)
        for index, item in enumerate(items):
            if item.metadata.uid:
                continue
            items[index] = owner = _with_uid(kind, item)
            self.where = self.objects.where(kind, index)
            self.written = self.objects.sources.pop(f"{kind.name} {owner.key}", None)
            self.source = _template(self.written)
            try:
                controller(owner)
            except InputError as error:
                name = label(kind.name, owner.namespace, owner.name)
                raise error.located(where=self.where, object=name) from None

    def replicated(self, owner: ReplicationController | ReplicaSet) -> None:
        self.copies(owner, owner.spec.template, _or_one(owner.spec.replicas))

    def job(self, owner: Job) -> None:
        spec = owner.spec
        wanted = _or_one(spec.parallelism)
        if spec.completions is not None:
            wanted = min(wanted, spec.completions)
        labels = {"controller-uid": owner.metadata.uid, "job-name": owner.name}
        self.copies(owner, _labelled(spec.template, labels), 0 if spec.suspend else wanted)

    def deployment(self, owner: Deployment) -> None:
        """Make the replica set; it is expanded with the others."""
        if _identity(owner) in self.deployed:
            return
        digest = _hash(msgspec.json.encode(owner.spec.template), 10)
        labels = {"pod-template-hash": digest}
        template = _labelled(owner.spec.template, labels)
        selector = owner.spec.selector or LabelSelector()
        selector = replace(selector, match_labels=(selector.match_labels or {}) | labels)
        metadata = ObjectMeta(
            name=f"{owner.name}-{digest}",
            namespace=owner.namespace,
            labels=template.metadata.labels,
            owner_references=[_reference(owner)],
        )
        spec = WorkloadSpec(replicas=owner.spec.replicas, selector=selector, template=template)
        made = ReplicaSet(api_version="apps/v1", kind="ReplicaSet", metadata=metadata, spec=spec)
        self.objects.add(REPLICA_SET, made, self.where)
        if self.written is not None:
            self.objects.sources[f"ReplicaSet {made.key}"] = self.written

    def copies(self, owner: Object, template: PodTemplate | None, wanted: int) -> None:
        """Make equal pods until the owner has as many as it wants."""
        template = template or PodTemplate()
        missing = _checked(wanted - self.owned[_identity(owner)])
        spec = self.pod(owner, template, owner.name).spec
        stem, numbers = _stem(owner), count()
        while missing > 0:
            name = f"{stem}-{next(numbers)}"
            if f"{owner.namespace}/{name}" not in self.pods:
                self.add(_pod(owner, template, name, spec))
                missing -= 1

    def stateful(self, owner: StatefulSet) -> None:
        start = owner.spec.ordinals.start if owner.spec.ordinals else 0
        for ordinal in range(_checked(_or_one(owner.spec.replicas))):
            name = f"{owner.name}-{start + ordinal}"
            if f"{owner.namespace}/{name}" in self.pods:
                continue
            labels = {"statefulset.kubernetes.io/pod-name": name}
            template = _labelled(owner.spec.template, labels)
            volumes = _with_claims(template.spec.volumes, self.claim(owner, name))
            spec = replace(template.spec, volumes=volumes)
            self.add(self.pod(owner, replace(template, spec=spec), name))

    def claim(self, owner: StatefulSet, pod: str) -> dict[str, str]:
        """Make the claims of one pod that do not exist; the answer names them by volume."""
        names = {}
        selector = owner.spec.selector or LabelSelector()
        for template in owner.spec.volume_claim_templates or ():
            names[template.name] = f"{template.name}-{pod}"
            metadata = replace(
                template.metadata,
                name=names[template.name],
                namespace=owner.namespace,
                labels=template.labels | (selector.match_labels or {}),
            )
            claim = replace(template, kind="PersistentVolumeClaim", metadata=metadata)
            if claim.key not in self.claims:
                self.claims.add(claim.key)
                claim = default_claim(claim, self.admission)
                self.objects.add(PERSISTENT_VOLUME_CLAIM, claim, self.where)
        return names

    def daemon(self, owner: DaemonSet) -> None:
        template = owner.spec.template or PodTemplate()
        spec = daemons.tolerating(template.spec)
        stem = _stem(owner)
        for number, node in enumerate(self.objects.nodes):
            name = f"{stem}-{number}"
            there = (_identity(owner), node.name) in self.on_node
            if there or f"{owner.namespace}/{name}" in self.pods:
                continue
            if daemons.wanted_on(spec, node):
                bound = replace(template, spec=daemons.bound_to(spec, node))
                self.add(self.pod(owner, bound, name))

    def pod(self, owner: Object, template: PodTemplate, name: str) -> Pod:
        """One pod of *template*, as the API server would store it."""
        return default_pod(_pod(owner, template, name, template.spec), self.admission)

    def add(self, pod: Pod) -> None:
        pod = replace(pod, metadata=replace(pod.metadata, uid=pod.key))
        self.pods.add(pod.key)
        self.objects.add(POD, pod, self.where)
        if self.source is not None:
            self.objects.sources[pod.key] = self.source


def _pod(owner: Object, template: PodTemplate, name: str, spec: PodSpec) -> Pod:
    metadata = ObjectMeta(
        name=name,
        namespace=owner.namespace,
        labels=template.metadata.labels,
        annotations=template.metadata.annotations,
        owner_references=[_reference(owner)],
    )
    return Pod(api_version="v1", kind="Pod", metadata=metadata, spec=spec)


def _labelled(template: PodTemplate | None, labels: dict[str, str]) -> PodTemplate:
    template = template or PodTemplate()
    metadata = template.metadata
    return replace(template, metadata=replace(metadata, labels=(metadata.labels or {}) | labels))


def _with_claims(volumes: list[Volume] | None, claims: dict[str, str]) -> list[Volume] | None:
    if not claims:
        return volumes
    kept = [volume for volume in volumes or () if volume.name not in claims]
    return kept + [
        Volume(name=name, persistent_volume_claim=ClaimVolume(claim_name=claim))
        for name, claim in claims.items()
    ]


def _template(source: bytes | None) -> bytes | None:
    """The pod template in the JSON of a workload, without a kind."""
    if source is None:
        return None
    written = msgspec.json.decode(source)
    template = (written.get("spec") or {}).get("template") or {}
    return msgspec.json.encode({"metadata": template.get("metadata"), "spec": template.get("spec")})


def _with_uid(kind: Kind[T], owner: T) -> T:
    uid = f"{kind.name.lower()}-{owner.namespace}-{owner.name}"
    metadata = replace(owner.metadata, uid=uid, namespace=owner.namespace)
    version = owner.api_version or kind.api_versions[0]
    return replace(owner, api_version=version, kind=kind.name, metadata=metadata)


def _reference(owner: Object) -> OwnerReference:
    return OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.name,
        uid=owner.metadata.uid,
        controller=True,
    )


def _identity(owner: Object) -> _Identity:
    return owner.kind, owner.namespace, owner.name


def _owner(item: Object) -> _Identity:
    controller = item.metadata.controller()
    return (controller.kind, item.namespace, controller.name) if controller else ("", "", "")


def _stem(owner: Object) -> str:
    """What the names of an owner's pods begin with; the replica set of a deployment is hashed."""
    if _owner(owner)[0] == "Deployment":
        return owner.name
    return f"{owner.name}-{_hash('/'.join(_identity(owner)).encode(), 5)}"


def _hash(data: bytes, length: int) -> str:
    number = int.from_bytes(hashlib.sha256(data).digest())
    letters = []
    for _ in range(length):
        number, letter = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[letter])
    return "".join(letters)


def _or_one(number: int | None) -> int:
    return 1 if number is None else number


def _checked(pods: int) -> int:
    if pods > _MAX_PODS:
        raise InputError(f"asks for {pods} pods", hint=f"at most {_MAX_PODS} can be simulated")
    return pods
