"""Which tolerations tolerate which taints.

Upstream: api/core/v1/toleration.go, Kubernetes v1.13.
"""

from __future__ import annotations

from collections.abc import Iterable

from podium.objects.kinds.node import Taint
from podium.objects.kinds.pod import Toleration


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a toleration tolerates a taint; an empty key or effect stands for any.

    An empty key does not need `Exists`: a toleration without any field tolerates every taint that
    has no value.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case _:
            return False


def tolerated(tolerations: Iterable[Toleration] | None, taint: Taint) -> bool:
    """Whether any of the *tolerations* tolerates the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations or ())
