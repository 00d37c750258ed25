"""How a scheduler works, apart from its decisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podium.scheduler.state.behaviour import OF_CONFIGURATIONS, Behaviour

#: One attempt in so many is decided twice, unless something else is asked for.
VERIFIED_DECISIONS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerOptions:
    """Limits and modes of a scheduler."""

    behaviour: Behaviour = OF_CONFIGURATIONS
    #: How many bindings, and how many other writes, are sent at the same time. The lease has a
    #: connection of its own, and is renewed whatever these do.
    bindings: int = 48
    writes: int = 32
    bind_seconds: float = 15.0
    #: How long the claims of a pod may take to be bound, and how often that is checked.
    volume_seconds: float = 600.0
    volume_poll_seconds: float = 0.25
    #: How long requests under way may take to finish after `Scheduler.stop`.
    drain_seconds: float = 20.0
    #: How long the loop decides before other tasks run.
    slice_seconds: float = 0.005
    #: How often unused memory is released.
    cleanup_seconds: float = 1.0
    #: Whether deciding starts only when `Scheduler.leading` is set.
    waits_to_lead: bool = False
    #: Up to how many nodes a decision keeps every verdict and score that led to it.
    recorded_nodes: int = 0
    #: One attempt in so many is decided from kept answers and without any; 0: none is.
    verified_decisions: int = VERIFIED_DECISIONS
