"""The profiles that decide, made from a `ProfileSource`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.errors import ConfigError
from podium.library.profile_source import default_generation
from podium.library.profiles import (
    DEFAULT_PROVIDER,
    Options,
    default_profile,
    from_config,
    from_policy,
    from_provider,
    generation_of,
    load_rules,
    parse_config,
    parse_policy,
)
from podium.profiles.policy.shipped import SHIPPED, ShippedPolicy
from podium.profiles.user_rules.loading import NO_RULES, LoadedRules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podium.engine.framework.generation import Generation
    from podium.engine.framework.profile import Profile
    from podium.library.profile_source import ProfileSource
    from podium.objects.kinds.pod import Pod
    from podium.profiles.config.build import SchedulerConfig


@dataclass(frozen=True, slots=True)
class ChosenProfiles:
    """The profiles that decide, and what they were made from."""

    profile: Profile
    options: Options
    #: Further profiles of the same configuration, for pods of other schedulers.
    others: tuple[Profile, ...] = ()
    provider: str | None = None
    #: The Policy or KubeSchedulerConfiguration as it was written.
    policy: Mapping[str, Any] | None = None
    config: Mapping[str, Any] | None = None
    #: The configuration with its defaults filled in.
    scheduler_config: SchedulerConfig | None = None

    @property
    def generation(self) -> Generation:
        """The release of kube-scheduler that they are profiles of."""
        assert self.profile.generation is not None  # profiles are made from a configuration
        return self.profile.generation

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """All of them, in the order of the configuration."""
        return (self.profile, *self.others)

    @property
    def schedulers(self) -> frozenset[str]:
        """The schedulers whose pods are decided about."""
        return frozenset(each.scheduler_name for each in self.profiles)

    @property
    def schedules_groups(self) -> bool:
        """Whether any of them schedules the pods of a pod group together."""
        return any(each.schedules_groups for each in self.profiles)

    def profile_of(self, pod: Pod) -> Profile:
        """The profile that decides about a pod."""
        wanted = pod.spec.scheduler_name
        return next((p for p in self.profiles if p.scheduler_name == wanted), self.profile)


def choose(source: ProfileSource) -> ChosenProfiles:
    """The profiles that the source describes."""
    if source.policy is not None:
        shipped = shipped_policy(source.policy, source)
        if shipped is not None:
            gates = (shipped.feature_gates, *source.feature_gates)
            return by_policy(shipped.document, replace(source, feature_gates=gates), source.policy)
        policy = parse_policy(source.text(source.policy), source.policy)
        return by_policy(policy, source, source.policy)
    options = options_of(source)
    if source.provider is not None:
        profile = from_provider(source.provider, options)
        return ChosenProfiles(profile, options, provider=source.provider)
    if source.config is not None:
        return _by_config(source, source.config, options)
    return _by_default(options)


def shipped_policy(name: str, source: ProfileSource) -> ShippedPolicy | None:
    """The Policy of this name that comes with Podium, unless there is a file of that name."""
    if name in source.texts or Path(name).exists():
        return None
    return SHIPPED.get(name)


def by_policy(policy: Mapping[str, Any], source: ProfileSource, where: str) -> ChosenProfiles:
    """The profile of a Policy document; *where* is the file or object it comes from."""
    options = options_of(source, policy)
    return ChosenProfiles(from_policy(policy, options, where), options, policy=policy)


def _by_config(source: ProfileSource, path: str, options: Options) -> ChosenProfiles:
    """All profiles of a KubeSchedulerConfiguration, or the one of the scheduler asked for."""
    text = source.text(path)
    config, profiles = config_in(path, text, options)
    if source.scheduler_name is not None:
        named = [each for each in profiles if each.scheduler_name == source.scheduler_name]
        if not named:
            names = ", ".join(each.scheduler_name for each in profiles)
            what = f"{path} has no profile for the scheduler {source.scheduler_name!r}"
            raise ConfigError(what, hint=f"it has {names}")
        profiles = tuple(named)
    return ChosenProfiles(
        profiles[0],
        options,
        others=profiles[1:],
        config=parse_policy(text, path),
        scheduler_config=config,
    )


def _by_default(options: Options) -> ChosenProfiles:
    provider = DEFAULT_PROVIDER if generation_of(options).uses_policies else None
    return ChosenProfiles(default_profile(options=options), options, provider=provider)


def options_of(source: ProfileSource, policy: Mapping[str, Any] | None = None) -> Options:
    """The options of a profile; *policy* may name rules of installed packages."""
    gates: dict[str, bool] = {}
    for changes in source.feature_gates:
        gates.update(changes)
    weight = source.hard_pod_affinity_symmetric_weight
    return Options(
        percentage_of_nodes_to_score=source.percentage_of_nodes_to_score,
        usual_percentage=source.usual_percentage,
        hard_pod_affinity_symmetric_weight=1 if weight is None else weight,
        disable_preemption=source.no_preemption,
        feature_gates=gates,
        max_pd_volumes=source.environment.get("KUBE_MAX_PD_VOLS"),
        ties=source.ties or source.usual_ties,
        scheduler_name=source.scheduler_name or "default-scheduler",
        rules=rules_of(source, policy),
        generation=source.profile or default_generation(source.environment),
    )


def rules_of(source: ProfileSource, policy: Mapping[str, Any] | None = None) -> LoadedRules:
    """The user rules that the source lists, and those of installed packages that *policy* names."""
    if not source.rules and policy is None:
        return NO_RULES
    rules = load_rules(
        source.rules,
        policy=policy,
        seconds=source.rule_seconds,
        overruns=source.rule_overruns,
        notify=source.notify,
        on_hang=source.on_hang,
    )
    given = source.rule_arguments
    return replace(rules, arguments=given) if given else rules


def config_in(
    path: str, text: str, options: Options
) -> tuple[SchedulerConfig, tuple[Profile, ...]]:
    """The configuration in the text of a file, and the profiles that it makes."""
    try:
        found = parse_config(text, options)
        return found, from_config(found, options)
    except ConfigError as error:
        raise error.located(path) from None
