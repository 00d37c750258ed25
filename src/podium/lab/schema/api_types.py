"""The types of the API, read from the models of the installed `kubernetes_asyncio`.

A model is read when it is first asked for, from the text of its module: importing the library
imports every model there is and takes a second, reading the three hundred that the lab can ever
need takes a tenth of that. Names of types are the library's without version (`PodSpec`); what the
models do not tell (quantities, numbers of 64 bits, which object is "an integer or a string") is in
the small tables below.
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

LIST, MAP, ONE = "list", "map", ""

#: Types that are no models.
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
        PodDisruptionBudgetSpec.minAvailable
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
        CSIStorageCapacity.capacity CSIStorageCapacity.maximumVolumeSize
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
        NodeSwapStatus.capacity TokenRequest.expirationSeconds
        CSIDriverSpec.nodeAllocatableUpdatePeriodSeconds
        ListMeta.remainingItemCount ObjectMeta.deletionGracePeriodSeconds ObjectMeta.generation
    """,
}
_SPECIAL_TYPES = {field: kind for kind, text in _SPECIAL.items() for field in text.split()}

#: Kinds whose model is not `V1` and the kind.
_MODELS = {"Event": "CoreV1Event"}
_PREFIX = re.compile(
    r"^(Core|Events|Discovery|Storage|Authentication|Rbac|Flowcontrol)?V\d[a-z\d]*?(?=[A-Z])"
)


_DOCUMENTED = re.compile(
    r'"""Gets the (\w+) of this \w+\.  # noqa: E501\n\n(?!\s*:return:)(.*?)\n\n +:return:',
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class FieldType:
    """The type of a field: of itself, or of the items of its list or map."""

    #: The library's model (`V1Container`), or one of the scalar types above.
    of: str
    container: str = ONE

    @property
    def is_model(self) -> bool:
        """Whether it has fields of its own."""
        return self.of not in SCALARS


@dataclass(frozen=True, slots=True)
class Model:
    """A type with fields, by the names they have in JSON."""

    name: str
    fields: Mapping[str, FieldType]
    required: tuple[str, ...]

    @property
    def short(self) -> str:
        """Its name without version: `PodSpec`."""
        return short_name(self.name)


class UnknownModelError(PodiumError):
    """The installed library has no such type."""


def short_name(model: str) -> str:
    """The name of a model without group and version."""
    return _PREFIX.sub("", model)


def model_of_kind(kind: str, api_version: str = "") -> str:
    """The model of a kind: `V1Pod`; events exist in two groups."""
    if kind == "Event" and api_version.startswith("events.k8s.io/"):
        return "EventsV1Event"
    return _MODELS.get(kind, f"V1{kind}")


@lru_cache(maxsize=1)
def _sources() -> Mapping[str, Path]:
    """The modules of the library by model, in lower case and without underscores."""
    found = importlib.util.find_spec("kubernetes_asyncio")
    folders = found.submodule_search_locations if found else None
    if not folders:
        raise UnknownModelError("kubernetes_asyncio is not installed; install podium again")
    models = Path(folders[0], "client", "models")
    return {path.stem.replace("_", ""): path for path in models.glob("*.py")}


def has_model(name: str) -> bool:
    """Whether the library knows the model."""
    return name.lower() in _sources()


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
    """`list[V1Container]`, `dict(str, str)` and the like."""
    container, inner = ONE, written
    if written.startswith("list["):
        container, inner = LIST, written[5:-1]
    elif written.startswith("dict("):
        container, inner = MAP, written[5:-1].partition(", ")[2]
    if inner.startswith("list["):
        inner = "object"
    special = _SPECIAL_TYPES.get(f"{type_name}.{field}")
    return FieldType(special or _PYTHON_TYPES.get(inner, inner), container)


@cache
def model(name: str) -> Model:
    """A model by the library's name."""
    text = _text(name)
    types, names = _table(text, "openapi_types"), _table(text, "attribute_map")
    short = short_name(name)
    fields = {names[own]: _field_type(short, names[own], kind) for own, kind in types.items()}
    # Only a required field is set without asking first whether there is a value.
    required = re.findall(r"^ {8}self\.(\w+) = \1$", text, re.MULTILINE)
    required = [own for own in required if own in names]
    return Model(name, fields, tuple(names[own] for own in required))


def descriptions(name: str) -> dict[str, str]:
    """What each field of a model is for, by its name in JSON."""
    text = _text(name)
    names = _table(text, "attribute_map")
    found = {}
    for own, said in _DOCUMENTED.findall(text):
        plain = said.replace("  # noqa: E501", "").replace('\\"', '"').strip()
        found[names[own]] = plain
    return found


def reachable(*roots: str) -> list[str]:
    """The models that these refer to, themselves included, each once."""
    found: dict[str, None] = {}
    waiting = list(reversed(roots))
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found[name] = None
        waiting += [each.of for each in model(name).fields.values() if each.is_model]
    return list(found)
