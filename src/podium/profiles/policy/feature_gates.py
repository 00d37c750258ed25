"""The feature gates of kube-scheduler v1.13 that decide which rules exist and how they work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from podium.errors import ConfigError
from podium.profiles.similar_names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping


class FeatureGate(msgspec.Struct, frozen=True):
    """A feature gate and what it does when it is on."""

    name: str
    description: str
    default: bool
    #: The only value that Podium supports, if it supports one only.
    fixed: bool | None = None


GATES = (
    FeatureGate(
        "AttachVolumeLimit",
        "nodes tell how many volumes they attach, and CSI volumes are counted",
        default=True,
    ),
    FeatureGate(
        "BalanceAttachedNodeVolumes",
        "BalancedResourceAllocation looks at volumes too",
        default=False,
        fixed=False,
    ),
    FeatureGate(
        "BlockVolume",
        "a claim and its volume must agree on being a block device or a file system",
        default=True,
        fixed=True,
    ),
    FeatureGate("EnableEquivalenceClassCache", "nothing", default=False),
    FeatureGate(
        "PodPriority",
        "pods of higher priority go first and may preempt others",
        default=True,
    ),
    FeatureGate(
        "ResourceLimitsPriorityFunction",
        "ResourceLimitsPriority exists and is part of the providers",
        default=False,
    ),
    FeatureGate(
        "TaintNodesByCondition",
        "taints instead of conditions keep pods off nodes in trouble",
        default=True,
    ),
    FeatureGate(
        "VolumeScheduling",
        "CheckVolumeBinding works, and claims may wait for their first pod",
        default=True,
    ),
)

_BY_NAME = {gate.name: gate for gate in GATES}


class FeatureGates:
    """Which feature gates are on."""

    def __init__(self, changes: Mapping[str, bool]) -> None:
        """*changes* to the defaults; unknown names and unsupported values are refused."""
        self._on = {gate.name: gate.default for gate in GATES}
        for name, value in changes.items():
            _check(name, value)
            self._on[name] = value

    def __getitem__(self, name: str) -> bool:
        """Whether a gate is on."""
        return self._on[name]

    def hold(self, condition: str) -> bool:
        """Whether a condition holds: `Gate`, `Gate=false`, or nothing, which always does."""
        name, _, value = condition.partition("=")
        return not name or self._on[name] == (value != "false")

    def as_dict(self) -> dict[str, bool]:
        """Every gate and its value, by name."""
        return dict(self._on)


def _check(name: str, value: object) -> None:
    gate = _BY_NAME.get(name)
    if gate is None:
        known = f"known: {', '.join(_BY_NAME)}"
        hint = f"{did_you_mean(name, _BY_NAME)} {known}".lstrip()
        raise ConfigError(f"unknown feature gate {name!r}", hint=hint)
    if not isinstance(value, bool):
        raise ConfigError(f"feature gate {name}: expected true or false, got {value!r}")
    if gate.fixed not in (None, value):
        raise ConfigError(
            f"feature gate {name}={str(value).lower()} is not supported",
            hint=f"leave it out or write {name}={str(gate.fixed).lower()}",
        )
