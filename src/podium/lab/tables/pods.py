"""How a pod is doing, in the words of `kubectl get pods`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podium.lab.api.status import JsonDict
from podium.lab.tables.text import (
    NONE,
    age,
    condition,
    items,
    metadata,
    number,
    part,
    seconds_of,
    since,
    text,
)

_TERMINAL = frozenset({"Succeeded", "Failed"})


def pod_cells(pod: JsonDict, now: float) -> list[Any]:
    """The cells of a pod's row."""
    state = _State(pod)
    state.look()
    ips = items(pod, "status", "podIPs")
    return [
        text(pod, "metadata", "name"),
        f"{state.ready}/{state.total}",
        state.reason,
        state.restarted(now),
        age(pod, now),
        (str(ips[0].get("ip") or "") if ips else text(pod, "status", "podIP")) or NONE,
        text(pod, "spec", "nodeName", default=NONE),
        text(pod, "status", "nominatedNodeName", default=NONE),
        _readiness_gates(pod),
    ]


def pod_conditions(pod: JsonDict) -> list[JsonDict]:
    """What is said about the whole row: that the pod has ended."""
    phase = text(pod, "status", "phase")
    if phase not in _TERMINAL:
        return []
    well = phase == "Succeeded"
    message = "The pod has completed successfully." if well else "The pod failed."
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]


def _readiness_gates(pod: JsonDict) -> str:
    gates = items(pod, "spec", "readinessGates")
    true = sum(condition(pod, str(gate.get("conditionType"))) == "True" for gate in gates)
    return f"{true}/{len(gates)}" if gates else NONE


@dataclass(slots=True)
class _Restarts:
    count: int = 0
    last: str = ""

    def add(self, status: JsonDict) -> None:
        self.count += number(status, "restartCount")
        ended = text(status, "lastState", "terminated", "finishedAt")
        if ended and (seconds_of(ended) or 0) > (seconds_of(self.last) or 0):
            self.last = ended


class _State:
    """Containers counted and looked at, first those that initialize."""

    def __init__(self, pod: JsonDict) -> None:
        self.pod = pod
        self.ready = 0
        self.restarts = _Restarts()
        inits = items(pod, "spec", "initContainers")
        self.inits = len(inits)
        # Containers that start before the others and stay are counted with them.
        self.staying = {each.get("name") for each in inits if each.get("restartPolicy") == "Always"}
        self.total = len(items(pod, "spec", "containers")) + len(self.staying)
        status = part(pod, "status")
        self.reason = text(status, "reason") or text(status, "phase")

    def look(self) -> None:
        """Find the reason to show."""
        for each in items(self.pod, "status", "conditions"):
            if each.get("type") == "PodScheduled" and each.get("reason") == "SchedulingGated":
                self.reason = "SchedulingGated"
        of_staying = _Restarts()
        initializing = self._initializing(of_staying)
        if not initializing or condition(self.pod, "Initialized") == "True":
            self.restarts = of_staying
            self._containers()
        if metadata(self.pod).get("deletionTimestamp"):
            if text(self.pod, "status", "reason") == "NodeLost":
                self.reason = "Unknown"
            elif text(self.pod, "status", "phase") not in _TERMINAL:
                self.reason = "Terminating"

    def restarted(self, now: float) -> str:
        """How often containers were started again, and when last."""
        count, last = self.restarts.count, self.restarts.last
        return f"{count} ({since(last, now)} ago)" if count and last else str(count)

    def _initializing(self, of_staying: _Restarts) -> bool:
        for at, status in enumerate(items(self.pod, "status", "initContainerStatuses")):
            stays = status.get("name") in self.staying
            self.restarts.add(status)
            if stays:
                of_staying.add(status)
            ended = part(status, "state").get("terminated")
            if ended is not None and not number(ended, "exitCode"):
                continue
            if stays and status.get("started"):
                self.ready += bool(status.get("ready"))
                continue
            waiting = text(status, "state", "waiting", "reason")
            if ended is not None:
                self.reason = f"Init:{_ending(ended)}"
            elif waiting and waiting != "PodInitializing":
                self.reason = f"Init:{waiting}"
            else:
                self.reason = f"Init:{at}/{self.inits}"
            return True
        return False

    def _containers(self) -> None:
        running, wrong = False, ""
        for status in reversed(items(self.pod, "status", "containerStatuses")):
            self.restarts.add(status)
            state = part(status, "state")
            waiting, ended = text(state, "waiting", "reason"), state.get("terminated")
            if waiting:
                self.reason = waiting
            elif ended is not None:
                self.reason = _ending(ended)
                if number(ended, "exitCode"):
                    wrong = self.reason
            elif status.get("ready") and state.get("running") is not None:
                running = True
                self.ready += 1
        if self.reason == "Completed":
            if running and condition(self.pod, "Ready") == "True":
                self.reason = "Running"
            elif wrong:
                self.reason = wrong
            elif running:
                self.reason = "NotReady"


def _ending(ended: JsonDict) -> str:
    """Why a container ended."""
    reason, signal = text(ended, "reason"), number(ended, "signal")
    if reason:
        return reason
    return f"Signal:{signal}" if signal else f"ExitCode:{number(ended, 'exitCode')}"
