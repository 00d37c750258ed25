"""Notes on a profile: what is accepted and does not have the effect that it seems to have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.profiles.config.defaults import default_plugins
from podium.profiles.config.document import ALL, MULTI_POINT
from podium.profiles.config.feature_gates import ConfigurationGates

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from podium.engine.framework.generation import Generation
    from podium.profiles.config.document import ProfileDocument
    from podium.profiles.config.scheduler_config import EnabledPlugin

    Points = Mapping[str, tuple[EnabledPlugin, ...]]

_WEIGHTED = {"score", "placementScore", MULTI_POINT}


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
