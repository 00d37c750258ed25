"""The generations of kube-scheduler that Podium decides as: their names and what is told of them.

`podium.generations.known` has the generations themselves. Nothing is imported here, so that
`podium version` costs little.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple


class Release(NamedTuple):
    """The name of a generation, and what is told about it without making any rule."""

    name: str
    description: str
    #: The kind of document that configures it, which also decides the form of its recordings.
    configured_by: Literal["Policy", "KubeSchedulerConfiguration"]
    #: Algorithm providers, which are profiles under a name.
    providers: tuple[str, ...] = ()


_PLUGINS: Final = "plugins, KubeSchedulerConfiguration, scores 0 to 100"

V1_13: Final = Release(
    "v1.13",
    "predicates and priorities, Policy files, scores 0 to 10",
    "Policy",
    providers=("DefaultProvider", "ClusterAutoscalerProvider"),
)
V1_34: Final = Release("v1.34", _PLUGINS, "KubeSchedulerConfiguration")
V1_35: Final = Release("v1.35", _PLUGINS, "KubeSchedulerConfiguration")
V1_36: Final = Release("v1.36", _PLUGINS, "KubeSchedulerConfiguration")
V1_37: Final = Release("v1.37", _PLUGINS, "KubeSchedulerConfiguration")
#: Oldest first.
RELEASES: Final = (V1_13, V1_34, V1_35, V1_36, V1_37)
#: What decides when nothing else is named.
DEFAULT_RELEASE: Final = V1_37
#: The rule for ties that means: as kube-scheduler of this release breaks them.
KUBE_SCHEDULER: Final = "kube-scheduler"
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)(\D.*)?")


def minor_of(version: str) -> tuple[int, int] | None:
    """The minor release of a version: (1, 36) of `v1.36.4`; None if it is no version."""
    found = _VERSION.fullmatch(version)
    return None if found is None else (int(found[1]), int(found[2]))


def release_of(version: str) -> Release | None:
    """The release that a version belongs to (`v1.36` of `v1.36.4`); None if there is none."""
    minor = minor_of(version)
    return next((each for each in RELEASES if minor and minor_of(each.name) == minor), None)
