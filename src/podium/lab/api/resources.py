"""Which resources the lab serves: one table, read by discovery, paths, storage and kubectl's names.

A row is written as kubectl would print it. Two rows may show the same stored objects: events in
core/v1 and events.k8s.io/v1, disruption budgets in policy/v1 and policy/v1beta1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

READ = ("get", "list", "watch")
ALL = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
STATUS = ("get", "patch", "update")
ASK = ("create",)


@dataclass(frozen=True, slots=True)
class Subresource:
    """What lies below an object, and the kind of object that it reads and writes."""

    kind: str
    verbs: tuple[str, ...] = STATUS
    group: str | None = None  # that of the resource unless it is said
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource in one version."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    verbs: tuple[str, ...] = ALL
    #: The qualified name of the resource whose objects these are, if they are another's.
    view_of: str = ""

    @property
    def singular(self) -> str:
        """What one of them is called: `pod`."""
        return self.kind.lower()

    @property
    def qualified(self) -> str:
        """The name in messages: `pods`, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def storage(self) -> str:
        """The qualified name under which objects are kept."""
        return self.view_of or self.qualified

    @property
    def group_version(self) -> str:
        """As in `apiVersion`: `v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_kind(self) -> str:
        """The kind of a list of them."""
        return f"{self.kind}List"

    @property
    def prefix(self) -> str:
        """The path of its version: `/api/v1`, `/apis/apps/v1`."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "") -> str:
        """The path of a collection, or of one object."""
        middle = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{self.prefix}{middle}/{self.plural}" + (f"/{name}" if name else "")


def _own_status(kind: str) -> dict[str, Subresource]:
    return {"status": Subresource(kind)}


def _scaled(kind: str) -> dict[str, Subresource]:
    scale = Subresource("Scale", group="autoscaling", version="v1")
    return {"status": Subresource(kind), "scale": scale}


_POD = {
    "binding": Subresource("Binding", ("create",)),
    "eviction": Subresource("Eviction", ("create",), "policy", "v1"),
    "log": Subresource("Pod", ("get",)),
    "status": Subresource("Pod"),
}
_NAMESPACE = {
    "finalize": Subresource("Namespace", ("update",)),
    "status": Subresource("Namespace"),
}
_PDB = "poddisruptionbudgets.policy"
_NO_COLLECTION = ("create", "delete", "get", "list", "patch", "update", "watch")

TABLE: tuple[Resource, ...] = (
    # core
    Resource("", "v1", "bindings", "Binding", verbs=ASK),
    Resource("", "v1", "configmaps", "ConfigMap", short=("cm",)),
    Resource("", "v1", "endpoints", "Endpoints", short=("ep",)),
    Resource("", "v1", "events", "Event", short=("ev",)),
    Resource("", "v1", "limitranges", "LimitRange", short=("limits",)),
    Resource("", "v1", "namespaces", "Namespace", namespaced=False, short=("ns",),
             subresources=_NAMESPACE, verbs=_NO_COLLECTION),
    Resource("", "v1", "nodes", "Node", namespaced=False, short=("no",),
             subresources=_own_status("Node")),
    Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", short=("pvc",),
             subresources=_own_status("PersistentVolumeClaim")),
    Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False, short=("pv",),
             subresources=_own_status("PersistentVolume")),
    Resource("", "v1", "pods", "Pod", short=("po",), categories=("all",), subresources=_POD),
    Resource("", "v1", "podtemplates", "PodTemplate"),
    Resource("", "v1", "replicationcontrollers", "ReplicationController", short=("rc",),
             categories=("all",), subresources=_scaled("ReplicationController")),
    Resource("", "v1", "resourcequotas", "ResourceQuota", short=("quota",),
             subresources=_own_status("ResourceQuota")),
    Resource("", "v1", "secrets", "Secret"),
    Resource("", "v1", "serviceaccounts", "ServiceAccount", short=("sa",)),
    Resource("", "v1", "services", "Service", short=("svc",), categories=("all",),
             subresources=_own_status("Service")),
    # apps
    Resource("apps", "v1", "controllerrevisions", "ControllerRevision"),
    Resource("apps", "v1", "daemonsets", "DaemonSet", short=("ds",), categories=("all",),
             subresources=_own_status("DaemonSet")),
    Resource("apps", "v1", "deployments", "Deployment", short=("deploy",), categories=("all",),
             subresources=_scaled("Deployment")),
    Resource("apps", "v1", "replicasets", "ReplicaSet", short=("rs",), categories=("all",),
             subresources=_scaled("ReplicaSet")),
    Resource("apps", "v1", "statefulsets", "StatefulSet", short=("sts",), categories=("all",),
             subresources=_scaled("StatefulSet")),
    # questions that are answered and not kept
    Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview",
             namespaced=False, verbs=ASK),
    Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview",
             namespaced=False, verbs=ASK),
    Resource("authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview",
             namespaced=False, verbs=ASK),
    # batch
    Resource("batch", "v1", "cronjobs", "CronJob", short=("cj",), categories=("all",),
             subresources=_own_status("CronJob")),
    Resource("batch", "v1", "jobs", "Job", categories=("all",), subresources=_own_status("Job")),
    # Kept so that the manifests of whole applications can be applied; nothing acts on these.
    Resource("networking.k8s.io", "v1", "ingressclasses", "IngressClass", namespaced=False),
    Resource("networking.k8s.io", "v1", "ingresses", "Ingress", short=("ing",),
             subresources=_own_status("Ingress")),
    Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", short=("netpol",)),
    Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding",
             namespaced=False),
    Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False),
    Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding"),
    Resource("rbac.authorization.k8s.io", "v1", "roles", "Role"),
    # the rest
    Resource("coordination.k8s.io", "v1", "leases", "Lease"),
    Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"),
    Resource("events.k8s.io", "v1", "events", "Event", short=("ev",), view_of="events"),
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", short=("pdb",),
             subresources=_own_status("PodDisruptionBudget")),
    Resource("policy", "v1beta1", "poddisruptionbudgets", "PodDisruptionBudget", short=("pdb",),
             subresources=_own_status("PodDisruptionBudget"), view_of=_PDB),
    Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False,
             short=("pc",)),
    Resource("storage.k8s.io", "v1", "csidrivers", "CSIDriver", namespaced=False),
    Resource("storage.k8s.io", "v1", "csinodes", "CSINode", namespaced=False),
    Resource("storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity"),
    Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False,
             short=("sc",)),
    Resource("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", namespaced=False,
             subresources=_own_status("VolumeAttachment")),
)  # fmt: skip

#: By group, version and plural, as paths name them.
BY_PATH = {(each.group, each.version, each.plural): each for each in TABLE}
#: By `apiVersion` and `kind`, as objects name themselves.
BY_KIND = {(each.group_version, each.kind): each for each in TABLE}
#: The rows whose objects are kept, by the names under which they are kept.
STORED = {each.qualified: each for each in TABLE if not each.view_of and "list" in each.verbs}
#: The same by kind and by plural: no two of them share either.
BY_NAME = {
    name: each for each in STORED.values() for name in (each.qualified, each.plural, each.kind)
}


def stored(name: str) -> Resource:
    """The kept resource of this kind, plural or qualified name: `Pod`, `pods`, `jobs.batch`."""
    return BY_NAME[name]


def groups() -> dict[str, list[str]]:
    """The versions of each group, the preferred first; the core group is the empty name."""
    found: dict[str, list[str]] = {}
    for each in TABLE:
        versions = found.setdefault(each.group, [])
        if each.version not in versions:
            versions.append(each.version)
    return found
