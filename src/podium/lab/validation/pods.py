"""Validation of pods, and of updates of pods.

Upstream: pkg/apis/core/validation (ValidatePodSpec, ValidatePodUpdate).
"""

from __future__ import annotations

from collections.abc import Iterable

from podium.lab.api.field_errors import (
    FieldErrors,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
)
from podium.lab.validation.containers import validate_containers, validate_unique_name
from podium.lab.validation.devices import validate_pod_claims
from podium.lab.validation.names import NameRule, dns_label_reasons, dns_subdomain_reasons
from podium.lab.validation.placement import validate_placement
from podium.lab.validation.quantities import validate_quantity
from podium.objects.kinds.meta import JsonObject

RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MAX_SECONDS = 2**31 - 1
_NAME_FIELDS: tuple[tuple[str, NameRule], ...] = (
    ("serviceAccountName", dns_subdomain_reasons),
    ("nodeName", dns_subdomain_reasons),
    ("hostname", dns_label_reasons),
    ("subdomain", dns_label_reasons),
    ("priorityClassName", dns_subdomain_reasons),
    ("runtimeClassName", dns_subdomain_reasons),
)
_IMMUTABLE_MESSAGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)


def validate_pod(item: JsonObject) -> FieldErrors:
    """Validate the spec of a pod; a pod with scheduling gates cannot have a node."""
    spec = item["spec"]
    yield from validate_pod_spec(spec, "spec")
    if spec.get("schedulingGates") and spec.get("nodeName"):
        yield forbidden_field(
            "spec.nodeName", "cannot be set until all schedulingGates have been cleared"
        )


def validate_pod_spec(spec: JsonObject, path: str, claimed: Iterable[str] = ()) -> FieldErrors:
    """Validate the spec of a pod or a template.

    *claimed* are the names of volumes that a stateful set adds.
    """
    volumes = set(claimed)
    if spec.get("volumes"):
        yield from _validate_volumes(spec["volumes"], f"{path}.volumes", volumes)
    found, seen = spec.get("containers"), set[str]()
    if not found:
        yield required(f"{path}.containers")
    else:
        yield from validate_containers(found, f"{path}.containers", volumes, seen)
    if spec.get("initContainers"):
        yield from validate_containers(
            spec["initContainers"], f"{path}.initContainers", volumes, seen
        )
    if spec.get("restartPolicy") not in RESTART_POLICIES:
        yield not_supported(f"{path}.restartPolicy", spec.get("restartPolicy"), RESTART_POLICIES)
    if spec.get("dnsPolicy") not in _DNS_POLICIES:
        yield not_supported(f"{path}.dnsPolicy", spec.get("dnsPolicy"), _DNS_POLICIES)
    yield from _validate_names(spec, path)
    seconds = spec.get("activeDeadlineSeconds")
    if seconds is not None and not 1 <= seconds <= _MAX_SECONDS:
        yield invalid_value(
            f"{path}.activeDeadlineSeconds",
            seconds,
            f"must be between 1 and {_MAX_SECONDS}, inclusive",
        )
    for name, quantity in (spec.get("overhead") or {}).items():
        yield from validate_quantity(quantity, f"{path}.overhead[{name}]")
    yield from validate_pod_claims(spec, path)
    yield from validate_placement(spec, path)


def _validate_names(spec: JsonObject, path: str) -> FieldErrors:
    for field, check in _NAME_FIELDS:
        name = spec.get(field)
        if name:
            for reason in check(name):
                yield invalid_value(f"{path}.{field}", name, reason)


def _validate_volumes(volumes: list[JsonObject], path: str, names: set[str]) -> FieldErrors:
    for index, each in enumerate(volumes):
        here = f"{path}[{index}]"
        sources = [field for field, value in each.items() if field != "name" and value is not None]
        if not sources:
            yield required(here, "must specify a volume type")
        for extra in sources[1:]:
            yield forbidden_field(f"{here}.{extra}", "may not specify more than 1 volume type")
        if "hostPath" in sources and not each["hostPath"].get("path"):
            yield required(f"{here}.hostPath.path")
        claim = each.get("persistentVolumeClaim")
        if claim is not None and not claim.get("claimName"):
            yield required(f"{here}.persistentVolumeClaim.claimName")
        yield from validate_unique_name(each, here, names)


def validate_pod_update(item: JsonObject, old: JsonObject) -> FieldErrors:
    """Validate an update of a pod: most fields of its spec are immutable."""
    new, before = item["spec"], old["spec"]
    if new == before:
        return
    yield from _validate_toleration_update(new, before)
    yield from _validate_gate_update(new, before)
    yield from _validate_deadline_update(new, before)
    if _immutable_fields(new, before) != _immutable_fields(before, before):
        yield forbidden_field("spec", _IMMUTABLE_MESSAGE)


def _immutable_fields(spec: JsonObject, before: JsonObject) -> JsonObject:
    """The fields of *spec* that an update of a pod with the spec *before* cannot change."""
    gated = bool(before.get("schedulingGates"))
    loose = {"activeDeadlineSeconds", "tolerations", "schedulingGates"}
    if gated:
        # A gated pod is not scheduled yet: its node selector and affinity may be narrowed.
        loose |= {"nodeSelector", "affinity"}
    if before.get("terminationGracePeriodSeconds", 0) < 0:
        loose.add("terminationGracePeriodSeconds")
    made = {key: value for key, value in spec.items() if key not in loose}
    for field in ("containers", "initContainers"):
        if made.get(field):
            made[field] = [{**each, "image": ""} for each in made[field]]
    return made


def _validate_toleration_update(new: JsonObject, before: JsonObject) -> FieldErrors:
    wanted = new.get("tolerations") or []
    for each in before.get("tolerations") or ():
        if not any(_same_toleration(each, other) for other in wanted):
            yield forbidden_field(
                "spec.tolerations",
                "existing toleration can not be modified except its tolerationSeconds",
            )
            return


def _same_toleration(one: JsonObject, other: JsonObject) -> bool:
    fields = ("key", "operator", "value", "effect")
    return all((one.get(name) or "") == (other.get(name) or "") for name in fields)


def _validate_gate_update(new: JsonObject, before: JsonObject) -> FieldErrors:
    known = [each.get("name") for each in before.get("schedulingGates") or ()]
    for index, each in enumerate(new.get("schedulingGates") or ()):
        if each.get("name") not in known:
            yield forbidden_field(
                f"spec.schedulingGates[{index}].name",
                f"only deletion is allowed, but found new scheduling gate '{each.get('name')}'",
            )


def _validate_deadline_update(new: JsonObject, before: JsonObject) -> FieldErrors:
    after, now = new.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if now is None or after == now:
        return
    if after is None:
        yield invalid_value(
            "spec.activeDeadlineSeconds",
            after,
            "must not update from a positive integer to nil value",
        )
    elif after > now:
        yield invalid_value(
            "spec.activeDeadlineSeconds", after, "must be less than or equal to previous value"
        )
