"""User rules, loaded from files and packages, with a time limit for each decision."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from podium.library.notices import Notify, log_warning
from podium.profiles.user_rules import loading
from podium.profiles.user_rules.loading import LoadedRules
from podium.profiles.user_rules.timing import LIMIT_SECONDS, OVERRUNS, RuleWatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any


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
