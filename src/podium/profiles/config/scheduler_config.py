"""A checked configuration, with defaults filled in and plugins listed per extension point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from podium.profiles.config.document import ClientConnection, LeaderElection
from podium.profiles.config.feature_gates import ConfigurationGates
from podium.profiles.policy.document import ExtenderConfig


@dataclass(frozen=True, slots=True)
class EnabledPlugin:
    """A plugin at an extension point; its weight counts at `score` and `placementScore`."""

    name: str
    weight: int = 0


@dataclass(frozen=True, slots=True)
class ProfileConfig:
    """One profile of a configuration."""

    scheduler_name: str
    #: That of the profile, else that of the whole configuration; None: neither has one.
    percentage_of_nodes_to_score: int | None
    #: Extension point -> plugins that run there, in order.
    points: Mapping[str, tuple[EnabledPlugin, ...]]
    #: Plugin -> its arguments, defaults filled in.
    args: Mapping[str, Any]
    #: Plugin -> arguments of plugins that declare none.
    unread_args: Mapping[str, Any] = field(default_factory=dict)
    #: Things users should know about this profile.
    notes: tuple[str, ...] = ()

    def names(self, point: str) -> tuple[str, ...]:
        """The plugins that run at an extension point, in order."""
        return tuple(plugin.name for plugin in self.points.get(point, ()))


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """A KubeSchedulerConfiguration with all defaults filled in."""

    profiles: tuple[ProfileConfig, ...]
    #: In the order in which they are called.
    extenders: tuple[ExtenderConfig, ...] = ()
    #: None: not set, which kube-scheduler reads as 0, a share that depends on the cluster.
    percentage_of_nodes_to_score: int | None = None
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    parallelism: int = 16
    leader_election: LeaderElection = field(default_factory=LeaderElection)
    client_connection: ClientConnection = field(default_factory=ClientConnection)
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    delay_cache_until_active: bool = False
    gates: ConfigurationGates = field(default_factory=ConfigurationGates)
