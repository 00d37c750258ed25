"""The generations of kube-scheduler that Podium knows of, and the profile a command decides by.

A generation is one row of the table: with a way to make its profile it is served, without one it
is refused in one sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from podium.cli.files import text_from
from podium.cli.own_rules import rules_of
from podium.errors import ConfigError, InputError
from podium.profiles.build import Options, from_policy, from_provider, parse_policy
from podium.profiles.gates import Gates
from podium.profiles.priority_registry import DEFAULT, PROVIDERS
from podium.profiles.rules import with_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from podium.cli.flags import ProfileFlags
    from podium.engine.profile import Profile


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation: what its decisions are made of, and how to get its profile."""

    name: str
    description: str
    #: The profile without any file, if the generation is served.
    default: Callable[[Options], Profile] | None = None
    #: The profile of a KubeSchedulerConfiguration, where the generation has such a thing.
    from_config: Callable[[str, Options], tuple[Profile, ...]] | None = None
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
        default=lambda options: _named(from_config(default_config(), options), options)[0],
        from_config=lambda text, options: from_config(
            load_config(text, options.feature_gates), options
        ),
    ),
)
#: The generation whose configuration files `--config` reads.
CONFIGURED: Final = "v1.36"


@dataclass(frozen=True, slots=True)
class Chosen:
    """A profile and what it was made from."""

    profile: Profile
    options: Options
    #: Whether pods of higher priority go first.
    by_priority: bool
    provider: str | None = None
    policy: Mapping[str, Any] | None = None

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


def choose(flags: ProfileFlags) -> Chosen:
    """The profile that the flags ask for."""
    options = options_of(flags)
    by_priority = Gates(options.feature_gates)["PodPriority"]
    if flags.policy is not None:
        policy = policy_in(flags.policy)
        profile = from_policy(policy, options, flags.policy)
        return Chosen(profile, options, by_priority, policy=policy)
    if flags.provider is not None:
        profile = from_provider(flags.provider, options)
        return Chosen(profile, options, by_priority, provider=flags.provider)
    if flags.config is not None:
        what = f"{flags.config}: a KubeSchedulerConfiguration is of {CONFIGURED}, which"
        raise not_served(CONFIGURED, what)
    return _by_default(flags, options, by_priority=by_priority)


def _by_default(flags: ProfileFlags, options: Options, *, by_priority: bool) -> Chosen:
    name = flags.profile or served()[-1].name
    generation = next((each for each in served() if each.name == name), None)
    if generation is None or generation.default is None:
        raise not_served(name)
    provider = DEFAULT if DEFAULT in generation.providers else None
    profile = with_rules(generation.default(options), options.rules)
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
        scheduler_name=flags.scheduler_name,
        rules=rules_of(flags, policy_in(flags.policy) if flags.policy is not None else None),
    )


def policy_in(path: str) -> Mapping[str, Any]:
    """The Policy document in a file, not yet checked."""
    return parse_policy(text_from(path), path)


def refuse_extenders(profile: Profile) -> None:
    """Decisions that need answers over HTTP are not made from files."""
    if profile.extenders:
        urls = ", ".join(extender.url_prefix for extender in profile.extenders)
        raise InputError(
            f"{profile.name} asks extenders ({urls}), which cannot be asked about files",
            hint="take the extenders out to see the decision without them",
        )
