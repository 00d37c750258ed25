"""How a version of kube-scheduler behaves where that is not part of a decision.

The conditions it writes into pods, the texts of its events, its queue, and which events move pods
back to the active queue. The host chooses the behaviour that belongs to the profile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from podium.cluster.queue import queue as queues
from podium.cluster.queue.pools import Backoff
from podium.cluster.wakeups.hints import hint_rules
from podium.cluster.wakeups.wakeups import MoveRules, WakeRules
from podium.engine.framework.generation import Generation
from podium.engine.framework.profile import Profile
from podium.objects.kinds.pod import Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """What users see of a version besides its decisions."""

    queue: queues.QueueOptions
    #: Makes the rules of the queue, with a function that names the plugin which holds a pod back.
    wake_rules: Callable[[Sequence[Profile], Callable[[Pod], str]], WakeRules]
    #: The reason of the PodScheduled condition after an error, a refused binding, failed volumes.
    error_reason: str
    binding_reason: str
    volumes_reason: str
    #: The event text for a refused binding, for a stage before it that failed (permit, pre-bind),
    #: and for failed volumes, with `{error}`.
    binding_text: str
    pre_bind_text: str
    volumes_text: str
    #: Whether the condition has the error of a binding as its message.
    condition_tells_binding_error: bool
    #: Whether each attempt writes its time into the condition, so that it is written every time.
    writes_probe_time: bool
    #: The event text for victims, with `{key}` and `{uid}` of the preemptor, and `{node}`.
    preempted_text: str
    #: Whether victims get the condition DisruptionTarget before they are deleted.
    marks_victims: bool
    #: Whether a pod in a stage before its binding is nominated to its node meanwhile.
    nominates_before_binding: bool
    #: Longer messages of events are cut.
    max_event_message: int

    def with_backoff(self, initial: float, maximum: float) -> Behaviour:
        """The same behaviour with other backoff seconds."""
        return replace(self, queue=replace(self.queue, backoff=Backoff(initial, maximum)))


def _move_rules(_profiles: Sequence[Profile], _held_by: Callable[[Pod], str]) -> WakeRules:
    return MoveRules()


def _hint_rules(profiles: Sequence[Profile], held_by: Callable[[Pod], str]) -> WakeRules:
    return hint_rules(profiles, held_by)


#: With Policy files. v1.13 has no backoff between attempts, so a refused binding is tried again at
#: once and without end; the backoff here is that of later versions.
OF_POLICIES: Final = Behaviour(
    queue=replace(queues.OF_POLICIES, backoff=Backoff()),
    wake_rules=_move_rules,
    error_reason="Unschedulable",
    binding_reason="BindingRejected",
    volumes_reason="VolumeBindingFailed",
    binding_text="Binding rejected: {error}",
    pre_bind_text="Binding rejected: {error}",
    volumes_text="{error}",
    condition_tells_binding_error=False,
    writes_probe_time=True,
    preempted_text="by {key} on node {node}",
    marks_victims=False,
    nominates_before_binding=False,
    max_event_message=1 << 20,
)

OF_CONFIGURATIONS: Final = Behaviour(
    queue=queues.OF_CONFIGURATIONS,
    wake_rules=_hint_rules,
    error_reason="SchedulerError",
    binding_reason="SchedulerError",
    volumes_reason="SchedulerError",
    binding_text='running Bind plugin "DefaultBinder": {error}',
    pre_bind_text="{error}",
    volumes_text='running PreBind plugin "VolumeBinding": {error}',
    condition_tells_binding_error=True,
    writes_probe_time=False,
    preempted_text="Preempted by pod {uid} on node {node}",
    marks_victims=True,
    nominates_before_binding=True,
    max_event_message=1024,
)


def behaviour_of(generation: Generation) -> Behaviour:
    """The behaviour of a generation, with its default feature gates."""
    if generation.uses_policies:
        return OF_POLICIES
    on = {gate.name for gate in generation.gates if gate.default}
    nominates = "NominatedNodeNameForExpectation" in on
    queue = replace(OF_CONFIGURATIONS.queue, nominates_gated=generation.conduct.queues_entities)
    return replace(OF_CONFIGURATIONS, queue=queue, nominates_before_binding=nominates)
