"""Events about pods, with kube-scheduler's reasons and texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from podium.objects.kinds.pod import Pod
    from podium.objects.kinds.pod_group import PodGroup
    from podium.scheduler.state.behaviour import Behaviour


class Recorder(Protocol):
    """Writes events to the API server in the background."""

    def record(
        self,
        about: Any,
        kind: str,
        reason: str,
        message: str,
        *,
        action: str,
        related: Any | None = None,
        component: str | None = None,
    ) -> None:
        """Queue one event about an object; returns at once."""


class NoEvents:
    """A recorder that writes nothing, for shadow mode."""

    def record(self, *_: Any, **__: Any) -> None:
        """Drop the event."""


class PodEvents:
    """Records events about pods, in the name of each pod's scheduler."""

    def __init__(self, recorder: Recorder, behaviour: Behaviour) -> None:
        self._recorder = recorder
        self._behaviour = behaviour

    def scheduled(self, pod: Pod, node: str) -> None:
        """Record that a pod was bound to a node."""
        self._recorder.record(
            pod,
            "Normal",
            "Scheduled",
            f"Successfully assigned {pod.key} to {node}",
            action="Binding",
            component=pod.spec.scheduler_name,
        )

    def failed_scheduling(self, pod: Pod, message: str) -> None:
        """Record that an attempt failed, and why; a long message is cut."""
        longest = self._behaviour.max_event_message
        if len(message) > longest:
            message = f"{message[: longest - 4]} ..."
        self._recorder.record(
            pod,
            "Warning",
            "FailedScheduling",
            message,
            action="Scheduling",
            component=pod.spec.scheduler_name,
        )

    def skipped_deleting(self, pod: Pod) -> None:
        """Record that a pod was not attempted because it is being deleted."""
        self.failed_scheduling(pod, f"skip schedule deleting pod: {pod.key}")

    def preempted(self, victim: Pod, preemptor: Pod, node: str) -> None:
        """Record that a pod was deleted in favour of another one."""
        text = self._behaviour.preempted_text.format(
            key=preemptor.key, uid=preemptor.uid, node=node
        )
        self._recorder.record(
            victim,
            "Normal",
            "Preempted",
            text,
            action="Preempting",
            related=preemptor,
            component=preemptor.spec.scheduler_name,
        )

    def preempted_by_group(self, victim: Pod, group: PodGroup, component: str) -> None:
        """Record that a pod was deleted in favour of a pod group.

        The node is the word "cluster", as in kube-scheduler: a group takes all nodes as one place.
        """
        self._recorder.record(
            victim,
            "Normal",
            "Preempted",
            f"Preempted by podgroup {group.uid} on node cluster",
            action="Preempting",
            related=group,
            component=component,
        )
