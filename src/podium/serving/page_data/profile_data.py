"""The profiles of a scheduler for the pages: a form, and a text that can be edited.

Whatever the scheduler was started with can be written as a Policy or a KubeSchedulerConfiguration.
New weights change that text, and profiles are made from text only, so that what was tried on a page
can be copied into a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
import yaml

from podium.errors import ConfigError
from podium.generations.known import DEFAULT
from podium.generations.v1_13 import V1_13
from podium.profiles.config.build import from_config, load_config
from podium.profiles.config.document import ALL, API_VERSION, KIND
from podium.profiles.policy.build import Options, from_policy, parse_policy
from podium.profiles.policy.description import describe
from podium.profiles.user_rules.loading import with_rules
from podium.scheduler.state.behaviour import Behaviour, behaviour_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from podium.engine.framework.declaration import PluginDeclaration
    from podium.engine.framework.profile import Profile

Data = dict[str, Any]

POLICY: Final = "Policy"
_WHERE: Final = "the text"
_LARGEST: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class ProfileText:
    """A text and the profiles that were made from it."""

    text: str
    kind: str
    profiles: tuple[Profile, ...]
    #: The behaviour of the version that the text is for.
    behaviour: Behaviour


def read_profiles(text: str, options: Options) -> ProfileText:
    """Make the profiles of a text; `ConfigError` if that is not possible."""
    document = parse_policy(text, _WHERE)
    if document.get("kind") == KIND:
        generation = options.of_configurations
        config = load_config(text, options.feature_gates, generation)
        made = from_config(config, options)
        first, longest = config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
        return ProfileText(
            text,
            KIND,
            tuple(with_rules(each, options.rules) for each in made),
            behaviour_of(generation).with_backoff(float(first), float(longest)),
        )
    if document.get("kind") != POLICY:
        raise ConfigError(
            f"{_WHERE} is neither a {POLICY} nor a {KIND}",
            hint=f"it begins with kind: {POLICY} and apiVersion: v1, or with kind: {KIND} "
            f"and apiVersion: {API_VERSION}",
        )
    return ProfileText(text, POLICY, (from_policy(document, options),), behaviour_of(V1_13))


def written(profiles: Sequence[Profile], options: Options) -> str:
    """The text of profiles that were not made from one."""
    if uses_policies(profiles[0]):
        return dumped(_policy(profiles[0], options))
    return dumped(
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "profiles": [
                {"schedulerName": each.scheduler_name, "plugins": {"score": _scores(each)}}
                for each in profiles
            ],
        }
    )


def uses_policies(profile: Profile) -> bool:
    """Whether a Policy describes the profile, rather than a KubeSchedulerConfiguration."""
    return profile.generation is not None and profile.generation.uses_policies


def plugins_of(profile: Profile) -> Mapping[str, PluginDeclaration]:
    """The plugins that a configuration of the profile's generation can name."""
    return (profile.generation or DEFAULT).plugin


def reweighted(
    current: ProfileText, weights: Mapping[str, int], scheduler: str, options: Options
) -> str:
    """The text with other weights for one profile's priorities; 0 removes a priority."""
    named = (each for each in current.profiles if each.scheduler_name == scheduler)
    profile = next(named, current.profiles[0])
    _check(weights, profile)
    document = dict(parse_policy(current.text, _WHERE))
    if current.kind == POLICY:
        entries = document.get("priorities")
        listed = entries if entries is not None else _policy(profile, options)["priorities"]
        document["priorities"] = _changed(listed, weights)
        return dumped(document)
    profiles = [dict(each) for each in document.get("profiles") or [{}]]
    mine = next((p for p in profiles if p.get("schedulerName") == scheduler), profiles[0])
    scores = _scores(profile)
    scores["enabled"] = _changed(scores["enabled"], weights)
    mine["plugins"] = {**(mine.get("plugins") or {}), "score": scores}
    document["profiles"] = profiles
    return dumped(document)


def can_weigh(profile: Profile, name: str) -> bool:
    """Whether the text can have a weight for a priority.

    Priorities of users have none in a KubeSchedulerConfiguration.
    """
    return uses_policies(profile) or name in plugins_of(profile)


def _check(weights: Mapping[str, int], profile: Profile) -> None:
    known = {each.name for each in profile.priorities}
    for name, weight in weights.items():
        if name not in known:
            raise ConfigError(f"{profile.name} has no priority {name!r}")
        if not 0 <= weight <= _LARGEST:
            raise ConfigError(
                f"the weight of {name} is {weight}", hint=f"a whole number from 0 to {_LARGEST}"
            )


def _changed(entries: Sequence[Data], weights: Mapping[str, int]) -> list[Data]:
    changed = [{**each, "weight": weights.get(each["name"], each["weight"])} for each in entries]
    return [each for each in changed if each["weight"]]


def _scores(profile: Profile) -> Data:
    """The score plugins of a configuration, with the default ones disabled."""
    return {
        "disabled": [{"name": ALL}],
        "enabled": [
            {"name": each.name, "weight": each.weight}
            for each in profile.priorities
            if each.name in plugins_of(profile)
        ],
    }


def _policy(profile: Profile, options: Options) -> Data:
    described = describe(profile, options)
    arguments = {
        each["name"]: each["argument"] for each in described["predicates"] if "argument" in each
    }
    predicates: list[Data] = []
    for name in profile.configured_predicates:
        entry: Data = {"name": name}
        predicates.append(entry | ({"argument": arguments[name]} if name in arguments else {}))
    priorities: list[Data] = []
    for each in described["priorities"]:
        entry = {"name": each["name"], "weight": each["weight"]}
        priorities.append(entry | ({"argument": each["argument"]} if "argument" in each else {}))
    return {"kind": POLICY, "apiVersion": "v1", "predicates": predicates, "priorities": priorities}


def dumped(document: Mapping[str, Any]) -> str:
    """A Policy or configuration as text."""
    return yaml.safe_dump(msgspec.to_builtins(document), sort_keys=False, default_flow_style=False)


def form(current: ProfileText, options: Options) -> Data:
    """Everything the page of the profiles shows."""
    return {
        "kind": current.kind,
        "text": current.text,
        "profiles": [_profile(profile, options) for profile in current.profiles],
    }


def _profile(profile: Profile, options: Options) -> Data:
    of_policy = uses_policies(profile)
    plugins = {name: plugin.description for name, plugin in plugins_of(profile).items()}
    descriptions = _descriptions(profile, options) if of_policy else plugins
    return {
        "name": profile.name,
        "scheduler": profile.scheduler_name,
        "ruleNames": ["predicate", "priority"] if of_policy else ["filter plugin", "score plugin"],
        "maxScore": profile.max_score,
        "ties": profile.ties,
        "preemption": profile.preemption,
        "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
        "predicates": [
            {"name": rule.name, "description": descriptions.get(rule.name, "")}
            for rule in profile.predicates
        ],
        "priorities": [
            {
                "name": each.name,
                "weight": each.weight,
                "description": descriptions.get(each.name, ""),
                "editable": can_weigh(profile, each.name),
            }
            for each in profile.priorities
        ],
        "extenders": [each.url_prefix for each in profile.extenders],
        "notes": list(profile.notes),
    }


def _descriptions(profile: Profile, options: Options) -> dict[str, str]:
    described = describe(profile, options)
    return {
        each["name"]: each.get("description", "")
        for each in (*described["predicates"], *described["priorities"])
    }
