"""The volumes reserved for a pod: what becomes of its unbound claims on the chosen node."""

from __future__ import annotations

import msgspec


class VolumePlan(msgspec.Struct, frozen=True):
    """What becomes of a pod's waiting claims on the chosen node."""

    bind: dict[str, str]  #: claim -> volume
    provision: tuple[str, ...]  #: claims to make a volume for
    #: Claims that the pod mounts twice take a second volume, which no other claim gets.
    again: tuple[tuple[str, str], ...] = ()
