"""A configuration as the rest of Podium sees it: complete, checked, plugins settled per point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from podium.profiles.config.document import ClientConnection, LeaderElection
from podium.profiles.config.feature_gates import FeatureGates
from podium.profiles.policy.document import ExtenderConfig


@dataclass(frozen=True, slots=True)
class EnabledPlugin:
    """A plugin that runs at some point; its weight counts where nodes or placements are scored."""

    name: str
    weight: int = 0


@dataclass(frozen=True, slots=True)
class ProfileConfig:
    """One profile."""

    scheduler_name: str
    #: What the profile says, else what the whole configuration says; None: neither does.
    percentage_of_nodes_to_score: int | None
    #: Point -> what runs there, in order.
    points: Mapping[str, tuple[EnabledPlugin, ...]]
    #: Plugin -> its arguments, defaults filled in.
    args: Mapping[str, Any]
    #: Plugin -> arguments that nobody here can read.
    unread_args: Mapping[str, Any] = field(default_factory=dict)
    #: Things users should know about this profile.
    notes: tuple[str, ...] = ()

    def names(self, point: str) -> tuple[str, ...]:
        """What runs at a point, in order."""
        return tuple(plugin.name for plugin in self.points.get(point, ()))


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """A KubeSchedulerConfiguration with nothing left open."""

    profiles: tuple[ProfileConfig, ...]
    #: In the order in which they are asked.
    extenders: tuple[ExtenderConfig, ...] = ()
    #: None: not set, which the real program takes for 0, a share that depends on the cluster.
    percentage_of_nodes_to_score: int | None = None
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    parallelism: int = 16
    leader_election: LeaderElection = field(default_factory=LeaderElection)
    client_connection: ClientConnection = field(default_factory=ClientConnection)
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    delay_cache_until_active: bool = False
    gates: FeatureGates = field(default_factory=FeatureGates)
