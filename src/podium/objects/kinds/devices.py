"""Devices of Dynamic Resource Allocation, and what an API server refuses in them.

A driver publishes devices in ResourceSlices. A ResourceClaim asks for devices of DeviceClasses and
holds in its status which ones it got. A DeviceTaintRule taints devices that a driver did not.
Upstream: resource.k8s.io/v1, Kubernetes v1.37.

Each function yields the path of a field, what is wrong there and what would work. Upstream:
pkg/apis/resource/validation, Kubernetes v1.36, as far as scheduling depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from podium.objects.field_errors import Fault
from podium.objects.kinds.meta import Int64, Object, ObjectMeta, RawQuantity, Value
from podium.objects.kinds.pod import NodeSelector
from podium.objects.names import is_subdomain

#: Keeps an allocated claim from being deleted before its devices are released.
CLAIM_FINALIZER = "resource.kubernetes.io/delete-protection"
#: Marks a claim that the scheduler made for the extended resources of a pod.
EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
#: In front of the name of a class: the extended resource that every class has.
IMPLICIT_RESOURCE_PREFIX = "deviceclass.resource.kubernetes.io/"

EXACT_COUNT, ALL_DEVICES = "ExactCount", "All"


class CelSelector(Value, frozen=True):
    """An expression that is true for the devices it selects."""

    expression: str = ""


class DeviceSelector(Value, frozen=True):
    """A condition on devices."""

    cel: CelSelector | None = None


class OpaqueConfig(Value, frozen=True):
    """Parameters for a driver, which nothing else understands."""

    driver: str = ""
    parameters: Any = None


class DeviceConfig(Value, frozen=True):
    """Parameters that are passed on to drivers with an allocation.

    `requests` is only in those of claims, `source` only in those of allocations.
    """

    source: str = ""
    requests: list[str] | None = None
    opaque: OpaqueConfig | None = None


class DeviceClassSpec(Value, frozen=True):
    """What the devices of a class have in common."""

    selectors: list[DeviceSelector] | None = None
    config: list[DeviceConfig] | None = None
    extended_resource_name: str | None = None


class DeviceClass(Object, frozen=True):
    """A class of devices that claims request."""

    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceToleration(Value, frozen=True):
    """A taint of devices that a request tolerates."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class CapacityRequirements(Value, frozen=True):
    """How much of each capacity a request needs on every device."""

    requests: dict[str, RawQuantity] | None = None


class DerivedAttribute(Value, frozen=True):
    """An attribute that is computed from others; no release has it on by default."""

    name: str = ""


class ExactDeviceRequest(Value, frozen=True):
    """A request for a number of devices of one class, or for all of them."""

    device_class_name: str = ""
    selectors: list[DeviceSelector] | None = None
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] | None = None
    capacity: CapacityRequirements | None = None
    derived_attributes: list[DerivedAttribute] | None = None


class DeviceSubRequest(Value, frozen=True):
    """One of several alternatives of a request."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[DeviceSelector] | None = None
    allocation_mode: str = ""
    count: Int64 = 0
    tolerations: list[DeviceToleration] | None = None
    capacity: CapacityRequirements | None = None
    derived_attributes: list[DerivedAttribute] | None = None


class DeviceRequest(Value, frozen=True):
    """A request of a claim: one kind of devices, or alternatives of which the first fit counts."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: list[DeviceSubRequest] | None = None


class DeviceConstraint(Value, frozen=True):
    """An attribute that must be the same, or different, for the devices of some requests."""

    requests: list[str] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(Value, frozen=True):
    """The devices that a claim asks for."""

    requests: list[DeviceRequest] | None = None
    constraints: list[DeviceConstraint] | None = None
    config: list[DeviceConfig] | None = None


class ResourceClaimSpec(Value, frozen=True):
    """The specification of a claim."""

    devices: DeviceClaim = DeviceClaim()


class AllocatedDevice(Value, frozen=True):
    """A device that a claim got, and the request it was for."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, RawQuantity] | None = None


class DeviceAllocation(Value, frozen=True):
    """The devices of an allocation and the parameters for their drivers."""

    results: list[AllocatedDevice] | None = None
    config: list[DeviceConfig] | None = None


class Allocation(Value, frozen=True):
    """What a claim got, and from which nodes it can be used; no selector means all of them."""

    devices: DeviceAllocation = DeviceAllocation()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ClaimConsumer(Value, frozen=True):
    """An object that a claim is reserved for; always a pod."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(Value, frozen=True):
    """A condition that a driver reports of an allocated device."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class AllocatedDeviceStatus(Value, frozen=True):
    """What a driver reports of an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: list[DeviceCondition] | None = None


class ResourceClaimStatus(Value, frozen=True):
    """The allocation of a claim and the pods that it is reserved for."""

    allocation: Allocation | None = None
    reserved_for: list[ClaimConsumer] | None = None
    devices: list[AllocatedDeviceStatus] | None = None


class ClaimMeta(ObjectMeta, frozen=True):
    """Metadata of a claim, with the finalizers that keep it from being deleted."""

    finalizers: list[str] | None = None


class ResourceClaim(Object, frozen=True):
    """A request for devices, and what it got."""

    metadata: ClaimMeta = ClaimMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def uid(self) -> str:
        """The uid; the key of a claim that was never in an API server."""
        return self.metadata.uid or self.key

    def is_reserved_for(self, pod_uid: str) -> bool:
        """Whether the claim is reserved for a pod."""
        return any(each.uid == pod_uid for each in self.status.reserved_for or ())


class ResourceClaimTemplateSpec(Value, frozen=True):
    """Metadata and specification of the claims that are made from a template."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(Object, frozen=True):
    """A template from which a controller makes one claim per pod."""

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class DeviceAttribute(Value, frozen=True):
    """The value of an attribute: one of these is set."""

    int_value: Int64 | None = msgspec.field(default=None, name="int")
    bool_value: bool | None = msgspec.field(default=None, name="bool")
    string_value: str | None = msgspec.field(default=None, name="string")
    version_value: str | None = msgspec.field(default=None, name="version")


class CapacityRange(Value, frozen=True):
    """The amounts that may be consumed: from a minimum in steps to a maximum."""

    min: RawQuantity | None = None
    max: RawQuantity | None = None
    step: RawQuantity | None = None


class CapacityPolicy(Value, frozen=True):
    """How much of a capacity may be consumed at a time."""

    default: RawQuantity | None = None
    valid_values: list[RawQuantity] | None = None
    valid_range: CapacityRange | None = None


class DeviceCapacity(Value, frozen=True):
    """An amount of something that a device has."""

    value: RawQuantity = 0
    request_policy: CapacityPolicy | None = None


class Counter(Value, frozen=True):
    """An amount that devices of a pool share."""

    value: RawQuantity = 0


class CounterSet(Value, frozen=True):
    """Amounts that devices of a pool share, under one name."""

    name: str = ""
    counters: dict[str, Counter] | None = None


class CounterConsumption(Value, frozen=True):
    """How much of the counters of one set a device uses up while it is allocated."""

    counter_set: str = ""
    counters: dict[str, Counter] | None = None
    #: Only devices with a common group share counters; no release has it on by default.
    compatibility_groups: list[str] | None = None


class DeviceTaint(Value, frozen=True):
    """Keeps claims that do not tolerate it from a device."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class Device(Value, frozen=True):
    """A device that a driver offers."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    consumes_counters: list[CounterConsumption] | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: list[DeviceTaint] | None = None
    binds_to_node: bool | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    allow_multiple_allocations: bool | None = None


class ResourcePool(Value, frozen=True):
    """The pool that a slice belongs to; only the newest generation of a pool counts."""

    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class ResourceSliceSpec(Value, frozen=True):
    """Devices, or shared counters, of one pool of a driver, and where they can be used."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: list[Device] | None = None
    shared_counters: list[CounterSet] | None = None


class ResourceSlice(Object, frozen=True):
    """A part of the devices of a pool."""

    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceTaintSelector(Value, frozen=True):
    """The devices that a taint rule is about; what is not set restricts nothing."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Value, frozen=True):
    """A taint, and the devices that get it."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(Object, frozen=True):
    """Adds a taint to all devices that match a selector."""

    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()

    def taint_of(self, found: ResourceSlice, device: Device) -> DeviceTaint | None:
        """The taint that a device of a slice gets; None if it gets none.

        Without a selector that is every device, as in kube-scheduler; the documentation of the API
        says that it is none.
        """
        wanted = self.spec.device_selector
        is_meant = wanted is None or (
            wanted.driver in {None, found.spec.driver}
            and wanted.pool in {None, found.spec.pool.name}
            and wanted.device in {None, device.name}
        )
        return self.spec.taint if is_meant else None


Faults = Iterator[Fault]

#: What the taint of a device may do to claims that do not tolerate it.
TAINT_EFFECTS: Final = ("NoSchedule", "NoExecute", "None")
MAX_ALTERNATIVES: Final = 8
MAX_RESULTS: Final = 32
MAX_DEVICES: Final = 128
#: Semantic versions as drivers publish them (semver 2.0.0).
_VERSION: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?"
)


def check_claim(claim: ResourceClaim) -> Faults:
    """Requests and constraints of a claim."""
    yield from _claim_spec(claim.spec, "spec")


def check_template(template: ResourceClaimTemplate) -> Faults:
    """Requests and constraints of the claims that are made from a template."""
    yield from _claim_spec(template.spec.spec, "spec.spec")


def check_class(found: DeviceClass) -> Faults:
    """The selectors of a class."""
    yield from _selectors(found.spec.selectors, "spec.selectors")


def check_slice(found: ResourceSlice) -> Faults:
    """The pool of a slice, where it can be used, and its devices."""
    spec = found.spec
    if not is_subdomain(spec.driver):
        yield Fault("spec.driver", f"{spec.driver!r} is not the name of a driver", _DNS_HINT)
    if not spec.pool.name:
        yield Fault("spec.pool.name", "is missing", "name the pool, often after the node")
    if spec.pool.resource_slice_count < 1:
        what = f"{spec.pool.resource_slice_count} is less than one"
        yield Fault("spec.pool.resourceSliceCount", what, "say how many slices the pool has")
    where = [
        name
        for name, given in (
            ("nodeName", bool(spec.node_name)),
            ("nodeSelector", spec.node_selector is not None),
            ("allNodes", bool(spec.all_nodes)),
            ("perDeviceNodeSelection", bool(spec.per_device_node_selection)),
        )
        if given
    ]
    if len(where) != 1:
        what = f"has {' and '.join(where) or 'nothing'} to say where its devices are"
        hint = "set exactly one of nodeName, nodeSelector, allNodes and perDeviceNodeSelection"
        yield Fault("spec", what, hint)
    if spec.devices and spec.shared_counters:
        yield Fault("spec", "has both devices and sharedCounters", "publish them in two slices")
    if len(spec.devices or ()) > MAX_DEVICES:
        what = f"has {len(spec.devices or ())} devices"
        yield Fault("spec.devices", what, f"a slice holds at most {MAX_DEVICES}")
    for index, device in enumerate(spec.devices or ()):
        yield from _device(device, f"spec.devices[{index}]")


def check_taint_rule(rule: DeviceTaintRule) -> Faults:
    """The taint of a rule, and that fields of its selector are set or left out."""
    taint, selector = rule.spec.taint, rule.spec.device_selector
    if not taint.key:
        yield Fault("spec.taint.key", "is missing", "every taint has a key")
    if taint.effect not in TAINT_EFFECTS:
        what = f"{taint.effect!r} is no effect" if taint.effect else "is missing"
        yield Fault("spec.taint.effect", what, f"effects are {', '.join(TAINT_EFFECTS)}")
    if selector is None:
        return
    for name in ("driver", "pool", "device"):
        if getattr(selector, name) == "":
            hint = "leave it out to select all of them"
            yield Fault(f"spec.deviceSelector.{name}", "is empty", hint)


def _unsupported(path: str, gate: str) -> Fault:
    what = f"needs the feature gate {gate}, which is off by default and not supported"
    return Fault(path, what, "leave it out")


def _device(device: Device, path: str) -> Faults:
    if not device.name:
        yield Fault(f"{path}.name", "is missing", "name the device")
    for index, consumed in enumerate(device.consumes_counters or ()):
        if consumed.compatibility_groups:
            where = f"{path}.consumesCounters[{index}].compatibilityGroups"
            yield _unsupported(where, "DRADeviceCompatibilityGroups")
    for name, attribute in (device.attributes or {}).items():
        values = (
            attribute.int_value,
            attribute.bool_value,
            attribute.string_value,
            attribute.version_value,
        )
        if sum(value is not None for value in values) != 1:
            what = f"{name!r} needs exactly one value"
            yield Fault(f"{path}.attributes", what, "set one of int, bool, string and version")
        version = attribute.version_value
        if version is not None and not _VERSION.fullmatch(version):
            what = f"{version!r} of {name!r} is not a semantic version"
            yield Fault(f"{path}.attributes", what, "write it as 1.2.3")


def _claim_spec(spec: ResourceClaimSpec, path: str) -> Faults:
    requests = spec.devices.requests or ()
    names = [request.name for request in requests]
    for index, request in enumerate(requests):
        where = f"{path}.devices.requests[{index}]"
        if names.index(request.name) != index:
            yield Fault(f"{where}.name", f"{request.name!r} appears twice", "name each once")
        yield from _request(request, where)
    known = {name for request in requests for name in _names_of(request)}
    for index, constraint in enumerate(spec.devices.constraints or ()):
        yield from _constraint(constraint, known, f"{path}.devices.constraints[{index}]")


def _names_of(request: DeviceRequest) -> list[str]:
    return [request.name, *(f"{request.name}/{s.name}" for s in request.first_available or ())]


def _request(request: DeviceRequest, path: str) -> Faults:
    if not request.name:
        yield Fault(f"{path}.name", "is missing", "name the request")
    alternatives = request.first_available or ()
    if (request.exactly is None) == (not alternatives):
        what = "needs either exactly or firstAvailable"
        yield Fault(path, what, "set one of the two")
    if len(alternatives) > MAX_ALTERNATIVES:
        what = f"has {len(alternatives)} alternatives"
        yield Fault(f"{path}.firstAvailable", what, f"at most {MAX_ALTERNATIVES} are possible")
    if request.exactly is not None:
        yield from _one(request.exactly, f"{path}.exactly")
    for index, each in enumerate(alternatives):
        yield from _one(each, f"{path}.firstAvailable[{index}]")


def _one(request: ExactDeviceRequest | DeviceSubRequest, path: str) -> Faults:
    if not request.device_class_name:
        yield Fault(f"{path}.deviceClassName", "is missing", "name a DeviceClass")
    mode, count = request.allocation_mode, request.count
    if mode not in {"", EXACT_COUNT, ALL_DEVICES}:
        what = f"{mode!r} is unknown"
        yield Fault(f"{path}.allocationMode", what, f"use {EXACT_COUNT} or {ALL_DEVICES}")
    if mode == ALL_DEVICES and count:
        what = f"{count} devices and all devices cannot both be wanted"
        yield Fault(f"{path}.count", what, f"leave it out with {ALL_DEVICES}")
    if count < 0:
        yield Fault(f"{path}.count", f"{count} is negative", "use one or more")
    if request.derived_attributes:
        yield _unsupported(f"{path}.derivedAttributes", "DRADerivedAttributes")
    yield from _selectors(request.selectors, f"{path}.selectors")


def _selectors(selectors: Sequence[DeviceSelector] | None, path: str) -> Faults:
    for index, selector in enumerate(selectors or ()):
        if selector.cel is None or not selector.cel.expression:
            yield Fault(f"{path}[{index}].cel", "is missing", "write a CEL expression")


def _constraint(constraint: DeviceConstraint, known: set[str], path: str) -> Faults:
    if (constraint.match_attribute is None) == (constraint.distinct_attribute is None):
        what = "needs either matchAttribute or distinctAttribute"
        yield Fault(path, what, "set one of the two")
    for name in constraint.requests or ():
        if name not in known:
            hint = f"the claim has {', '.join(sorted(known)) or 'none'}"
            yield Fault(f"{path}.requests", f"there is no request {name!r}", hint)


_DNS_HINT: Final = "use lower case letters, digits, '-' and '.', as in gpu.example.com"
