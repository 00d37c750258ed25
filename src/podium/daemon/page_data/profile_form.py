"""The profiles for the form of the page: rules in order, weights, notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podium.daemon.page_data.profile_text import can_weigh, is_v1_13
from podium.engine.generations.v1_36 import PLUGINS
from podium.profiles.policy.describe import describe

if TYPE_CHECKING:
    from podium.daemon.page_data.profile_text import ProfileText
    from podium.engine.framework.profile import Profile
    from podium.profiles.policy.build import Options

Data = dict[str, Any]


def form(current: ProfileText, options: Options) -> Data:
    """Everything the page of the profiles shows."""
    return {
        "kind": current.kind,
        "text": current.text,
        "profiles": [_profile(profile, options) for profile in current.profiles],
    }


def _profile(profile: Profile, options: Options) -> Data:
    v1_13 = is_v1_13(profile)
    descriptions = _descriptions(profile, options) if v1_13 else {}
    return {
        "name": profile.name,
        "scheduler": profile.scheduler_name,
        "ruleNames": ["predicate", "priority"] if v1_13 else ["filter plugin", "score plugin"],
        "maxScore": profile.max_score,
        "ties": profile.ties,
        "preemption": profile.preemption,
        "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
        "predicates": [
            {"name": rule.name, "description": descriptions.get(rule.name) or _plugin(rule.name)}
            for rule in profile.predicates
        ],
        "priorities": [
            {
                "name": each.name,
                "weight": each.weight,
                "description": descriptions.get(each.name) or _plugin(each.name),
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


def _plugin(name: str) -> str:
    known = PLUGINS.get(name)
    return known.description if known is not None else ""
