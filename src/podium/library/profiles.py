"""Profiles of both generations, from a name, a Policy or a configuration."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from podium.engine.rules.v1_13 import DEFAULT_PROVIDER
from podium.errors import ConfigError
from podium.library.generations import DEFAULT_GENERATION, GENERATIONS, V1_13, V1_36
from podium.profiles.config import build as v1_36
from podium.profiles.policy import build as v1_13
from podium.profiles.policy.build import Options
from podium.profiles.user_rules.loading import with_rules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podium.engine.framework.profile import Profile
    from podium.profiles.config.build import SchedulerConfig

__all__ = [
    "DEFAULT_PROVIDER",
    "Options",
    "default_profile",
    "from_config",
    "from_policy",
    "from_provider",
    "parse_config",
    "parse_policy",
]


def default_profile(
    generation: str = DEFAULT_GENERATION, options: Options | None = None
) -> Profile:
    """What kube-scheduler of this generation (`v1.13` or `v1.36`) runs without a configuration.

    User rules in the *options* are added to it.
    """
    options = options or Options()
    if generation == V1_13.name:
        return from_provider(DEFAULT_PROVIDER, options)
    if generation == V1_36.name:
        [profile] = v1_36.from_config(_default_config(options), options)
        return with_rules(_under_scheduler_name(profile, options), options.rules)
    known = ", ".join(each.name for each in GENERATIONS)
    raise ConfigError(f"there is no profile {generation!r}", hint=f"served: {known}")


def from_provider(name: str = DEFAULT_PROVIDER, options: Options | None = None) -> Profile:
    """The profile of an algorithm provider of v1.13."""
    return v1_13.from_provider(name, options or Options())


def from_policy(
    policy: Mapping[str, Any] | str, options: Options | None = None, where: str = "policy"
) -> Profile:
    """The profile of a Policy of v1.13: a document, or its text in JSON or YAML.

    *where* is the file that it comes from; errors and the name of the profile say so.
    """
    document = parse_policy(policy, where) if isinstance(policy, str) else policy
    return v1_13.from_policy(document, options or Options(), where)


def parse_policy(text: str, where: str = "policy") -> Mapping[str, Any]:
    """The Policy document in a text, JSON or YAML; a ConfigMap around it is taken off.

    The document is checked when a profile is made from it. *where* is the file that it comes from.
    """
    return v1_13.parse_policy(text, where)


def from_config(
    config: SchedulerConfig | Mapping[str, Any] | str, options: Options | None = None
) -> tuple[Profile, ...]:
    """The profiles of a KubeSchedulerConfiguration of v1.36, in its order.

    It is given as text in YAML or JSON, as a document, or as `parse_config` returns it. User rules
    in the *options* are added to each profile.
    """
    options = options or Options()
    if isinstance(config, str):
        config = parse_config(config, options)
    elif not isinstance(config, v1_36.SchedulerConfig):
        config = v1_36.config_from(config, options.feature_gates)
    profiles = v1_36.from_config(config, options)
    return tuple(with_rules(profile, options.rules) for profile in profiles)


def parse_config(text: str, options: Options | None = None) -> SchedulerConfig:
    """The KubeSchedulerConfiguration in a text, checked, with its defaults filled in."""
    return v1_36.load_config(text, (options or Options()).feature_gates)


def _default_config(options: Options) -> SchedulerConfig:
    """The default configuration, with the one weight that is an option of every profile."""
    weight = options.hard_pod_affinity_symmetric_weight
    if weight == 1:
        return v1_36.default_config(options.feature_gates)
    args = {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": weight}}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [args]}],
    }
    return v1_36.config_from(document, options.feature_gates)


def _under_scheduler_name(profile: Profile, options: Options) -> Profile:
    """The profile, deciding about pods of the scheduler that the options name."""
    if options.scheduler_name == profile.scheduler_name:
        return profile
    name = f"{V1_36.name} {options.scheduler_name}"
    return replace(profile, scheduler_name=options.scheduler_name, name=name)
