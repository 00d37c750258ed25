"""What events say about pods, in kube-scheduler's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from podium.daemon.behaviour import Manners
    from podium.objects.kinds.pod import Pod


class Recorder(Protocol):
    """Who writes events, sooner or later."""

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
        """Write one about an object; returns at once."""


class Mute:
    """A recorder that writes nothing."""

    def record(self, *_: Any, **__: Any) -> None:
        """Say nothing."""


class Announcer:
    """Tells of pods that were placed, were not, or had to go; in the name of their scheduler."""

    def __init__(self, recorder: Recorder, manners: Manners) -> None:
        self._recorder = recorder
        self._manners = manners

    def placed(self, pod: Pod, node: str) -> None:
        """It was bound."""
        self._recorder.record(
            pod,
            "Normal",
            "Scheduled",
            f"Successfully assigned {pod.key} to {node}",
            action="Binding",
            component=pod.spec.scheduler_name,
        )

    def failed(self, pod: Pod, message: str) -> None:
        """It was not."""
        longest = self._manners.longest_message
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

    def skipped(self, pod: Pod) -> None:
        """It was not tried, because it is being deleted."""
        self.failed(pod, f"skip schedule deleting pod: {pod.key}")

    def preempted(self, victim: Pod, preemptor: Pod, node: str) -> None:
        """It had to go."""
        text = self._manners.preempted_text.format(key=preemptor.key, uid=preemptor.uid, node=node)
        self._recorder.record(
            victim,
            "Normal",
            "Preempted",
            text,
            action="Preempting",
            related=preemptor,
            component=preemptor.spec.scheduler_name,
        )
