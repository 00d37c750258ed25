"""Pods taken off their nodes for a while, to see what would fit without them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podium.cluster.cache.columns import Columns
    from podium.engine.state.pod_class import Port, Resident
    from podium.engine.state.pod_group_members import PlacedMember


class EvictionTrial:
    """Removes placed pods and puts them back; `end` leaves every row as it was at first."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        #: The pods that are off their nodes, and what is known of them as members of groups.
        self._off: dict[str, tuple[Resident, PlacedMember | None]] = {}
        #: Row -> its pods in their order and its host ports, as they were at first.
        self._rows: dict[int, tuple[list[Resident], set[Port]]] = {}

    def remove(self, pod: Resident) -> None:
        """Take a pod off its node."""
        pods, row = self._columns.pods, pod.row
        if row not in self._rows:
            self._rows[row] = (list(pods.residents[row]), set(pods.ports[row]))
        self._off[pod.uid] = (pod, pods.take_off(pod))
        self._columns.note_pods(pod)

    def put_back(self, pod: Resident) -> None:
        """Put a pod that was removed on its node again."""
        self._columns.pods.put_on(*self._off.pop(pod.uid))
        self._columns.note_pods(pod)

    def end(self) -> None:
        """Put all pods back, in the order that they had."""
        for pod, _ in list(self._off.values()):
            self.put_back(pod)
        for row, (residents, ports) in self._rows.items():
            self._columns.pods.residents[row][:] = residents
            self._columns.restore_ports(row, ports)
