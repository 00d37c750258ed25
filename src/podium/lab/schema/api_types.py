"""The types of the API, read from the models of the installed `kubernetes_asyncio`.

A model is read from the text of its module when it is first used: importing the library imports
every model and takes a second; reading the three hundred models that the lab can ever need takes a
tenth of that. The short name of a type is the library's without version (`PodSpec`). The tables
below hold what the models do not say: which fields are quantities, 64-bit integers, or "an integer
or a string".
"""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from podium.errors import PodiumError

LIST, MAP, SINGLE = "list", "map", ""

#: Scalar types.
STRING, INTEGER, BOOLEAN, ANY = "string", "integer", "boolean", "any"
TIME, MICRO_TIME = "Time", "MicroTime"
INT_OR_STRING, QUANTITY, FIELDS, BYTES = "IntOrString", "Quantity", "FieldsV1", "bytes"
LONG = "long"
SCALARS = frozenset(
    {STRING, INTEGER, LONG, BOOLEAN, ANY, TIME, MICRO_TIME, INT_OR_STRING, QUANTITY, FIELDS, BYTES}
)

_PYTHON_TYPES = {"str": STRING, "int": INTEGER, "bool": BOOLEAN, "datetime": TIME, "object": ANY}
_SPECIAL = {
    INT_OR_STRING: """
        RollingUpdateDaemonSet.maxSurge RollingUpdateDaemonSet.maxUnavailable
        RollingUpdateDeployment.maxSurge RollingUpdateDeployment.maxUnavailable
        RollingUpdateStatefulSetStrategy.maxUnavailable HTTPGetAction.port ServicePort.targetPort
        TCPSocketAction.port PodDisruptionBudgetSpec.maxUnavailable
        PodDisruptionBudgetSpec.minAvailable NetworkPolicyPort.port
    """,
    QUANTITY: """
        ContainerStatus.allocatedResources EmptyDirVolumeSource.sizeLimit LimitRangeItem.default
        LimitRangeItem.defaultRequest LimitRangeItem.max LimitRangeItem.maxLimitRequestRatio
        LimitRangeItem.min NodeStatus.allocatable NodeStatus.capacity
        PersistentVolumeClaimStatus.allocatedResources PersistentVolumeClaimStatus.capacity
        PersistentVolumeSpec.capacity PodSpec.overhead PodStatus.allocatedResources
        ResourceFieldSelector.divisor ResourceQuotaSpec.hard ResourceQuotaStatus.hard
        ResourceQuotaStatus.used ResourceRequirements.limits ResourceRequirements.requests
        VolumeResourceRequirements.limits VolumeResourceRequirements.requests
        CSIStorageCapacity.capacity CSIStorageCapacity.maximumVolumeSize Overhead.podFixed
        MetricTarget.value MetricTarget.averageValue MetricValueStatus.value
        MetricValueStatus.averageValue HPAScalingRules.tolerance Counter.value
        DeviceCapacity.value CapacityRequestPolicy.default CapacityRequestPolicy.validValues
        CapacityRequestPolicyRange.max CapacityRequestPolicyRange.min
        CapacityRequestPolicyRange.step CapacityRequirements.requests
        DeviceRequestAllocationResult.consumedCapacity
        NodeAllocatableResourceMapping.allocationMultiplier
    """,
    MICRO_TIME: """
        LeaseSpec.acquireTime LeaseSpec.renewTime Event.eventTime EventSeries.lastObservedTime
    """,
    FIELDS: "ManagedFieldsEntry.fieldsV1",
    BYTES: "ConfigMap.binaryData Secret.data",
    LONG: """
        ControllerRevision.revision DaemonSetStatus.observedGeneration
        DeploymentStatus.observedGeneration ReplicaSetStatus.observedGeneration
        StatefulSetStatus.observedGeneration CronJobSpec.startingDeadlineSeconds
        JobSpec.activeDeadlineSeconds ContainerImage.sizeBytes PodSecurityContext.fsGroup
        PodSecurityContext.runAsGroup PodSecurityContext.runAsUser
        PodSecurityContext.supplementalGroups PodSpec.activeDeadlineSeconds
        PodSpec.terminationGracePeriodSeconds Probe.terminationGracePeriodSeconds
        SecurityContext.runAsGroup SecurityContext.runAsUser
        ServiceAccountTokenProjection.expirationSeconds SleepAction.seconds
        Toleration.tolerationSeconds Condition.observedGeneration PodCondition.observedGeneration
        PodStatus.observedGeneration PodDisruptionBudgetStatus.observedGeneration
        ReplicationControllerStatus.observedGeneration DeleteOptions.gracePeriodSeconds
        LinuxContainerUser.gid LinuxContainerUser.supplementalGroups LinuxContainerUser.uid
        NodeSwapStatus.capacity TokenRequest.expirationSeconds TokenRequestSpec.expirationSeconds
        HorizontalPodAutoscalerStatus.observedGeneration
        CSIDriverSpec.nodeAllocatableUpdatePeriodSeconds
        DeviceAttribute.int DeviceAttribute.ints DeviceSubRequest.count
        DeviceToleration.tolerationSeconds ExactDeviceRequest.count ResourcePool.generation
        ResourcePool.resourceSliceCount
        ListMeta.remainingItemCount ObjectMeta.deletionGracePeriodSeconds ObjectMeta.generation
    """,
}
_SPECIAL_TYPES = {field: kind for kind, text in _SPECIAL.items() for field in text.split()}

#: Models that contain themselves; they are read without a look at their fields.
_RECURSIVE = frozenset({"V1JSONSchemaProps"})
#: Kinds whose model is not named `V1` and the kind.
_MODELS = {
    # Of v1 in the API since v1.37; the fields are those of v1beta2.
    "DeviceTaintRule": "V1beta2DeviceTaintRule",
    "Event": "CoreV1Event",
    "PodGroup": "V1beta1PodGroup",
    # CoreV1ResourceClaim is the entry of a container.
    "ResourceClaim": "ResourceV1ResourceClaim",
    "TokenRequest": "AuthenticationV1TokenRequest",
}
_PREFIX = re.compile(
    r"^(Core|Events|Discovery|Storage|Authentication|Rbac|Flowcontrol|Resource)?V\d[a-z\d]*?(?=[A-Z])"
)
_DESCRIPTION = re.compile(
    r'"""Gets the (\w+) of this \w+\.  # noqa: E501\n\n(?!\s*:return:)(.*?)\n\n +:return:',
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class FieldType:
    """The type of a field's value, or of the items if the field is a list or a map."""

    #: A model of the library (`V1Container`) or one of the scalar types above.
    of: str
    #: `LIST`, `MAP` or `SINGLE`.
    container: str = SINGLE

    @property
    def is_model(self) -> bool:
        """Whether the value, or each item, is an object with declared fields."""
        return self.of not in SCALARS


@dataclass(frozen=True, slots=True)
class Model:
    """A type with declared fields, by their names in JSON."""

    name: str
    fields: Mapping[str, FieldType]
    required: tuple[str, ...]

    @property
    def short(self) -> str:
        """The name without group and version: `PodSpec`."""
        return short_name(self.name)


class UnknownModelError(PodiumError):
    """The installed `kubernetes_asyncio` does not have a model."""


def short_name(model: str) -> str:
    """The name of a model without group and version: `PodSpec` for `V1PodSpec`."""
    return _PREFIX.sub("", model)


def model_of_kind(kind: str, api_version: str = "") -> str:
    """The name of the model of a kind: `V1Pod` for `Pod`."""
    # The kind Event exists in two groups.
    if kind == "Event" and api_version.startswith("events.k8s.io/"):
        return "EventsV1Event"
    if api_version == "autoscaling/v2":
        return f"V2{kind}"
    return _MODELS.get(kind, f"V1{kind}")


def _own(name: str, fields: str, required: str = "") -> Model:
    """A model from lines of a field and its type; a type in brackets is that of a list."""
    types: dict[str, FieldType] = {}
    for line in fields.split("; "):
        field, _, kind = line.partition(" ")
        inner = kind.strip("[]")
        types[field] = FieldType(inner, LIST if inner != kind else SINGLE)
    return Model(name, types, tuple(required.split()))


#: Models of a newer API than that of the installed library.
_OWN: Mapping[str, Model] = {
    each.name: each
    for each in (
        _own(
            "V1beta1PodGroup",
            "apiVersion string; kind string; metadata V1ObjectMeta; spec V1beta1PodGroupSpec; "
            "status V1beta1PodGroupStatus",
        ),
        _own(
            "V1beta1PodGroupList",
            "apiVersion string; kind string; metadata V1ListMeta; items [V1beta1PodGroup]",
            "items",
        ),
        _own(
            "V1beta1PodGroupSpec",
            "disruptionMode V1beta1DisruptionMode; parentCompositePodGroupName string; "
            "preemptionPolicy string; priority integer; priorityClassName string; "
            "resourceClaims [V1alpha2PodGroupResourceClaim]; "
            "schedulingConstraints V1alpha2PodGroupSchedulingConstraints; "
            "schedulingPolicy V1beta1PodGroupSchedulingPolicy; "
            "workloadRef V1beta1WorkloadReference",
            "schedulingPolicy",
        ),
        _own("V1beta1PodGroupSchedulingPolicy", "basic any; gang V1beta1GangSchedulingPolicy"),
        _own("V1beta1GangSchedulingPolicy", "minCount integer", "minCount"),
        _own("V1beta1DisruptionMode", "all any; single any"),
        _own("V1beta1WorkloadReference", "templateName string; workloadName string"),
        _own(
            "V1beta1PodGroupStatus",
            "conditions [V1Condition]; resourceClaimStatuses [V1alpha2PodGroupResourceClaimStatus]",
        ),
    )
}


@lru_cache(maxsize=1)
def _sources() -> Mapping[str, Path]:
    """The modules of the library by the name of their model in lower case."""
    found = importlib.util.find_spec("kubernetes_asyncio")
    folders = found.submodule_search_locations if found else None
    if not folders:
        raise UnknownModelError("kubernetes_asyncio is not installed; install podium again")
    models = Path(folders[0], "client", "models")
    return {path.stem.replace("_", ""): path for path in models.glob("*.py")}


def has_model(name: str) -> bool:
    """Whether the library has a model of this name."""
    return name in _OWN or name.lower() in _sources()


@lru_cache(maxsize=8)
def _text(name: str) -> str:
    try:
        return _sources()[name.lower()].read_text("utf-8")
    except KeyError:
        raise UnknownModelError(f"kubernetes_asyncio has no model {name}") from None


def _table(text: str, variable: str) -> dict[str, str]:
    start = text.index("{", text.index(f"    {variable} = "))
    read: dict[str, str] = ast.literal_eval(text[start : text.index("}", start) + 1])
    return read


def _field_type(type_name: str, field: str, written: str) -> FieldType:
    """The type that a model writes as `list[V1Container]` or `dict(str, str)`."""
    container, inner = SINGLE, written
    if written.startswith("list["):
        container, inner = LIST, written[5:-1]
    elif written.startswith("dict("):
        container, inner = MAP, written[5:-1].partition(", ")[2]
    if inner.startswith("list["):
        inner = "object"
    if inner in _RECURSIVE:
        return FieldType(ANY, container)
    special = _SPECIAL_TYPES.get(f"{type_name}.{field}")
    return FieldType(special or _PYTHON_TYPES.get(inner, inner), container)


@cache
def model(name: str) -> Model:
    """The model of this name: `V1Pod`."""
    if name in _OWN:
        return _OWN[name]
    text = _text(name)
    types, names = _table(text, "openapi_types"), _table(text, "attribute_map")
    short = short_name(name)
    fields = {names[own]: _field_type(short, names[own], kind) for own, kind in types.items()}
    # The constructor of a model assigns a required field without a check for `None`.
    required = re.findall(r"^ {8}self\.(\w+) = \1$", text, re.MULTILINE)
    required = [own for own in required if own in names]
    return Model(name, fields, tuple(names[own] for own in required))


def descriptions(name: str) -> dict[str, str]:
    """The description of each field of a model, by its name in JSON."""
    if name in _OWN:
        return {}
    text = _text(name)
    names = _table(text, "attribute_map")
    found = {}
    for own, text_lines in _DESCRIPTION.findall(text):
        plain = text_lines.replace("  # noqa: E501", "").replace('\\"', '"').strip()
        found[names[own]] = plain
    return found


def reachable(*roots: str) -> list[str]:
    """The names of the models that *roots* refer to, directly or not, *roots* included."""
    found: dict[str, None] = {}
    waiting = list(reversed(roots))
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found[name] = None
        waiting += [each.of for each in model(name).fields.values() if each.is_model]
    return list(found)
