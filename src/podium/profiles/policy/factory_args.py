"""Options of the scheduler that single rules depend on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podium.profiles.policy.feature_gates import FeatureGates

_NUMBER = re.compile(r"[+-]?[0-9]+")
_MAX_INT = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class FactoryArgs:
    """What predicates and priorities are made with (PluginFactoryArgs in kube-scheduler)."""

    gates: FeatureGates
    #: The weight in InterPodAffinityPriority of required affinity terms of placed pods.
    hard_pod_affinity_weight: int = 1
    #: The limit of volumes of a type per node from KUBE_MAX_PD_VOLS, if it is set.
    max_volumes: int | None = None
    #: Extended resources that an extender manages and PodFitsResources ignores.
    ignored_resources: frozenset[str] = frozenset()


def max_volumes(text: str | None) -> int | None:
    """The limit that KUBE_MAX_PD_VOLS sets: a positive number, else None."""
    if not text or not _NUMBER.fullmatch(text):
        return None
    number = int(text)
    return number if 0 < number <= _MAX_INT else None
