"""The causes behind a recorded decision, as far as the cluster still is as it was.

A running scheduler records reasons and not their causes. When a page or `podium why` shows a pod
that still waits, the pod is decided about once more on the columns as they are now, which changes
nothing; a node whose verdict is still the recorded one is shown with its causes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from podium.engine.cycle.attempt import Attempt
from podium.engine.cycle.causes import find_causes
from podium.engine.cycle.cycle import decide
from podium.engine.cycle.ties import First
from podium.engine.framework.causes import CausedRejection

if TYPE_CHECKING:
    from podium.cluster.cache.cache import Cache
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.engine.state.verdicts import Verdict
    from podium.objects.kinds.pod import Pod


def causes_now(
    cache: Cache, profile: Profile, pod: Pod, recorded: Decision
) -> tuple[CausedRejection, ...]:
    """The causes on the nodes that are rejected now with the verdict that was recorded."""
    incoming, bare = cache.columns.pods.incoming(pod), replace(profile, extenders=())
    now = decide(cache.columns, Attempt(incoming, bare, cache.order(), First(), recording=True))
    before, after = _verdicts(recorded), _verdicts(now)
    same = {name for name, verdict in after.items() if before.get(name) == verdict}
    found = []
    for each in find_causes(cache.columns, incoming, bare, now):
        nodes = tuple(name for name in each.nodes if name in same)
        if nodes:
            found.append(CausedRejection(each.predicate, each.cause, nodes))
    return tuple(found)


def _verdicts(decision: Decision) -> dict[str, Verdict]:
    named = zip(decision.examined, decision.codes.tolist(), strict=True)
    return {name: decision.verdict(code) for name, code in named if code > 0}
