"""Tables of pods, with the state of a pod in the words of `kubectl get pods`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podium.lab.tables.formats import NONE, age, parse_time, time_since
from podium.lab.tables.object_fields import (
    condition_status,
    list_at,
    metadata_of,
    name_of,
    number_at,
    object_at,
    text_at,
)
from podium.lab.tables.printer import Printer
from podium.objects.kinds.meta import JsonObject

_ENDED_PHASES = frozenset({"Succeeded", "Failed"})


def _pod_cells(pod: JsonObject, now: float) -> list[Any]:
    state = _State(pod)
    state.read()
    ips = list_at(pod, "status", "podIPs")
    return [
        name_of(pod),
        f"{state.ready}/{state.total}",
        state.reason,
        state.restarts_text(now),
        age(pod, now),
        (str(ips[0].get("ip") or "") if ips else text_at(pod, "status", "podIP")) or NONE,
        text_at(pod, "spec", "nodeName", default=NONE),
        text_at(pod, "status", "nominatedNodeName", default=NONE),
        _readiness_gates(pod),
    ]


def _pod_conditions(pod: JsonObject) -> list[JsonObject]:
    """The condition of the row of a pod that has ended."""
    phase = text_at(pod, "status", "phase")
    if phase not in _ENDED_PHASES:
        return []
    succeeded = phase == "Succeeded"
    message = "The pod has completed successfully." if succeeded else "The pod failed."
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]


def _readiness_gates(pod: JsonObject) -> str:
    gates = list_at(pod, "spec", "readinessGates")
    true = sum(condition_status(pod, str(gate.get("conditionType"))) == "True" for gate in gates)
    return f"{true}/{len(gates)}" if gates else NONE


@dataclass(slots=True)
class _Restarts:
    count: int = 0
    last: str = ""

    def add(self, status: JsonObject) -> None:
        self.count += number_at(status, "restartCount")
        ended = text_at(status, "lastState", "terminated", "finishedAt")
        if ended and (parse_time(ended) or 0) > (parse_time(self.last) or 0):
            self.last = ended


class _State:
    """The state of a pod, found from its containers, init containers first."""

    def __init__(self, pod: JsonObject) -> None:
        self.pod = pod
        self.ready = 0
        self.restarts = _Restarts()
        inits = list_at(pod, "spec", "initContainers")
        self.inits = len(inits)
        # Sidecars, which are init containers that are always restarted, count as containers.
        self.sidecars = {
            each.get("name") for each in inits if each.get("restartPolicy") == "Always"
        }
        self.total = len(list_at(pod, "spec", "containers")) + len(self.sidecars)
        status = object_at(pod, "status")
        self.reason = text_at(status, "reason") or text_at(status, "phase")

    def read(self) -> None:
        """Count the containers and find the reason that is printed as the status."""
        for each in list_at(self.pod, "status", "conditions"):
            if each.get("type") == "PodScheduled" and each.get("reason") == "SchedulingGated":
                self.reason = "SchedulingGated"
        of_sidecars = _Restarts()
        initializing = self._read_init_containers(of_sidecars)
        if not initializing or condition_status(self.pod, "Initialized") == "True":
            self.restarts = of_sidecars
            self._read_containers()
        if metadata_of(self.pod).get("deletionTimestamp"):
            if text_at(self.pod, "status", "reason") == "NodeLost":
                self.reason = "Unknown"
            elif text_at(self.pod, "status", "phase") not in _ENDED_PHASES:
                self.reason = "Terminating"

    def restarts_text(self, now: float) -> str:
        """The number of restarts and the time since the last one."""
        count, last = self.restarts.count, self.restarts.last
        return f"{count} ({time_since(last, now)} ago)" if count and last else str(count)

    def _read_init_containers(self, of_sidecars: _Restarts) -> bool:
        for at, status in enumerate(list_at(self.pod, "status", "initContainerStatuses")):
            is_sidecar = status.get("name") in self.sidecars
            self.restarts.add(status)
            if is_sidecar:
                of_sidecars.add(status)
            ended = object_at(status, "state").get("terminated")
            if ended is not None and not number_at(ended, "exitCode"):
                continue
            if is_sidecar and status.get("started"):
                self.ready += bool(status.get("ready"))
                continue
            waiting = text_at(status, "state", "waiting", "reason")
            if ended is not None:
                self.reason = f"Init:{_ended_reason(ended)}"
            elif waiting and waiting != "PodInitializing":
                self.reason = f"Init:{waiting}"
            else:
                self.reason = f"Init:{at}/{self.inits}"
            return True
        return False

    def _read_containers(self) -> None:
        running, failure = False, ""
        for status in reversed(list_at(self.pod, "status", "containerStatuses")):
            self.restarts.add(status)
            state = object_at(status, "state")
            waiting, ended = text_at(state, "waiting", "reason"), state.get("terminated")
            if waiting:
                self.reason = waiting
            elif ended is not None:
                self.reason = _ended_reason(ended)
                if number_at(ended, "exitCode"):
                    failure = self.reason
            elif status.get("ready") and state.get("running") is not None:
                running = True
                self.ready += 1
        if self.reason == "Completed":
            if running and condition_status(self.pod, "Ready") == "True":
                self.reason = "Running"
            elif failure:
                self.reason = failure
            elif running:
                self.reason = "NotReady"


def _ended_reason(ended: JsonObject) -> str:
    """Why a container ended, in a word."""
    reason, signal = text_at(ended, "reason"), number_at(ended, "signal")
    if reason:
        return reason
    return f"Signal:{signal}" if signal else f"ExitCode:{number_at(ended, 'exitCode')}"


PRINTERS: Mapping[str, Printer] = {
    "Pod": Printer(
        "Name, Ready, Status, Restarts, Age, *IP, *Node, *Nominated Node, *Readiness Gates",
        _pod_cells,
        _pod_conditions,
    ),
}
