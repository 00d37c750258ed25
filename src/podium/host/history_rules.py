"""The rules by which a history was decided, made again from its header."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from podium.host.options import behaviour_of
from podium.host.record_run import RecordOptions
from podium.library.snapshots.profile import kept_profile
from podium.past.replay.replay import Rules
from podium.profiles.user_rules.adapter import UserReserve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podium.library.profile_choice import ChosenProfiles
    from podium.library.profile_source import ProfileSource
    from podium.past.format.writing import Limits
    from podium.past.replay.replay import RulesOf


def rules_of(chosen: ChosenProfiles) -> Rules:
    """The rules of some profiles."""
    profiles = {profile.scheduler_name: profile for profile in chosen.profiles}
    return Rules(profiles, behaviour_of(chosen))


def record_options(
    folder: str, limits: Limits, source: ProfileSource, chosen: ChosenProfiles
) -> RecordOptions:
    """How to record a scheduler or a cluster, with the profiles in the header."""
    rules = (rule for profile in chosen.profiles for rule in profile.reserve_rules)
    return RecordOptions(
        folder=folder,
        limits=limits,
        about={"profile": kept_profile(source, chosen)},
        annotations=frozenset(
            rule.annotation for rule in rules if isinstance(rule, UserReserve) and rule.annotation
        ),
        rules_of=recorded_rules(
            replace(source, policy=None, provider=None, config=None, profile=None)
        ),
    )


def recorded_rules(source: ProfileSource) -> RulesOf:
    """The rules that a header names, with the options of *source*; or those of *source* alone.

    A source that names a profile is taken as it is. Segments with equal headers share their rules.
    """
    made: list[tuple[Mapping[str, Any], Rules]] = []

    def rules(header: Mapping[str, Any]) -> Rules:
        named = {"profile": header.get("profile")}
        for known, found in made:
            if known == named:
                return found
        found = rules_of(source.choose(named))
        made.append((named, found))
        return found

    return rules
