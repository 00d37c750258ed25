"""The profile that a command decides by, chosen from its flags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podium.cli.user_rules import rules_of
from podium.errors import ConfigError, InputError
from podium.library.files import text_from
from podium.library.generations import (
    not_served,
    served,
)
from podium.profiles.config.build import (
    from_config,
    load_config,
)
from podium.profiles.policy.build import Options, from_policy, from_provider, parse_policy
from podium.profiles.policy.gates import Gates
from podium.profiles.policy.priority_registry import DEFAULT
from podium.profiles.user_rules.loading import with_rules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podium.cli.flags import ProfileFlags
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.pod import Pod
    from podium.profiles.config.build import SchedulerConfig


@dataclass(frozen=True, slots=True)
class Chosen:
    """A profile and what it was made from."""

    profile: Profile
    options: Options
    #: Whether pods of higher priority go first.
    by_priority: bool
    #: Further profiles of the same configuration, for pods of other schedulers.
    others: tuple[Profile, ...] = ()
    provider: str | None = None
    policy: Mapping[str, Any] | None = None
    config: Mapping[str, Any] | None = None
    #: The same, read.
    settings: SchedulerConfig | None = None

    @property
    def is_classic(self) -> bool:
        """Whether it is of the generation of Policy files and providers."""
        return self.policy is not None or self.provider is not None

    @property
    def schedulers(self) -> frozenset[str]:
        """The schedulers whose pods are decided about."""
        return frozenset(each.scheduler_name for each in (self.profile, *self.others))

    def profile_of(self, pod: Pod) -> Profile:
        """The profile that decides about a pod."""
        everyone = (self.profile, *self.others)
        wanted = pod.spec.scheduler_name
        return next((p for p in everyone if p.scheduler_name == wanted), self.profile)

    def recorded_options(self) -> dict[str, Any]:
        """The options in the form that recordings have."""
        given = self.options
        found: dict[str, Any] = {
            "percentageOfNodesToScore": self.profile.percentage_of_nodes_to_score,
            "hardPodAffinitySymmetricWeight": given.hard_pod_affinity_symmetric_weight,
        }
        if given.disable_preemption:
            found["disablePreemption"] = True
        if given.feature_gates:
            found["featureGates"] = dict(given.feature_gates)
        if given.max_pd_volumes is not None:
            found["env"] = {"KUBE_MAX_PD_VOLS": given.max_pd_volumes}
        return found


def choose(flags: ProfileFlags) -> Chosen:
    """The profile that the flags ask for."""
    options = options_of(flags)
    if flags.policy is not None:
        by_priority = Gates(options.feature_gates)["PodPriority"]
        policy = policy_in(flags.policy, flags)
        profile = from_policy(policy, options, flags.policy)
        return Chosen(profile, options, by_priority, policy=policy)
    if flags.provider is not None:
        by_priority = Gates(options.feature_gates)["PodPriority"]
        profile = from_provider(flags.provider, options)
        return Chosen(profile, options, by_priority, provider=flags.provider)
    if flags.config is not None:
        return _configured(flags, options)
    return _by_default(flags, options)


def _configured(flags: ProfileFlags, options: Options) -> Chosen:
    """All profiles of a KubeSchedulerConfiguration, or the one of the scheduler asked for."""
    assert flags.config is not None
    text = flags.text(flags.config)
    settings, profiles = config_in(flags.config, text, options)
    profiles = tuple(with_rules(profile, options.rules) for profile in profiles)
    if flags.scheduler_name is not None:
        named = [each for each in profiles if each.scheduler_name == flags.scheduler_name]
        if not named:
            names = ", ".join(each.scheduler_name for each in profiles)
            what = f"{flags.config} has no profile for the scheduler {flags.scheduler_name!r}"
            raise ConfigError(what, hint=f"it has {names}")
        profiles = tuple(named)
    return Chosen(
        profiles[0],
        options,
        by_priority=True,
        others=profiles[1:],
        config=parse_policy(text, flags.config),
        settings=settings,
    )


def config_in(
    path: str, text: str, options: Options
) -> tuple[SchedulerConfig, tuple[Profile, ...]]:
    """The configuration in a file, and the profiles that it makes."""
    try:
        found = load_config(text, options.feature_gates)
        return found, from_config(found, options)
    except ConfigError as error:
        raise error.located(path) from None


def _by_default(flags: ProfileFlags, options: Options) -> Chosen:
    name = flags.profile or served()[-1].name
    generation = next((each for each in served() if each.name == name), None)
    if generation is None or generation.default is None:
        raise not_served(name)
    provider = DEFAULT if DEFAULT in generation.providers else None
    profile = with_rules(generation.default(options), options.rules)
    by_priority = options.feature_gates.get("PodPriority", True)
    return Chosen(profile, options, by_priority, provider=provider)


def options_of(flags: ProfileFlags) -> Options:
    """The options of a profile; the environment is read here and nowhere else."""
    gates: dict[str, bool] = {}
    for changes in flags.feature_gates:
        gates.update(changes)
    weight = flags.hard_pod_affinity_symmetric_weight
    return Options(
        percentage_of_nodes_to_score=flags.percentage_of_nodes_to_score,
        hard_pod_affinity_symmetric_weight=1 if weight is None else weight,
        disable_preemption=flags.no_preemption,
        feature_gates=gates,
        max_pd_volumes=flags.environment.get("KUBE_MAX_PD_VOLS"),
        ties=flags.ties,
        scheduler_name=flags.scheduler_name or "default-scheduler",
        rules=rules_of(flags, policy_in(flags.policy, flags) if flags.policy else None),
    )


def policy_in(path: str, flags: ProfileFlags | None = None) -> Mapping[str, Any]:
    """The Policy document in a file, not yet checked."""
    return parse_policy(flags.text(path) if flags is not None else text_from(path), path)


def refuse_extenders(profile: Profile) -> None:
    """Decisions that need answers over HTTP are not recorded."""
    if profile.extenders:
        urls = ", ".join(extender.url_prefix for extender in profile.extenders)
        raise InputError(
            f"{profile.name} asks extenders ({urls}), whose answers a recording cannot hold",
            hint="take the extenders out, or choose another output",
        )
