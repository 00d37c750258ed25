"""The profiles for the form of the page: rules in order, weights, notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.profiles.policy.describe import describe
from podium.serving.page_data.profile_text import can_weigh, plugins_of, uses_policies

if TYPE_CHECKING:
    from podium.engine.framework.profile import Profile
    from podium.profiles.policy.build import Options
    from podium.serving.page_data.profile_text import ProfileText

Data = dict[str, Any]


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
