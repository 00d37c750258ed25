"""Arguments of DynamicResources."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from podium.engine.framework.declaration import Arguments, Errors, FeatureGates, arguments_record
from podium.objects.durations import SECOND, text_of
from podium.objects.field_errors import child, forbidden, invalid
from podium.objects.go_json import go_json
from podium.objects.go_types import DURATION_POINTER


@dataclass(frozen=True, slots=True)
class DynamicResourcesArgs:
    """How long filtering and the preparation of devices may take, in nanoseconds."""

    filter_timeout: int | None = None
    binding_timeout: int | None = None


def _complete(found: DynamicResourcesArgs, gates: FeatureGates) -> DynamicResourcesArgs:
    """Ten seconds and ten minutes, where the feature gates allow such timeouts."""
    if found.filter_timeout is None and gates["DRASchedulerFilterTimeout"]:
        found = replace(found, filter_timeout=10 * SECOND)
    if found.binding_timeout is None and _has_binding_conditions(gates):
        found = replace(found, binding_timeout=600 * SECOND)
    return found


def _has_binding_conditions(gates: FeatureGates) -> bool:
    return gates["DRADeviceBindingConditions"] and gates["DRAResourceClaimDeviceStatus"]


def _check(found: DynamicResourcesArgs, path: str, gates: FeatureGates) -> Errors:
    where, time = child(path, "filterTimeout"), found.filter_timeout
    if time is not None and not gates["DRASchedulerFilterTimeout"]:
        yield forbidden(where, "DRASchedulingFilterTimeout feature gate is disabled")
    elif time is not None and time < 0:
        yield invalid(where, go_json(text_of(time)), "must be zero or positive")
    where, time = child(path, "bindingTimeout"), found.binding_timeout
    if time is not None and not _has_binding_conditions(gates):
        yield forbidden(
            where,
            "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled",
        )
    elif time is not None and time < SECOND:
        yield invalid(where, go_json(text_of(time)), "must be at least 1 second")


DYNAMIC_RESOURCES_ARGUMENTS: Final = Arguments(
    arguments_record(
        DynamicResourcesArgs, filter_timeout=DURATION_POINTER, binding_timeout=DURATION_POINTER
    ),
    _check,
    _complete,
)
