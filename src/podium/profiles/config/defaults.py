"""What is filled in before a configuration is checked: plugins, arguments, times, names.

The default plugins are one list, `multiPoint`. A profile changes it in place: a plugin that it
enables again keeps its position and gets the new weight, a disabled one is removed, and others are
appended.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from podium.objects.times import SECOND
from podium.profiles.config.document import (
    ALL,
    MULTI_POINT,
    ClientConnection,
    ConfigurationDocument,
    LeaderElection,
    PluginConfig,
    PluginEntry,
    PluginSet,
    ProfileDocument,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.profiles.config.feature_gates import ConfigurationGates

DEFAULT_SCHEDULER: Final = "default-scheduler"


def default_plugins(gates: ConfigurationGates) -> PluginSet:
    """The plugins of a profile that says nothing about plugins."""
    return PluginSet(
        tuple(
            PluginEntry(plugin.name, plugin.weight)
            for plugin in gates.generation.plugins
            if not plugin.feature_gate or gates[plugin.feature_gate]
        )
    )


def merged(defaults: PluginSet, custom: PluginSet) -> PluginSet:
    """The default plugins, changed by those of a profile."""
    last = {entry.name: index for index, entry in enumerate(custom.enabled)}
    placed: set[int] = set()
    found = []
    if not custom.disables(ALL):
        for entry in defaults.enabled:
            if custom.disables(entry.name):
                continue
            index = last.get(entry.name)
            if index is not None:
                placed.add(index)
            found.append(entry if index is None else custom.enabled[index])
    found += [entry for index, entry in enumerate(custom.enabled) if index not in placed]
    disabled = tuple(PluginEntry(entry.name) for entry in custom.disabled)
    return PluginSet(tuple(found), disabled)


def with_defaults(
    document: ConfigurationDocument, gates: ConfigurationGates
) -> ConfigurationDocument:
    """The document with everything filled in that was left out."""
    profiles = document.profiles or (ProfileDocument(),)
    if len(profiles) == 1 and profiles[0].scheduler_name is None:
        profiles = (replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER),)
    contention = document.enable_contention_profiling
    if contention is None:
        contention = document.enable_profiling
    return replace(
        document,
        profiles=tuple(_profile(profile, gates) for profile in profiles),
        leader_election=_leader_election(document.leader_election),
        client_connection=_client_connection(document.client_connection),
        enable_contention_profiling=contention,
    )


def _leader_election(found: LeaderElection) -> LeaderElection:
    return replace(
        found,
        lease_duration=found.lease_duration or 15 * SECOND,
        renew_deadline=found.renew_deadline or 10 * SECOND,
        retry_period=found.retry_period or 2 * SECOND,
        resource_lock=found.resource_lock or "leases",
        resource_name=found.resource_name or "kube-scheduler",
        resource_namespace=found.resource_namespace or "kube-system",
    )


def _client_connection(found: ClientConnection) -> ClientConnection:
    return replace(
        found,
        content_type=found.content_type or "application/vnd.kubernetes.protobuf",
        qps=found.qps or 50.0,
        burst=found.burst or 100,
    )


def _profile(profile: ProfileDocument, gates: ConfigurationGates) -> ProfileDocument:
    plugins = {
        point: merged(PluginSet(), profile.plugin_set(point)) for point in gates.generation.points
    }
    plugins[MULTI_POINT] = merged(default_plugins(gates), profile.plugin_set(MULTI_POINT))
    given = [_with_completed_args(config, gates) for config in profile.plugin_config]
    configured = {config.name for config in given}
    enabled = {entry.name for plugin_set in plugins.values() for entry in plugin_set.enabled}
    added = _default_args(sorted(enabled - configured), gates)
    return replace(profile, plugins=plugins, plugin_config=(*given, *added))


def _with_completed_args(config: PluginConfig, gates: ConfigurationGates) -> PluginConfig:
    arguments = gates.generation.plugin[config.name].arguments if config.args else None
    if arguments is None:
        return config
    return replace(config, args=arguments.completed(config.args, gates))


def _default_args(names: list[str], gates: ConfigurationGates) -> Iterator[PluginConfig]:
    for name in names:
        plugin = gates.generation.plugin.get(name)
        if plugin is not None and plugin.arguments is not None:
            yield PluginConfig(name, args=plugin.arguments.completed(None, gates))
