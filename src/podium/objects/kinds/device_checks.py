"""What an API server would refuse in objects of dynamic resource allocation.

Each function yields the path of a field, what is wrong there and what would work. Upstream:
pkg/apis/resource/validation, Kubernetes v1.36, as far as scheduling depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from podium.objects.kinds.devices import (
    ALL_DEVICES,
    EXACT_COUNT,
    Device,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaintRule,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceSlice,
)
from podium.objects.kinds.kind import Fault
from podium.objects.names import is_subdomain

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
