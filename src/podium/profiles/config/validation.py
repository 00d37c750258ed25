"""Checks of a whole configuration, made before any plugin is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from podium.objects.field_errors import (
    duplicate,
    invalid,
    key_faults,
    refuse,
    required,
)
from podium.objects.go_types import go_json
from podium.objects.names import is_extended, quoted
from podium.objects.times import text_of
from podium.profiles.config.document import API_VERSION, PluginEntry, PluginSet
from podium.profiles.config.json_values import compact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.engine.framework.declaration import Arguments
    from podium.profiles.config.document import (
        ConfigurationDocument,
        LeaderElection,
        PluginConfig,
        ProfileDocument,
    )
    from podium.profiles.config.feature_gates import ConfigurationGates
    from podium.profiles.policy.document import ExtenderConfig

_REMOVED: Final = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")
_WAS_REMOVED: Final = (
    f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{API_VERSION}")'
)
#: Extension points at which removed plugins are refused. kube-scheduler has no order for them.
_CHECKED: Final = (
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "podGroupPostFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
)


def check_config(document: ConfigurationDocument, gates: ConfigurationGates) -> None:
    """Refuse everything that is wrong, in one sentence; defaults must be filled in."""
    refuse(_errors(document, gates))


def _errors(document: ConfigurationDocument, gates: ConfigurationGates) -> Iterator[str]:
    burst = document.client_connection.burst
    if burst < 0:
        yield invalid("clientConnection.burst", str(burst), "must be non-negative")
    if document.leader_election.leader_elect:
        yield from _leader_election(document.leader_election)
    if document.parallelism <= 0:
        detail = "should be an integer value greater than zero"
        yield invalid("parallelism", str(document.parallelism), detail)
    seen = set()
    for index, profile in enumerate(document.profiles):
        path = f"profiles[{index}]"
        yield from _profile(profile, path, gates)
        name = profile.scheduler_name or ""
        if name in seen:
            # kube-scheduler prints a value without exported fields here.
            yield duplicate(f"{path}.schedulerName", "{}")
        seen.add(name)
    yield from _queue_sort(document.profiles)
    yield from _percentage("", document.percentage_of_nodes_to_score)
    yield from _backoff(document.pod_initial_backoff_seconds, document.pod_max_backoff_seconds)
    yield from _extenders(document.extenders)


def _leader_election(found: LeaderElection) -> Iterator[str]:
    times = {
        "leaseDuration": found.lease_duration,
        "renewDeadline": found.renew_deadline,
        "retryPeriod": found.retry_period,
    }
    for name, time in times.items():
        if time <= 0:
            yield invalid(
                f"leaderElection.{name}", go_json(text_of(time)), "must be greater than zero"
            )
    if found.lease_duration <= found.renew_deadline:
        yield invalid(
            "leaderElection.leaseDuration",
            go_json(text_of(found.renew_deadline)),
            "must be greater than `RenewDeadline`",
        )
    if found.resource_lock != "leases":
        yield invalid(
            "leaderElection.resourceLock",
            quoted(found.resource_lock),
            'resourceLock value must be "leases"',
        )


def _percentage(path: str, percentage: int | None) -> Iterator[str]:
    if percentage is not None and not 0 <= percentage <= 100:
        where = f"{path}.percentageOfNodesToScore".lstrip(".")
        yield invalid(where, str(percentage), "not in valid range [0-100]")


def _backoff(first: int, most: int) -> Iterator[str]:
    if first <= 0:
        yield invalid("podInitialBackoffSeconds", str(first), "must be greater than 0")
    if most < first:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        yield invalid("podMaxBackoffSeconds", str(most), detail)


def _profile(profile: ProfileDocument, path: str, gates: ConfigurationGates) -> Iterator[str]:
    if not profile.scheduler_name:
        yield required(f"{path}.schedulerName")
    yield from _percentage(path, profile.percentage_of_nodes_to_score)
    for point in _CHECKED:
        for index, entry in enumerate(profile.plugin_set(point).enabled):
            if entry.name in _REMOVED:
                where = f"{path}.plugins.{point}.enabled[{index}]"
                yield invalid(where, quoted(entry.name), _WAS_REMOVED)
    seen = set()
    for index, config in enumerate(profile.plugin_config):
        where = f"{path}.pluginConfig[{index}]"
        if config.name in seen:
            yield duplicate(where, quoted(config.name))
        seen.add(config.name)
        yield from _plugin_config(config, where, gates)


def _plugin_config(config: PluginConfig, path: str, gates: ConfigurationGates) -> Iterator[str]:
    if config.name in _REMOVED:
        yield invalid(path, quoted(config.name), _WAS_REMOVED)
        return
    arguments = _arguments_checked_as(config.name, gates)
    if arguments is not None and config.args is None:
        yield invalid(f"{path}.args", compact(config.raw), "has to match plugin args")
    elif arguments is not None:
        yield from arguments.check(config.args, f"{path}.args", gates)


def _arguments_checked_as(name: str, gates: ConfigurationGates) -> Arguments[Any] | None:
    """The arguments that are checked with the document under the name of this plugin."""
    for plugin in gates.generation.plugins:
        if plugin.arguments is not None and (plugin.arguments.checked_as or plugin.name) == name:
            return plugin.arguments
    return None


def _queue_sort(profiles: tuple[ProfileDocument, ...]) -> Iterator[str]:
    first = profiles[0].plugin_set("queueSort")
    if len(first.enabled) > 1:
        yield invalid(
            "profiles[0].plugins.queueSort.Enabled",
            str(len(first.enabled)),
            "only one queue sort plugin can be enabled",
        )
    name = first.enabled[0].name if first.enabled else ""
    given = [config.given for config in profiles[0].plugin_config if name and config.name == name]
    wanted = given[-1] if given else None
    for index, profile in enumerate(profiles[1:], 1):
        other = profile.plugin_set("queueSort")
        if other != first:
            where = f"profiles[{index}].plugins.queueSort"
            yield invalid(where, go_json(_shown(other)), "must be the same for all profiles")
        for config in profile.plugin_config:
            if config.name == name and config.given != wanted:
                where = f"profiles[{index}].pluginConfig.args"
                detail = "queueSort must be the same for all profiles"
                yield invalid(where, compact(config.raw), detail)


def _shown(plugins: PluginSet) -> dict[str, Any]:
    """The set as Go prints it, where an empty list is null."""

    def entries(found: tuple[PluginEntry, ...]) -> list[dict[str, Any]] | None:
        return [{"Name": each.name, "Weight": each.weight} for each in found] or None

    return {"Enabled": entries(plugins.enabled), "Disabled": entries(plugins.disabled)}


def _extenders(extenders: tuple[ExtenderConfig, ...]) -> Iterator[str]:
    managed: set[str] = set()
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        if extender.prioritize_verb and extender.weight <= 0:
            detail = "must have a positive weight applied to it"
            yield invalid(f"{path}.weight", str(extender.weight), detail)
        for place, resource in enumerate(extender.managed_resources):
            where = f"{path}.managedResources[{place}].name"
            yield from _extended_resource(resource.name, where)
            if resource.name in managed:
                detail = "duplicate extender managed resource name"
                yield invalid(where, quoted(resource.name), detail)
            managed.add(resource.name)
    binders = sum(bool(extender.bind_verb) for extender in extenders)
    if binders > 1:
        shown = quoted(f"found {binders} extenders implementing bind")
        yield invalid("extenders", shown, "only one extender can implement bind")


def _extended_resource(name: str, path: str) -> Iterator[str]:
    faults = key_faults(name)
    for fault in faults:
        yield invalid(path, go_json(name), fault)
    if not faults and not is_extended(name):
        yield invalid(path, quoted(name), "is an invalid extended resource name")
