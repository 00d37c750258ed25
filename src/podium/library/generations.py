"""The generations of kube-scheduler that Podium decides as.

Only what is told about them: `profiles.py` makes their profiles. Nothing of the engine is imported,
so that `podium version` costs little.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Generation(NamedTuple):
    """A version of kube-scheduler with rules and a form of configuration of its own."""

    name: str
    description: str
    #: Algorithm providers, which are profiles under a name.
    providers: tuple[str, ...] = ()


V1_13: Final = Generation(
    "v1.13",
    "predicates and priorities, Policy files, scores 0 to 10",
    providers=("DefaultProvider", "ClusterAutoscalerProvider"),
)
V1_36: Final = Generation("v1.36", "plugins, KubeSchedulerConfiguration, scores 0 to 100")
#: Oldest first.
GENERATIONS: Final = (V1_13, V1_36)
#: What decides when nothing else is named.
DEFAULT_GENERATION: Final = V1_36.name
