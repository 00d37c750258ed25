"""Profiles of all generations, from a name, a Policy or a configuration."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from podium.engine.rules.priorities import DEFAULT_PROVIDER
from podium.errors import ConfigError
from podium.generations.known import GENERATIONS
from podium.library.notices import Notify, log_warning
from podium.profiles.config import build as configurations
from podium.profiles.policy import build as policies
from podium.profiles.policy.build import Options
from podium.profiles.user_rules import loading
from podium.profiles.user_rules.loading import LoadedRules, with_rules
from podium.profiles.user_rules.run_times import LIMIT_SECONDS, OVERRUNS, RuleWatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from podium.engine.framework.generation import Generation
    from podium.engine.framework.profile import Profile
    from podium.profiles.config.build import SchedulerConfig

__all__ = [
    "DEFAULT_PROVIDER",
    "Options",
    "default_profile",
    "from_config",
    "from_policy",
    "from_provider",
    "load_rules",
    "parse_config",
    "parse_policy",
]


def default_profile(generation: str = "", options: Options | None = None) -> Profile:
    """What kube-scheduler of a generation (`v1.36`) runs without a configuration.

    Without a name it is the generation of the *options*. User rules in the *options* are added.
    """
    options = options or Options()
    options = replace(options, generation=generation or options.generation)
    if generation_of(options).uses_policies:
        return from_provider(DEFAULT_PROVIDER, options)
    [profile] = configurations.from_config(_default_config(options), options)
    return with_rules(_under_scheduler_name(profile, options), options.rules)


def generation_of(options: Options) -> Generation:
    """The generation that options name."""
    found = GENERATIONS.get(options.generation)
    if found is None:
        known = ", ".join(GENERATIONS)
        raise ConfigError(f"there is no profile {options.generation!r}", hint=f"served: {known}")
    return found


def from_provider(name: str = DEFAULT_PROVIDER, options: Options | None = None) -> Profile:
    """The profile of an algorithm provider of v1.13."""
    return policies.from_provider(name, options or Options())


def from_policy(
    policy: Mapping[str, Any] | str, options: Options | None = None, where: str = "policy"
) -> Profile:
    """The profile of a Policy of v1.13: a document, or its text in JSON or YAML.

    *where* is the file that it comes from; errors and the name of the profile say so.
    """
    document = parse_policy(policy, where) if isinstance(policy, str) else policy
    return policies.from_policy(document, options or Options(), where)


def parse_policy(text: str, where: str = "policy") -> Mapping[str, Any]:
    """The Policy document in a text, JSON or YAML; a ConfigMap around it is taken off.

    The document is checked when a profile is made from it. *where* is the file that it comes from.
    """
    return policies.parse_policy(text, where)


def from_config(
    config: SchedulerConfig | Mapping[str, Any] | str, options: Options | None = None
) -> tuple[Profile, ...]:
    """The profiles of a KubeSchedulerConfiguration, in its order.

    It is read as the generation of the *options* reads it. It is given as text in YAML or JSON, as
    a document, or as `parse_config` returns it. User rules
    in the *options* are added to each profile.
    """
    options = options or Options()
    if isinstance(config, str):
        config = parse_config(config, options)
    elif not isinstance(config, configurations.SchedulerConfig):
        config = configurations.config_from(
            config, options.feature_gates, options.of_configurations
        )
    profiles = configurations.from_config(config, options)
    return tuple(with_rules(profile, options.rules) for profile in profiles)


def parse_config(text: str, options: Options | None = None) -> SchedulerConfig:
    """The KubeSchedulerConfiguration in a text, checked, with its defaults filled in."""
    options = options or Options()
    return configurations.load_config(text, options.feature_gates, options.of_configurations)


def _default_config(options: Options) -> SchedulerConfig:
    """The default configuration, with the one weight that is an option of every profile."""
    weight = options.hard_pod_affinity_symmetric_weight
    if weight == 1:
        return configurations.default_config(options.feature_gates, options.of_configurations)
    args = {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": weight}}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [args]}],
    }
    return configurations.config_from(document, options.feature_gates, options.of_configurations)


def _under_scheduler_name(profile: Profile, options: Options) -> Profile:
    """The profile, deciding about pods of the scheduler that the options name."""
    if options.scheduler_name == profile.scheduler_name:
        return profile
    name = f"{options.generation} {options.scheduler_name}"
    return replace(profile, scheduler_name=options.scheduler_name, name=name)


def load_rules(
    sources: Iterable[str],
    *,
    policy: Mapping[str, Any] | None = None,
    seconds: float | None = None,
    overruns: int | None = None,
    notify: Notify = log_warning,
    on_hang: Notify | None = None,
) -> LoadedRules:
    """The rules in files, modules and entry points, and those of packages that a *policy* names.

    A rule may take so many *seconds* for one pod (by default 1); after so many *overruns* (by
    default 10; 0 is never) it is no longer asked. *notify* is called when a rule fails or takes too
    long, *on_hang* in another thread when one does not return at all. The rules go into `Options`.
    """
    watch = RuleWatch(
        time.perf_counter,
        notify,
        limit_seconds=LIMIT_SECONDS if seconds is None else seconds,
        overruns=OVERRUNS if overruns is None else overruns,
        on_hang=on_hang,
    )
    return loading.load_rules(sources, policy, watch)
