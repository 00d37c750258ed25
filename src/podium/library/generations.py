"""The generations of kube-scheduler that Podium can decide as, and the default profile of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from podium.errors import ConfigError
from podium.profiles.config.build import config_from, default_config, from_config
from podium.profiles.policy.build import Options, from_provider
from podium.profiles.policy.priority_registry import DEFAULT, PROVIDERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.engine.framework.profile import Profile
    from podium.profiles.config.build import SchedulerConfig


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation: what its decisions are made of, and how to get its profile."""

    name: str
    description: str
    #: The profile without any file, if the generation is served.
    default: Callable[[Options], Profile] | None = None
    #: Names that `--provider` takes.
    providers: tuple[str, ...] = ()


#: Oldest first; the newest that is served is what commands use when told nothing.
GENERATIONS: Final = (
    Generation(
        "v1.13",
        "predicates and priorities, Policy files, scores 0 to 10",
        default=lambda options: from_provider(DEFAULT, options),
        providers=tuple(PROVIDERS),
    ),
    Generation(
        "v1.36",
        "plugins, KubeSchedulerConfiguration, scores 0 to 100",
        default=lambda options: under_scheduler_name(
            from_config(default_configuration(options), options)[0], options
        ),
    ),
)
#: The generation whose configuration files `--config` reads.
CONFIGURED: Final = "v1.36"


def served() -> list[Generation]:
    """The generations that Podium can decide as."""
    return [generation for generation in GENERATIONS if generation.default is not None]


def not_served(name: str, what: str = "") -> ConfigError:
    """The refusal of a generation that is known, or of a name that is not."""
    names = ", ".join(generation.name for generation in served())
    if any(generation.name == name for generation in GENERATIONS):
        return ConfigError(
            f"{what or f'profile {name}'} is not served yet", hint=f"served: {names}"
        )
    return ConfigError(f"there is no profile {name!r}", hint=f"served: {names}")


def default_configuration(options: Options) -> SchedulerConfig:
    """The default configuration, with the one weight that is a flag of every command."""
    weight = options.hard_pod_affinity_symmetric_weight
    if weight == 1:
        return default_config(options.feature_gates)
    args = {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": weight}}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [args]}],
    }
    return config_from(document, options.feature_gates)


def under_scheduler_name(profile: Profile, options: Options) -> Profile:
    """The profile under the name of the scheduler asked for."""
    if options.scheduler_name == profile.scheduler_name:
        return profile
    name = f"{CONFIGURED} {options.scheduler_name}"
    return replace(profile, scheduler_name=options.scheduler_name, name=name)
