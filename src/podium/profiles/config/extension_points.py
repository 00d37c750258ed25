"""Which plugins run at each extension point of a profile, after the defaults were merged in.

A plugin of `multiPoint` runs at every point that it implements. What a profile says about a single
point takes precedence: `*` turns the expansion off there, a disabled plugin is left out, and an
enabled one moves to the front. Errors are those of kube-scheduler when it builds the profile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.errors import ConfigError
from podium.objects.field_errors import together
from podium.objects.names import quoted
from podium.profiles.config.document import ALL, MULTI_POINT
from podium.profiles.config.scheduler_config import EnabledPlugin
from podium.profiles.similar_names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from podium.engine.framework.declaration import PluginDeclaration
    from podium.engine.framework.generation import Generation
    from podium.profiles.config.document import PluginEntry, PluginSet, ProfileDocument
    from podium.profiles.config.feature_gates import ConfigurationGates

Points = dict[str, tuple[EnabledPlugin, ...]]

MAX_SCORE: Final = 100
_MAX_TOTAL: Final = (1 << 63) - 1
_WEIGHTED: Final = {"score": "score plugins", "placementScore": "placement score plugins"}


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
            for point, what in _WEIGHTED.items()
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
