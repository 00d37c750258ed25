"""A scheduler configuration as plain data, for output in any format."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from podium.engine.framework.declaration import TYPE_META
from podium.generations.known import DEFAULT
from podium.objects.go_types import DURATION_POINTER, camel
from podium.objects.times import text_of
from podium.profiles.config.feature_gates import ConfigurationGates
from podium.profiles.extenders import describe_extender, make_extenders

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podium.engine.framework.declaration import PluginDeclaration
    from podium.engine.framework.generation import Generation
    from podium.profiles.config.scheduler_config import ProfileConfig, SchedulerConfig

Data = dict[str, Any]

_WEIGHTED = ("score", "placementScore")


def describe_config(config: SchedulerConfig) -> Data:
    """Every profile, and what they share."""
    generation = config.gates.generation
    return {
        "generation": generation.name,
        "profiles": [_profile(profile, generation) for profile in config.profiles],
        "extenders": [
            describe_extender(each)
            for each in make_extenders(config.extenders, generation.extenders)
        ],
        "options": {
            "parallelism": config.parallelism,
            "percentageOfNodesToScore": config.percentage_of_nodes_to_score,
            "podInitialBackoffSeconds": config.pod_initial_backoff_seconds,
            "podMaxBackoffSeconds": config.pod_max_backoff_seconds,
            "delayCacheUntilActive": config.delay_cache_until_active,
            "enableProfiling": config.enable_profiling,
            "enableContentionProfiling": config.enable_contention_profiling,
        },
        "leaderElection": _leader_election(config),
        "clientConnection": _plain(config.client_connection),
        "featureGates": config.gates.as_dict(),
        "changedGates": config.gates.changed(),
    }


def list_plugins(changes: Mapping[str, bool], generation: Generation = DEFAULT) -> Data:
    """Every plugin that a configuration can name, and the feature gates."""
    gates = ConfigurationGates(changes, generation)
    return {
        "generation": generation.name,
        "plugins": [
            {
                "name": plugin.name,
                "description": plugin.description,
                "extensionPoints": plugin.at.split(),
                "weight": plugin.weight or None,
                "arguments": None if plugin.arguments is None else plugin.arguments.kind,
                "fields": []
                if plugin.arguments is None
                else [n for n in plugin.arguments.schema.fields if n not in TYPE_META],
                "featureGate": plugin.feature_gate or None,
                "default": not plugin.feature_gate or gates[plugin.feature_gate],
            }
            for plugin in generation.plugins
        ],
        "featureGates": gates.as_dict(),
        "gates": [
            {
                "name": gate.name,
                "description": gate.description,
                "stage": gate.stage,
                "default": gate.default,
                "locked": gate.locked,
                "supported": "default only" if gate.fixed else "both values",
            }
            for gate in generation.gates
        ],
    }


def _profile(profile: ProfileConfig, generation: Generation) -> Data:
    return {
        "schedulerName": profile.scheduler_name,
        "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
        "plugins": {
            point: [
                _plugin(generation.plugin[each.name], each.weight, point)
                for each in profile.points[point]
            ]
            for point in generation.points
            if profile.points.get(point)
        },
        "args": {
            name: plain_args(generation.plugin[name], args)
            for name, args in sorted(profile.args.items())
        },
        "unreadArgs": dict(sorted(profile.unread_args.items())),
        "notes": list(profile.notes),
    }


def _plugin(plugin: PluginDeclaration, weight: int, point: str) -> Data:
    found: Data = {"name": plugin.name, "description": plugin.description}
    if point in _WEIGHTED:
        found["weight"] = weight
    return found


def plain_args(plugin: PluginDeclaration, args: Any) -> Data:
    """Arguments of a plugin as they are written in files, without those that are not set."""
    arguments, found = plugin.arguments, _plain(args)
    assert arguments is not None  # the plugin has some
    durations = [n for n, f in arguments.schema.fields.items() if f.type is DURATION_POINTER]
    return {**found, **{name: text_of(found[name]) for name in durations if name in found}}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        found = {camel(each.name): _plain(getattr(value, each.name)) for each in fields(value)}
        return {name: each for name, each in found.items() if each not in (None, "", [])}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return msgspec.to_builtins(value) if isinstance(value, msgspec.Struct) else value


def _leader_election(config: SchedulerConfig) -> Data:
    found = config.leader_election
    return {
        "leaderElect": found.leader_elect,
        "leaseDuration": text_of(found.lease_duration),
        "renewDeadline": text_of(found.renew_deadline),
        "retryPeriod": text_of(found.retry_period),
        "resourceLock": found.resource_lock,
        "resourceNamespace": found.resource_namespace,
        "resourceName": found.resource_name,
    }
