"""What is refused in pods, and what may not change once they exist.

Upstream: pkg/apis/core/validation (ValidatePodSpec, ValidatePodUpdate).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podium.lab.api.field_errors import (
    FieldError,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
)
from podium.lab.api.status import JsonDict
from podium.lab.validation.containers import containers, own_name
from podium.lab.validation.names import Check, label_reasons, subdomain_reasons
from podium.lab.validation.placement import placement
from podium.lab.validation.quantities import amount

Problems = Iterator[FieldError]

RESTARTS = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MOST_SECONDS = 2**31 - 1
_NAMES: tuple[tuple[str, Check], ...] = (
    ("serviceAccountName", subdomain_reasons),
    ("nodeName", subdomain_reasons),
    ("hostname", label_reasons),
    ("subdomain", label_reasons),
    ("priorityClassName", subdomain_reasons),
    ("runtimeClassName", subdomain_reasons),
)
_CHANGES = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)


def pod(item: JsonDict) -> Problems:
    """A pod."""
    spec = item["spec"]
    yield from pod_spec(spec, "spec")
    if spec.get("schedulingGates") and spec.get("nodeName"):
        yield forbidden_field(
            "spec.nodeName", "cannot be set until all schedulingGates have been cleared"
        )


def pod_spec(spec: JsonDict, path: str, claimed: Iterable[str] = ()) -> Problems:
    """The specification of a pod, here or in a template; its controller adds claimed volumes."""
    volumes = set(claimed)
    if spec.get("volumes"):
        yield from _volumes(spec["volumes"], f"{path}.volumes", volumes)
    found, seen = spec.get("containers"), set[str]()
    if not found:
        yield required(f"{path}.containers")
    else:
        yield from containers(found, f"{path}.containers", volumes, seen)
    if spec.get("initContainers"):
        yield from containers(spec["initContainers"], f"{path}.initContainers", volumes, seen)
    if spec.get("restartPolicy") not in RESTARTS:
        yield not_supported(f"{path}.restartPolicy", spec.get("restartPolicy"), RESTARTS)
    if spec.get("dnsPolicy") not in _DNS:
        yield not_supported(f"{path}.dnsPolicy", spec.get("dnsPolicy"), _DNS)
    yield from _named(spec, path)
    seconds = spec.get("activeDeadlineSeconds")
    if seconds is not None and not 1 <= seconds <= _MOST_SECONDS:
        yield invalid_value(
            f"{path}.activeDeadlineSeconds",
            seconds,
            f"must be between 1 and {_MOST_SECONDS}, inclusive",
        )
    for name, quantity in (spec.get("overhead") or {}).items():
        yield from amount(quantity, f"{path}.overhead[{name}]")
    yield from placement(spec, path)


def _named(spec: JsonDict, path: str) -> Problems:
    for field, check in _NAMES:
        name = spec.get(field)
        if name:
            for reason in check(name):
                yield invalid_value(f"{path}.{field}", name, reason)


def _volumes(volumes: list[JsonDict], path: str, names: set[str]) -> Problems:
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
        yield from own_name(each, here, names)


def pod_update(item: JsonDict, old: JsonDict) -> Problems:
    """Hardly anything of a pod's specification may change."""
    new, before = item["spec"], old["spec"]
    if new == before:
        return
    yield from _tolerations(new, before)
    yield from _gates(new, before)
    yield from _deadline(new, before)
    if _fixed(new, before) != _fixed(before, before):
        yield forbidden_field("spec", _CHANGES)


def _fixed(spec: JsonDict, before: JsonDict) -> JsonDict:
    """What must stay as it is."""
    gated = bool(before.get("schedulingGates"))
    loose = {"activeDeadlineSeconds", "tolerations", "schedulingGates"}
    if gated:
        # A pod that nobody schedules yet may become harder to place, never easier.
        loose |= {"nodeSelector", "affinity"}
    if before.get("terminationGracePeriodSeconds", 0) < 0:
        loose.add("terminationGracePeriodSeconds")
    made = {key: value for key, value in spec.items() if key not in loose}
    for field in ("containers", "initContainers"):
        if made.get(field):
            made[field] = [{**each, "image": ""} for each in made[field]]
    return made


def _tolerations(new: JsonDict, before: JsonDict) -> Problems:
    wanted = new.get("tolerations") or []
    for each in before.get("tolerations") or ():
        if not any(_same_toleration(each, other) for other in wanted):
            yield forbidden_field(
                "spec.tolerations",
                "existing toleration can not be modified except its tolerationSeconds",
            )
            return


def _same_toleration(one: JsonDict, other: JsonDict) -> bool:
    fields = ("key", "operator", "value", "effect")
    return all((one.get(name) or "") == (other.get(name) or "") for name in fields)


def _gates(new: JsonDict, before: JsonDict) -> Problems:
    known = [each.get("name") for each in before.get("schedulingGates") or ()]
    for index, each in enumerate(new.get("schedulingGates") or ()):
        if each.get("name") not in known:
            yield forbidden_field(
                f"spec.schedulingGates[{index}].name",
                f"only deletion is allowed, but found new scheduling gate '{each.get('name')}'",
            )


def _deadline(new: JsonDict, before: JsonDict) -> Problems:
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
