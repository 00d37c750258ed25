"""User rules that a profile's source names, with their time limits."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from podium.profiles.user_rules.loading import NO_RULES, Rules, load_rules
from podium.profiles.user_rules.timing import LIMIT_SECONDS, OVERRUNS, RuleWatch

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from podium.library.profile_source import ProfileSource


def rules_of(source: ProfileSource, policy: Mapping[str, Any] | None) -> Rules:
    """The rules that *source* lists, and those of installed packages that *policy* names."""
    if not source.rules and policy is None:
        return NO_RULES
    watch = RuleWatch(
        time.perf_counter,
        source.notify,
        limit_seconds=LIMIT_SECONDS if source.rule_seconds is None else source.rule_seconds,
        overruns=OVERRUNS if source.rule_overruns is None else source.rule_overruns,
    )
    return load_rules(source.rules, policy, watch)
