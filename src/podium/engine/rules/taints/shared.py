"""Which taints a pod does not tolerate, by effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.objects.taints import tolerated

if TYPE_CHECKING:
    from podium.engine.state.pod_class import PodClass
    from podium.objects.kinds.node import Taint

NO_SCHEDULE_EFFECTS = frozenset({"NoSchedule", "NoExecute"})


def has_untolerated(
    cls: PodClass, taints: tuple[Taint, ...], effects: frozenset[str] = NO_SCHEDULE_EFFECTS
) -> bool:
    """Whether some taint with one of the effects is not tolerated."""
    tolerations = cls.spec.tolerations
    return any(t.effect in effects and not tolerated(tolerations, t) for t in taints)


def count_untolerated_preferences(cls: PodClass, taints: tuple[Taint, ...]) -> int:
    """The number of PreferNoSchedule taints that the pod does not tolerate."""
    kept = [t for t in cls.spec.tolerations or () if t.effect in ("", "PreferNoSchedule")]
    return sum(t.effect == "PreferNoSchedule" and not tolerated(kept, t) for t in taints)
