"""Names of rules: what a custom one may be called, and how a wrong one is refused."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from podium.errors import ConfigError
from podium.profiles.similar_names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

_PATTERN = "^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])$"
_VALID = re.compile(_PATTERN.strip("^$"))

_WITHOUT_TAINTS = "it exists with the feature gate TaintNodesByCondition=false only"
_HINTS = {
    "CheckNodeCondition": _WITHOUT_TAINTS,
    "CheckNodeMemoryPressure": _WITHOUT_TAINTS,
    "CheckNodePIDPressure": _WITHOUT_TAINTS,
    "CheckNodeDiskPressure": _WITHOUT_TAINTS,
    "CheckNodeUnschedulable": "it exists with the feature gate TaintNodesByCondition only",
    "PodToleratesNodeNoExecuteTaints": "PodToleratesNodeTaints covers NoExecute taints too",
    "CheckNodeLabelPresence": "it needs an argument: labelsPresence",
    "CheckServiceAffinity": "it needs an argument: serviceAffinity",
    "NoVolumeNodeConflict": "CheckVolumeBinding does its work",
    "MaxCSIVolumeCount": "its name is MaxCSIVolumeCountPred",
    "ResourceLimitsPriority": "it exists with the feature gate ResourceLimitsPriorityFunction only",
    "NodeLabelPriority": "a label priority has any name and an argument: labelPreference",
    "ServiceAntiAffinityPriority": (
        "a service anti-affinity priority has any name and an argument: serviceAntiAffinity"
    ),
}


def check_name(name: str) -> None:
    """Refuse a name that cannot be registered."""
    if not _VALID.fullmatch(name):
        raise ConfigError(
            f'Algorithm name {name} does not match the name validation regexp "{_PATTERN}".',
            hint="use letters, digits and -, at least two, with a letter or digit at both ends",
        )


def unknown(kind: str, name: str, known: Iterable[str]) -> ConfigError:
    """The refusal of a name that nothing is registered under; *kind* is Predicate or Priority."""
    known = sorted(known)
    hint = _HINTS.get(name) or did_you_mean(name, known) or f"known: {', '.join(known)}"
    return ConfigError(f"Invalid configuration: {kind} type not found for {name}", hint=hint)


def wrong_arguments(kind: str, name: str, count: int, known: Iterable[str]) -> ConfigError:
    """The refusal of an argument that has no member, or several."""
    text = f"Exactly 1 {kind.lower()} argument is required, numArgs: {count}, {kind}: {name}"
    return ConfigError(text, hint=f"give one of {', '.join(known)}, or no argument at all")
