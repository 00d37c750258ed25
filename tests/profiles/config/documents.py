"""Configurations in one line each."""

from __future__ import annotations

from typing import Any

import pytest

from podium.engine.framework.generation import Generation
from podium.engine.framework.profile import Profile
from podium.errors import ConfigError
from podium.generations.v1_36 import V1_36
from podium.profiles.config.build import (
    ProfileConfig,
    SchedulerConfig,
    config_from,
    from_config,
    load_config,
)
from podium.profiles.policy.build import Options

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
BUILDING = "initializing profiles: creating profile for scheduler name default-scheduler: "

Document = dict[str, Any]


def config(**sections: Any) -> Document:
    """A document; sections as in the file."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        **sections,
    }


def with_plugins(**points: Any) -> Document:
    """One profile; a point is given as its set."""
    return config(profiles=[{"plugins": points}])


def enabled(*entries: str | tuple[str, int]) -> Document:
    """A set that enables plugins, with a weight or without."""
    return {"enabled": [_entry(entry) for entry in entries]}


def disabled(*names: str) -> Document:
    """A set that disables plugins."""
    return {"disabled": [{"name": name} for name in names]}


def _entry(entry: str | tuple[str, int]) -> Document:
    return {"name": entry} if isinstance(entry, str) else {"name": entry[0], "weight": entry[1]}


def with_args(plugin: str, **args: Any) -> Document:
    """One profile that tells a plugin something."""
    return config(profiles=[{"pluginConfig": [{"name": plugin, "args": args}]}])


def loaded(
    document: Document | str, generation: Generation = V1_36, /, **gates: bool
) -> SchedulerConfig:
    if isinstance(document, str):
        return load_config(HEAD + document, gates, generation)
    return config_from(document, gates, generation)


def profile_of(
    document: Document, generation: Generation = V1_36, /, **gates: bool
) -> ProfileConfig:
    """The only profile."""
    [profile] = loaded(document, generation, **gates).profiles
    return profile


def at(document: Document, point: str, generation: Generation = V1_36) -> list[tuple[str, int]]:
    """What runs at a point of the only profile."""
    plugins = profile_of(document, generation).points[point]
    return [(plugin.name, plugin.weight) for plugin in plugins]


def names_at(document: Document, point: str) -> list[str]:
    return [name for name, _ in at(document, point)]


def built(document: Document, generation: Generation = V1_36, **options: Any) -> Profile:
    """The engine's profile."""
    [profile] = from_config(loaded(document, generation), Options(**options))
    return profile


def refused(
    document: Document | str, generation: Generation = V1_36, /, **gates: bool
) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        loaded(document, generation, **gates)
    return caught.value
