"""How a scheduler works, apart from its decisions."""

from __future__ import annotations

from dataclasses import dataclass

from podium.daemon.behaviour import V1_36, Behaviour


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerOptions:
    """Limits and modes of a scheduler."""

    behaviour: Behaviour = V1_36
    #: How many bindings, and how many other writes, are sent at the same time. A client has more
    #: connections than bindings take, so that a lease is renewed while many pods are bound.
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
    #: Whether the scheduler only judges the placements of another one, and writes nothing.
    shadow: bool = False
    #: In shadow mode, how long the node of a pod may take to be seen after later ones were bound.
    shadow_seconds: float = 30.0
    #: Up to how many nodes a decision keeps every verdict and score that led to it.
    recorded_nodes: int = 0
