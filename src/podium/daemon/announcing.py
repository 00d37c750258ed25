"""What events say about pods, in kube-scheduler's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from podium.daemon.manners import Manners
    from podium.objects.pod import Pod


class Recorder(Protocol):
    """Who writes events, sooner or later."""

    def record(self, pod: Pod, type_: str, reason: str, message: str) -> None:
        """Write one about a pod; returns at once."""


class Announcer:
    """Tells of pods that were placed, were not, or had to go."""

    def __init__(self, recorder: Recorder, manners: Manners) -> None:
        self._recorder = recorder
        self._manners = manners

    def placed(self, pod: Pod, node: str) -> None:
        """It was bound."""
        text = f"Successfully assigned {pod.key} to {node}"
        self._recorder.record(pod, "Normal", "Scheduled", text)

    def failed(self, pod: Pod, message: str) -> None:
        """It was not."""
        longest = self._manners.longest_message
        if len(message) > longest:
            message = f"{message[: longest - 4]} ..."
        self._recorder.record(pod, "Warning", "FailedScheduling", message)

    def skipped(self, pod: Pod) -> None:
        """It was not tried, because it is being deleted."""
        self.failed(pod, f"skip schedule deleting pod: {pod.key}")

    def preempted(self, victim: Pod, preemptor: Pod, node: str) -> None:
        """It had to go."""
        text = self._manners.preempted_text.format(key=preemptor.key, uid=preemptor.uid, node=node)
        self._recorder.record(victim, "Normal", "Preempted", text)
