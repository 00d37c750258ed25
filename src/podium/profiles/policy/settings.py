"""What the makers of rules need to know of the configuration."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podium.profiles.policy.gates import Gates

_NUMBER = re.compile(r"[+-]?[0-9]+")
_MAX_INT = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Settings:
    """The parts of a configuration that reach into single rules."""

    gates: Gates
    #: What a placed pod's required affinity is worth in InterPodAffinityPriority.
    hard_weight: int = 1
    #: How many disks of a kind any node takes, if the operator says so.
    volume_limit: int | None = None
    #: Extended resources that only an extender looks after.
    ignored_resources: frozenset[str] = frozenset()


def volume_limit(text: str | None) -> int | None:
    """The limit that KUBE_MAX_PD_VOLS sets: a positive number, or none at all."""
    if not text or not _NUMBER.fullmatch(text):
        return None
    number = int(text)
    return number if 0 < number <= _MAX_INT else None
