"""`--rules`: what users wrote themselves, watched over by the clock of the machine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from podium.cli.console import note
from podium.profiles.user_rules.loading import NO_RULES, Rules, load_rules
from podium.profiles.user_rules.timing import LIMIT_SECONDS, OVERRUNS, RuleWatch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from podium.cli.flags import ProfileFlags


def rules_of(
    flags: ProfileFlags,
    policy: Mapping[str, Any] | None,
    tell: Callable[[str], None] = note,
) -> Rules:
    """The rules that the flags load, and those of installed packages that the Policy names."""
    if not flags.rules and policy is None:
        return NO_RULES
    watch = RuleWatch(
        time.perf_counter,
        tell,
        limit_seconds=LIMIT_SECONDS if flags.rule_seconds is None else flags.rule_seconds,
        overruns=OVERRUNS if flags.rule_overruns is None else flags.rule_overruns,
    )
    return load_rules(flags.rules, policy, watch)
