"""The resources that the lab serves, one row each in `TABLE`, and their versions.

Discovery, the paths of requests, OpenAPI and the store follow this table. Two rows may serve the
same stored objects: events in core/v1 and events.k8s.io/v1, disruption budgets in policy/v1 and
policy/v1beta1. An object is stored in one version only. A resource that serves another version of
it converts it on the way out with `to_served` and on the way in with `to_stored`.

Upstream: pkg/apis/events/v1/conversion.go, pkg/apis/policy/v1beta1/conversion.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from podium.objects.kinds.meta import JsonObject

ALL = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
STATUS = ("get", "patch", "update")
CREATE_ONLY = ("create",)


@dataclass(frozen=True, slots=True, eq=False)
class CustomVersion:
    """The schema, the columns and the subresources of one version of a custom resource."""

    #: The `apiVersion` in which objects are stored.
    stored_version: str
    #: `openAPIV3Schema`; empty if there is none.
    schema: JsonObject = field(default_factory=dict)
    #: Whether fields that the schema does not have are kept everywhere.
    preserves_unknown: bool = False
    #: `additionalPrinterColumns`.
    columns: tuple[JsonObject, ...] = ()
    #: The paths of `subresources.scale`, if there is one.
    scale: JsonObject | None = None
    #: The warning of requests to a deprecated version.
    deprecation: str = ""


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource of an object, and the kind of object that it reads and writes."""

    kind: str
    verbs: tuple[str, ...] = STATUS
    group: str | None = None  # that of the resource if not given
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
    #: Whether its objects are computed when they are asked for, and never stored.
    computed: bool = False
    #: The qualified name of the resource whose stored objects this one serves in another version.
    view_of: str = ""
    #: The names that a definition gives a custom resource, if they do not follow from its kind.
    singular_name: str = ""
    list_name: str = ""
    #: Set for custom resources only.
    custom: CustomVersion | None = field(default=None, repr=False)

    def __hash__(self) -> int:
        """Resources of equal names have equal hashes."""
        return hash((self.group, self.version, self.plural))

    @property
    def singular(self) -> str:
        """The singular name: `pod`."""
        return self.singular_name or self.kind.lower()

    @property
    def qualified(self) -> str:
        """The name with its group: `pods`, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def storage(self) -> str:
        """The qualified name under which the objects are stored."""
        return self.view_of or self.qualified

    @property
    def group_version(self) -> str:
        """The `apiVersion` of its objects: `v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_kind(self) -> str:
        """The kind of its lists: `PodList`."""
        return self.list_name or f"{self.kind}List"

    @property
    def prefix(self) -> str:
        """The path of its group and version: `/api/v1`, `/apis/apps/v1`."""
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
_SERVICE_ACCOUNT = {
    "token": Subresource("TokenRequest", ("create",), "authentication.k8s.io", "v1"),
}
_HPA = "horizontalpodautoscalers.autoscaling"
_PDB = "poddisruptionbudgets.policy"
_NO_COLLECTION = ("create", "delete", "get", "list", "patch", "update", "watch")

_IDLE_WEBHOOKS = "the lab calls no webhooks: this configuration is kept and idle"
#: Kinds that the lab keeps and never acts on, with the warning that a client gets.
IDLE: Mapping[str, str] = {
    "APIService": "the lab has no other API servers behind it: this APIService is kept and idle",
    "MutatingWebhookConfiguration": _IDLE_WEBHOOKS,
    "ValidatingWebhookConfiguration": _IDLE_WEBHOOKS,
}

TABLE: tuple[Resource, ...] = (
    # core
    Resource("", "v1", "bindings", "Binding", verbs=CREATE_ONLY),
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
    Resource("", "v1", "serviceaccounts", "ServiceAccount", short=("sa",),
             subresources=_SERVICE_ACCOUNT),
    Resource("", "v1", "services", "Service", short=("svc",), categories=("all",),
             subresources=_own_status("Service")),
    # kinds that other kinds come from or that others would answer for
    Resource("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations",
             "MutatingWebhookConfiguration", namespaced=False),
    Resource("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations",
             "ValidatingWebhookConfiguration", namespaced=False),
    Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition",
             namespaced=False, short=("crd", "crds"), categories=("api-extensions",),
             subresources=_own_status("CustomResourceDefinition")),
    Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False,
             categories=("api-extensions",), subresources=_own_status("APIService")),
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
    # reviews, which are answered and not stored
    Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview",
             namespaced=False, verbs=CREATE_ONLY),
    Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False,
             verbs=CREATE_ONLY),
    Resource("authorization.k8s.io", "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview",
             verbs=CREATE_ONLY),
    Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview",
             namespaced=False, verbs=CREATE_ONLY),
    Resource("authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview",
             namespaced=False, verbs=CREATE_ONLY),
    Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview",
             namespaced=False, verbs=CREATE_ONLY),
    # autoscaling
    Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler",
             short=("hpa",), categories=("all",),
             subresources=_own_status("HorizontalPodAutoscaler")),
    Resource("autoscaling", "v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler",
             short=("hpa",), categories=("all",), view_of=_HPA,
             subresources=_own_status("HorizontalPodAutoscaler")),
    Resource("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", namespaced=False,
             verbs=("get", "list"), computed=True),
    Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics", verbs=("get", "list"),
             computed=True),
    # batch
    Resource("batch", "v1", "cronjobs", "CronJob", short=("cj",), categories=("all",),
             subresources=_own_status("CronJob")),
    Resource("batch", "v1", "jobs", "Job", categories=("all",), subresources=_own_status("Job")),
    # Stored so that the manifests of whole applications can be applied; no controller acts on them.
    Resource("networking.k8s.io", "v1", "ingressclasses", "IngressClass", namespaced=False),
    Resource("networking.k8s.io", "v1", "ingresses", "Ingress", short=("ing",),
             subresources=_own_status("Ingress")),
    Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", short=("netpol",)),
    Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding",
             namespaced=False),
    Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False),
    Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding"),
    Resource("rbac.authorization.k8s.io", "v1", "roles", "Role"),
    # devices
    Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False),
    Resource("resource.k8s.io", "v1", "devicetaintrules", "DeviceTaintRule", namespaced=False,
             subresources=_own_status("DeviceTaintRule")),
    Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim",
             subresources=_own_status("ResourceClaim")),
    Resource("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate"),
    Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False),
    # the rest
    Resource("coordination.k8s.io", "v1", "leases", "Lease"),
    Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"),
    Resource("events.k8s.io", "v1", "events", "Event", short=("ev",), view_of="events"),
    Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False),
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", short=("pdb",),
             subresources=_own_status("PodDisruptionBudget")),
    Resource("policy", "v1beta1", "poddisruptionbudgets", "PodDisruptionBudget", short=("pdb",),
             subresources=_own_status("PodDisruptionBudget"), view_of=_PDB),
    Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False,
             short=("pc",)),
    Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup",
             subresources=_own_status("PodGroup")),
    Resource("storage.k8s.io", "v1", "csidrivers", "CSIDriver", namespaced=False),
    Resource("storage.k8s.io", "v1", "csinodes", "CSINode", namespaced=False),
    Resource("storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity"),
    Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False,
             short=("sc",)),
    Resource("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", namespaced=False,
             subresources=_own_status("VolumeAttachment")),
)  # fmt: skip

#: Resources by group, version and plural, as in a path.
BY_PATH = {(each.group, each.version, each.plural): each for each in TABLE}
#: The resources whose objects are stored, by qualified name.
STORED = {
    each.qualified: each
    for each in TABLE
    if not each.view_of and not each.computed and "list" in each.verbs
}
#: Kinds that are written without any change of the cluster. No controller caches them.
RECORDS_ONLY = frozenset({"Event", "Lease"})
#: Stored resources by qualified name, plural and kind, which are all unique.
BY_NAME = {
    name: each for each in STORED.values() for name in (each.qualified, each.plural, each.kind)
}


def stored(name: str) -> Resource:
    """The stored resource of this kind, plural or qualified name: `Pod`, `pods`, `jobs.batch`."""
    return BY_NAME[name]


def groups(resources: Iterable[Resource] = TABLE) -> dict[str, list[str]]:
    """The versions of each group, the preferred one first; the core group is `""`."""
    found: dict[str, list[str]] = {}
    for each in resources:
        versions = found.setdefault(each.group, [])
        if each.version not in versions:
            versions.append(each.version)
    return found


#: Names of the fields of an event in core/v1 and in events.k8s.io/v1.
_EVENT_FIELDS = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_STORED_EVENT_FIELDS = {new: old for old, new in _EVENT_FIELDS.items()}


def to_served(resource: Resource, item: JsonObject) -> JsonObject:
    """A stored object in the version of *resource*."""
    if not resource.view_of:
        return item
    if resource.kind == "HorizontalPodAutoscaler":
        return _autoscaler_v1(item) | {"apiVersion": resource.group_version}
    names = _EVENT_FIELDS if resource.kind == "Event" else {}
    made = {names.get(field, field): value for field, value in item.items()}
    return made | {"apiVersion": resource.group_version}


def to_stored(resource: Resource, item: JsonObject) -> JsonObject:
    """An object in the version of *resource*, in the version in which it is stored."""
    if not resource.view_of:
        return item
    names = _STORED_EVENT_FIELDS if resource.kind == "Event" else {}
    made = {names.get(field, field): value for field, value in item.items()}
    if resource.kind == "Event":
        made.setdefault("involvedObject", {})
    if resource.kind == "HorizontalPodAutoscaler" and resource.custom is None:
        made = _autoscaler_v2(made)
    if resource.custom is not None:
        return made | {"apiVersion": resource.custom.stored_version}
    return made | {"apiVersion": stored(resource.view_of).group_version}


def _autoscaler_v1(item: JsonObject) -> JsonObject:
    """An autoscaler of autoscaling/v2 in v1, which knows the utilization of CPU only."""
    spec, status = dict(item.get("spec") or {}), dict(item.get("status") or {})
    for metric in spec.pop("metrics", None) or ():
        utilization = _cpu_utilization(metric, "target")
        if utilization is not None:
            spec["targetCPUUtilizationPercentage"] = utilization
    spec.pop("behavior", None)
    status.pop("conditions", None)
    for metric in status.pop("currentMetrics", None) or ():
        utilization = _cpu_utilization(metric, "current")
        if utilization is not None:
            status["currentCPUUtilizationPercentage"] = utilization
    return item | {"spec": spec, "status": status}


def _cpu_utilization(metric: JsonObject, part: str) -> int | None:
    source = metric.get("resource") or {}
    if metric.get("type") != "Resource" or source.get("name") != "cpu":
        return None
    found: int | None = (source.get(part) or {}).get("averageUtilization")
    return found


def _autoscaler_v2(item: JsonObject) -> JsonObject:
    """An autoscaler of autoscaling/v1 in v2."""
    spec, status = dict(item.get("spec") or {}), dict(item.get("status") or {})
    wanted = spec.pop("targetCPUUtilizationPercentage", None)
    if wanted is not None:
        target = {"type": "Utilization", "averageUtilization": wanted}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    status.pop("currentCPUUtilizationPercentage", None)
    made = item | {"spec": spec}
    return made | {"status": status} if "status" in item else made
