"""What the loop would tell observers, made by a simulation."""

from __future__ import annotations

from podium.cluster.simulation import Simulation
from podium.engine.framework.decision import Decision
from podium.engine.framework.profile import Profile
from podium.objects.kinds.pod import Pod
from podium.scheduler.state.observers import AttemptResult

NOON = 1_800_000_000.0


def attempted(
    pod: Pod,
    decision: Decision,
    profile: Profile,
    *,
    number: int = 1,
    began: float = NOON,
    seconds: float = 0.002,
    waited: float = 1.0,
    steps: tuple[tuple[str, float], ...] = (),
) -> AttemptResult:
    return AttemptResult(pod, decision, profile, number, began, seconds, began - waited, steps)


def tried(
    world: Simulation, pod: Pod, *, recording: bool = False, number: int = 1
) -> AttemptResult:
    """One attempt at a pod; nothing is carried out."""
    decision = world.attempt(pod, recording=recording)
    return attempted(pod, decision, world.profile_of(pod), number=number)


class Clock:
    """Tells a time that tests set."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
