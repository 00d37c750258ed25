"""The filter on host ports of both generations; each has its own name and reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.framework.causes import Cause, PortInUse
from podium.engine.framework.rule import BatchTrials, BitFilter, Scope, all_rows
from podium.engine.rows.rows import Ints, K, ManyRows, Rows, conflict
from podium.engine.rules.placed_pods import placed_pod

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from podium.engine.framework.rule import Memo
    from podium.engine.rows.rows import OneRow
    from podium.engine.state.pod_class import Incoming, PodClass


class HostPorts(BitFilter):
    """No host port of the pod may be in use on the node.

    The address 0.0.0.0 conflicts with every address, on either side.
    """

    keyed_by_form = True

    def row_key(self, cls: PodClass) -> Hashable:
        """The host ports."""
        return cls.ports

    def scope(self, cls: PodClass) -> Scope:
        """The pods on the node, for pods with host ports."""
        return Scope.PODS if cls.ports else Scope.NONE

    def batch_trials(self, pod: Incoming, at: ManyRows) -> BatchTrials:  # noqa: ARG002
        """On every row: the ports in use are known for each row."""
        return all_rows(at)

    def bits(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """1 where a conflicting port is in use."""
        if not pod.cls.ports:
            return at.full(0)
        return at.port_conflict(pod.cls.ports) * 1

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:  # noqa: ARG002
        """Every port that is in use, with its holder."""
        for resident in at.residents():
            for used in resident.cls.ports:
                for wanted in pod.cls.ports:
                    if conflict(used, wanted):
                        ip, protocol, number = used
                        holder = placed_pod(resident, at)
                        yield PortInUse(
                            self.reasons[0].text, protocol, number, wanted[0], ip, holder
                        )
