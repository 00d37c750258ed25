"""How a generation of kube-scheduler behaves where that is not part of a decision.

What it writes into pods, what it says in events, how pods wait and what wakes them. A profile is
served with the manners of its generation; whoever composes a scheduler chooses them, and the loop
only follows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from podium.cluster.queue.backoff import Backoff
from podium.cluster.queue.queue import V1_13, V1_36, QueueOptions
from podium.cluster.wakeups.hints import HintRules
from podium.cluster.wakeups.wakeups import MoveRules, WakeRules
from podium.engine.framework.profile import Profile
from podium.engine.state.accounting import NATIVE, Accounting
from podium.objects.kinds.pod import NodeSelector, Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """Everything of a generation that users see besides its decisions."""

    queue: QueueOptions
    wake_rules: Callable[[Sequence[Profile]], WakeRules]
    #: The reason of the PodScheduled condition after an error, a refused binding, failed volumes.
    error_reason: str
    binding_reason: str
    volumes_reason: str
    #: What events say of a refused binding and of failed volumes, with `{error}`.
    binding_text: str
    volumes_text: str
    #: Whether the condition tells the error of a binding, too.
    tells_binding_error: bool
    #: Whether each attempt writes its time into the condition, so that it is written every time.
    probes: bool
    #: What victims are told, with `{key}` and `{uid}` of who takes their place, and `{node}`.
    preempted_text: str
    #: Whether victims get a condition before they are deleted.
    marks_victims: bool
    #: Whether a pod that waits for its volumes is nominated to its node meanwhile.
    announces_volumes: bool
    #: Longer messages of events are cut.
    longest_message: int

    def with_backoff(self, initial: float, maximum: float) -> Manners:
        """The same with other rests after a failure."""
        return replace(self, queue=replace(self.queue, backoff=Backoff(initial, maximum)))


def _moves(_profiles: Sequence[Profile]) -> WakeRules:
    return MoveRules()


def _hints(profiles: Sequence[Profile]) -> WakeRules:
    return HintRules(_requests(profiles[0].accounting), _added_affinity(profiles))


def _requests(accounting: Accounting) -> Callable[[Pod], Mapping[str, int]]:
    def requests(pod: Pod) -> Mapping[str, int]:
        wanted = accounting.wanted(pod)
        return {**dict(zip(NATIVE, wanted.native, strict=True)), **wanted.scalars}

    return requests


def _added_affinity(profiles: Sequence[Profile]) -> NodeSelector | None:
    """The affinity that the profiles add to every pod, if they agree on one."""
    first, *others = (_required(profile) for profile in profiles)
    return first if all(other == first for other in others) else None


def _required(profile: Profile) -> NodeSelector | None:
    for rule in profile.predicates:
        added: NodeSelector | None = getattr(rule, "added_required", None)
        if added is not None:
            return added
    return None


#: The predicates-and-priorities generation. It had no rest between attempts, which made a refused
#: binding come back at once and for ever; the rests here are those of its successors.
CLASSIC: Final = Manners(
    queue=replace(V1_13, backoff=Backoff()),
    wake_rules=_moves,
    error_reason="Unschedulable",
    binding_reason="BindingRejected",
    volumes_reason="VolumeBindingFailed",
    binding_text="Binding rejected: {error}",
    volumes_text="{error}",
    tells_binding_error=False,
    probes=True,
    preempted_text="by {key} on node {node}",
    marks_victims=False,
    announces_volumes=False,
    longest_message=1 << 20,
)

#: The plugins generation.
CURRENT: Final = Manners(
    queue=V1_36,
    wake_rules=_hints,
    error_reason="SchedulerError",
    binding_reason="SchedulerError",
    volumes_reason="SchedulerError",
    binding_text='running Bind plugin "DefaultBinder": {error}',
    volumes_text='running PreBind plugin "VolumeBinding": {error}',
    tells_binding_error=True,
    probes=False,
    preempted_text="Preempted by pod {uid} on node {node}",
    marks_victims=True,
    announces_volumes=True,
    longest_message=1024,
)
