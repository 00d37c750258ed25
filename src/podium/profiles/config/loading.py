"""Loading a configuration: decoding, defaults, checks, extension points.

What kube-scheduler refuses is refused here with its text, in `ConfigError.text`, and in the order
in which it checks: decoding, validation, extenders, profiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from podium.engine.framework.generation import Generation
from podium.engine.rules.resources.fit import NodeResourcesFitArgs
from podium.errors import ConfigError
from podium.generations.known import DEFAULT
from podium.objects.names import quoted
from podium.profiles.config.defaults import with_defaults
from podium.profiles.config.document import ConfigurationDocument, PluginConfig, ProfileDocument
from podium.profiles.config.extension_points import expand
from podium.profiles.config.feature_gates import ConfigurationGates
from podium.profiles.config.json_values import plain
from podium.profiles.config.profile_notes import profile_notes
from podium.profiles.config.reading import read_config, read_mapping
from podium.profiles.config.scheduler_config import ProfileConfig, SchedulerConfig
from podium.profiles.config.validation import check_config
from podium.profiles.extenders import ignored_resources, make_extenders
from podium.profiles.policy.document import ExtenderConfig


def load_config(
    text: str,
    feature_gates: Mapping[str, bool] | None = None,
    generation: Generation = DEFAULT,
) -> SchedulerConfig:
    """The configuration in YAML or JSON text."""
    gates = ConfigurationGates(feature_gates, generation)
    return _checked(read_config(text, generation), gates)


def config_from(
    document: Mapping[str, Any],
    feature_gates: Mapping[str, bool] | None = None,
    generation: Generation = DEFAULT,
) -> SchedulerConfig:
    """The configuration in a value that was decoded from JSON or YAML."""
    gates = ConfigurationGates(feature_gates, generation)
    return _checked(read_mapping(document, generation), gates)


def default_config(
    feature_gates: Mapping[str, bool] | None = None, generation: Generation = DEFAULT
) -> SchedulerConfig:
    """The configuration that kube-scheduler uses without a file."""
    return _checked(ConfigurationDocument(), ConfigurationGates(feature_gates, generation))


def _checked(written: ConfigurationDocument, gates: ConfigurationGates) -> SchedulerConfig:
    document = with_defaults(written, gates)
    check_config(document, gates)
    extenders = _extenders(document.extenders, gates.generation)
    profiles = _with_ignored(document.profiles, ignored_resources(extenders))
    configs = tuple(
        _profile(profile, own, document, gates)
        for own, profile in zip(written.profiles or (ProfileDocument(),), profiles, strict=True)
    )
    check_together(configs)
    return SchedulerConfig(
        profiles=configs,
        extenders=extenders,
        percentage_of_nodes_to_score=document.percentage_of_nodes_to_score,
        pod_initial_backoff_seconds=document.pod_initial_backoff_seconds,
        pod_max_backoff_seconds=document.pod_max_backoff_seconds,
        parallelism=document.parallelism,
        leader_election=document.leader_election,
        client_connection=document.client_connection,
        enable_profiling=document.enable_profiling,
        enable_contention_profiling=bool(document.enable_contention_profiling),
        delay_cache_until_active=document.delay_cache_until_active,
        gates=gates,
    )


def _extenders(
    extenders: tuple[ExtenderConfig, ...], generation: Generation
) -> tuple[ExtenderConfig, ...]:
    """The extenders in the order in which they are called: ignorable ones come last."""
    try:
        make_extenders(extenders, generation.extenders)
    except ConfigError as error:
        raise ConfigError(f"couldn't build extenders: {error.text}", hint=error.hint) from None
    return tuple(sorted(extenders, key=lambda extender: extender.ignorable))


def _with_ignored(
    profiles: tuple[ProfileDocument, ...], ignored: frozenset[str]
) -> tuple[ProfileDocument, ...]:
    """Resources that extenders manage replace the ignored resources of each profile."""
    if not ignored:
        return profiles
    return tuple(
        replace(profile, plugin_config=_ignoring(profile.plugin_config, ignored))
        for profile in profiles
    )


def _ignoring(
    configs: tuple[PluginConfig, ...], ignored: frozenset[str]
) -> tuple[PluginConfig, ...]:
    found = list(configs)
    for index, config in enumerate(found):
        if isinstance(config.args, NodeResourcesFitArgs) and config.name == "NodeResourcesFit":
            args = replace(config.args, ignored_resources=tuple(sorted(ignored)))
            found[index] = replace(config, args=args)
            return tuple(found)
    raise ConfigError(
        "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config",
        hint="enable NodeResourcesFit, or give it a pluginConfig",
    )


def _profile(
    profile: ProfileDocument,
    written: ProfileDocument,
    document: ConfigurationDocument,
    gates: ConfigurationGates,
) -> ProfileConfig:
    points = expand(profile, gates)
    percentage = profile.percentage_of_nodes_to_score
    if percentage is None:
        percentage = document.percentage_of_nodes_to_score
    return ProfileConfig(
        scheduler_name=profile.scheduler_name or "",
        percentage_of_nodes_to_score=percentage,
        points=points,
        args={c.name: c.args for c in profile.plugin_config if c.args is not None},
        unread_args={c.name: plain(c.raw) for c in profile.plugin_config if c.args is None},
        notes=tuple(profile_notes(written, points, gates.generation)),
    )


def check_together(profiles: tuple[ProfileConfig, ...]) -> None:
    """Refuse profiles that cannot share one queue."""
    if not profiles:
        raise ConfigError("at least one profile is required")
    seen: set[str] = set()
    first = profiles[0]
    for profile in profiles:
        name, prefix = quoted(profile.scheduler_name), "initializing profiles: "
        if profile.scheduler_name in seen:
            raise ConfigError(f"{prefix}duplicate profile with scheduler name {name}")
        seen.add(profile.scheduler_name)
        [sort], [wanted] = profile.names("queueSort"), first.names("queueSort")
        if sort != wanted:
            raise ConfigError(
                f"{prefix}different queue sort plugins for profile {name}: "
                f"{quoted(sort)}, first: {quoted(wanted)}"
            )
        if profile.unread_args.get(sort) != first.unread_args.get(sort):
            raise ConfigError(f"{prefix}different queue sort plugin args for profile {name}")
