"""What may be tried when no node fits: each plugin in turn, until one helps or fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Generator

    import numpy as np

    from podium.engine.framework.decision import Decision, Preemption
    from podium.engine.framework.profile import Profile
    from podium.engine.framework.rule import Predicate
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View


@dataclass(slots=True)
class Scene:
    """Everything known of the failed search."""

    pod: Incoming
    view: View
    profile: Profile
    #: Predicates that did not step aside.
    active: tuple[Predicate, ...]
    #: Rows where evicting pods could help, in node order.
    potential: np.ndarray
    #: Plugins that had a first look at the pod.
    prepared: frozenset[str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """`Success`, `Unschedulable` (go on), `UnschedulableAndUnresolvable` or `Error` (stop)."""

    code: str
    reason: str = ""
    preemption: Preemption | None = None


class PostFilter(Protocol):
    """Something to try when no node fits."""

    @property
    def name(self) -> str:
        """The name users configure it by."""

    def run(self, scene: Scene) -> Generator[Any, Any, Outcome]:
        """Try."""


def run_post_filters(scene: Scene, decision: Decision) -> Generator[Any, Any, None]:
    """Run them in order and note in the decision what came of it."""
    reasons = []
    for plugin in scene.profile.post_filters:
        outcome = yield from plugin.run(scene)
        if outcome.preemption is not None:
            decision.preemption = outcome.preemption
        decision.post_code = outcome.code
        if outcome.code != "Unschedulable":
            decision.post_message = "" if outcome.code == "Success" else outcome.reason
            return
        reasons.append(outcome.reason)
        decision.post_message = ", ".join(reasons)
