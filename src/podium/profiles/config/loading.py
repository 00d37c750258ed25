"""Loading a configuration: decoding, defaults, checks, extension points.

What kube-scheduler refuses is refused here with its text, in `ConfigError.text`, and in the order
in which it checks: decoding, validation, extenders, profiles.

A plugin of `multiPoint` runs at every point that it implements. What a profile says about a single
point takes precedence: `*` turns the expansion off there, a disabled plugin is left out, and an
enabled one moves to the front.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from podium.engine.framework.generation import Generation
from podium.engine.rules.resources.fit import NodeResourcesFitArgs
from podium.errors import ConfigError
from podium.generations.known import DEFAULT
from podium.objects.field_errors import together
from podium.objects.names import quoted
from podium.profiles.config.defaults import default_plugins, with_defaults
from podium.profiles.config.document import (
    ALL,
    MULTI_POINT,
    ConfigurationDocument,
    PluginConfig,
    ProfileDocument,
)
from podium.profiles.config.feature_gates import ConfigurationGates
from podium.profiles.config.json_values import plain
from podium.profiles.config.reading import read_config, read_mapping
from podium.profiles.config.scheduler_config import EnabledPlugin, ProfileConfig, SchedulerConfig
from podium.profiles.config.validation import check_config
from podium.profiles.extenders import ignored_resources, make_extenders
from podium.profiles.similar_names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from podium.engine.framework.declaration import PluginDeclaration
    from podium.engine.framework.generation import Generation
    from podium.profiles.config.document import PluginEntry, PluginSet
    from podium.profiles.policy.document import ExtenderConfig

Points = dict[str, tuple[EnabledPlugin, ...]]
_WEIGHTED = {"score", "placementScore", MULTI_POINT}


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


def profile_notes(
    written: ProfileDocument, points: Points, generation: Generation
) -> Iterator[str]:
    """Notes on what a profile says, and on the plugins that run in consequence."""
    yield from _about_weights(written, generation)
    yield from _about_names(written, generation)
    yield from _about_missing_parts(points, generation)


def _about_weights(written: ProfileDocument, generation: Generation) -> Iterator[str]:
    usual_plugins = default_plugins(ConfigurationGates(generation=generation)).enabled
    defaults = {entry.name: entry.weight for entry in usual_plugins}
    for entry in written.plugin_set(MULTI_POINT).enabled:
        usual = defaults.get(entry.name, 0)
        if usual > 1 and not entry.weight:
            yield f"{entry.name} is listed under multiPoint without a weight: it is 1, not {usual}"
    for point in generation.points:
        for entry in written.plugin_set(point).enabled:
            if point not in _WEIGHTED and entry.weight:
                yield f"the weight of {entry.name} at {point} is ignored"
            if point == "score" and not entry.weight and defaults.get(entry.name, 0) > 1:
                usual = defaults[entry.name]
                yield f"{entry.name} is listed under score without a weight: it is 1, not {usual}"


def _about_names(written: ProfileDocument, generation: Generation) -> Iterator[str]:
    for point in (*generation.points, MULTI_POINT):
        found = written.plugin_set(point)
        for entry in found.disabled:
            if entry.name != ALL and entry.name not in generation.plugin:
                yield f"{point}.disabled: there is no plugin {entry.name}"
    for config in written.plugin_config:
        if config.name not in generation.plugin:
            yield f"the arguments of {config.name} are not read: there is no such plugin"


def _about_missing_parts(points: Points, generation: Generation) -> Iterator[str]:
    """Plugins that run at one point and not at the point that prepares it."""
    at = {point: {plugin.name for plugin in plugins} for point, plugins in points.items()}
    for name, plugin in generation.plugin.items():
        if plugin.pre_filter_error and name not in at["preFilter"]:
            for point in ("filter", "reserve"):
                if name in at[point]:
                    yield f"{name} fails every pod: it is at {point} and not at preFilter"
                    break
        if plugin.pre_score_error and name in at["score"] and name not in at["preScore"]:
            yield f"{name} fails every pod: it is at score and not at preScore"
    if not at["filter"] & {"NodeResourcesFit"}:
        yield "NodeResourcesFit is not at filter: nothing keeps pods off full nodes"


MAX_SCORE: Final = 100
_MAX_TOTAL: Final = (1 << 63) - 1
_HAVE_WEIGHTS: Final = {"score": "score plugins", "placementScore": "placement score plugins"}


def expand(profile: ProfileDocument, gates: ConfigurationGates) -> Points:
    """Extension point -> the plugins that run there, in order, with weights."""
    generation = gates.generation
    try:
        _check_args(profile, gates)
        found = {
            point: _own(profile.plugin_set(point), point, generation) for point in generation.points
        }
        shared = profile.plugin_set(MULTI_POINT).enabled
        if shared:
            for point in generation.points:
                found[point] = _expanded(profile.plugin_set(point), shared, point, generation)
        _check_counts(found, profile.scheduler_name or "")
        weights = {
            point: _weights(profile, point, what, generation)
            for point, what in _HAVE_WEIGHTS.items()
            if point in found
        }
    except ConfigError as error:
        name = profile.scheduler_name or ""
        prefix = f"initializing profiles: creating profile for scheduler name {name}: "
        raise ConfigError(f"{prefix}{error.text}", hint=error.hint) from None
    return {point: _enabled(names, weights.get(point, {})) for point, names in found.items()}


def _enabled(names: Iterable[str], weights: Mapping[str, int]) -> tuple[EnabledPlugin, ...]:
    return tuple(EnabledPlugin(name, weights.get(name, 0)) for name in names)


def _check_args(profile: ProfileDocument, gates: ConfigurationGates) -> None:
    """Check arguments that were not checked with the document, but when the plugin is made."""
    enabled = {entry.name for each in profile.plugins.values() for entry in each.enabled}
    for config in profile.plugin_config:
        plugin = gates.generation.plugin.get(config.name)
        arguments = plugin.arguments if plugin is not None else None
        if arguments is not None and arguments.checked_as and config.name in enabled:
            errors = list(arguments.check(config.args, "", gates))
            if errors:
                raise ConfigError(f"initializing plugin {quoted(config.name)}: {together(errors)}")


def _interface(point: str) -> str:
    """The Go interface of plugins of an extension point."""
    return f"{point[0].upper()}{point[1:]}Plugin"


def _unknown(name: str, point: str, generation: Generation) -> ConfigError:
    known = generation.plugin
    hint = did_you_mean(name, known) or f"known: {', '.join(known)}"
    return ConfigError(f"{_interface(point)} {quoted(name)} does not exist", hint=hint)


def _repeated(name: str, point: str) -> ConfigError:
    return ConfigError(f"plugin {quoted(name)} already registered as {quoted(_interface(point))}")


def _own(plugins: PluginSet, point: str, generation: Generation) -> list[str]:
    """The plugins that the profile enables at the point itself."""
    names: list[str] = []
    for entry in plugins.enabled:
        plugin = generation.plugin.get(entry.name)
        if plugin is None:
            raise _unknown(entry.name, point, generation)
        if point not in plugin.points:
            raise ConfigError(
                f"plugin {quoted(entry.name)} does not extend {_interface(point)} plugin",
                hint=_places(plugin, generation),
            )
        if entry.name in names:
            raise _repeated(entry.name, point)
        names.append(entry.name)
    return names


def _places(plugin: PluginDeclaration, generation: Generation) -> str:
    return f"it takes part in: {', '.join(p for p in generation.points if p in plugin.points)}"


def _expanded(
    plugins: PluginSet, shared: tuple[PluginEntry, ...], point: str, generation: Generation
) -> list[str]:
    """Plugins of both lists first, then those of `multiPoint`, then the rest of the point's."""
    own = [entry.name for entry in plugins.enabled]
    if plugins.disables(ALL):
        return own
    added: list[str] = []
    overrides = set()
    for entry in shared:
        plugin = generation.plugin.get(entry.name)
        if plugin is None:
            raise _unknown(entry.name, point, generation)
        if point not in plugin.points or plugins.disables(entry.name):
            continue
        if entry.name in own:
            overrides.add(entry.name)
        elif entry.name in added:
            raise _repeated(entry.name, point)
        else:
            added.append(entry.name)
    first = [name for name in own if name in overrides]
    return [*first, *added, *(name for name in own if name not in overrides)]


def _check_counts(found: Mapping[str, list[str]], scheduler: str) -> None:
    of_profile = f"for profile with scheduler name {quoted(scheduler)}"
    if len(found["queueSort"]) != 1:
        raise ConfigError(
            f"only one queue sort plugin required {of_profile}, but got {len(found['queueSort'])}"
        )
    if not found["bind"]:
        raise ConfigError(f"at least one bind plugin is needed {of_profile}")
    if len(found.get("placementGenerate", ())) > 1:
        raise ConfigError(f"at most one placement generate plugin is allowed {of_profile}")


def _weights(
    profile: ProfileDocument, point: str, what: str, generation: Generation
) -> dict[str, int]:
    """The weights of all plugins listed for a point: the first entry counts, 0 means 1."""
    found: dict[str, int] = {}
    total = 0
    entries = (*profile.plugin_set(point).enabled, *profile.plugin_set(MULTI_POINT).enabled)
    for entry in entries:
        plugin = generation.plugin.get(entry.name)
        if plugin is None or point not in plugin.points or entry.name in found:
            continue
        weight = found[entry.name] = entry.weight or 1
        # After a negative weight the sum is negative, and kube-scheduler reports an overflow.
        if total < 0 or weight * MAX_SCORE > _MAX_TOTAL - total:
            raise ConfigError(f"{what}: total score of Score plugins could overflow")
        total += weight * MAX_SCORE
    return found
