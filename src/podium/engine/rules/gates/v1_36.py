"""SchedulingGates: a pod with gates is not tried at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.framework.rule import Refused

if TYPE_CHECKING:
    from podium.engine.state.pod_class import Incoming


class SchedulingGates:
    """Holds a pod back until the last gate is gone."""

    name = "SchedulingGates"

    def hold(self, pod: Incoming) -> Refused | None:
        """The gates still there, in order."""
        gates = [gate.name for gate in pod.pod.spec.scheduling_gates or ()]
        if not gates:
            return None
        return Refused(self.name, f"waiting for scheduling gates: [{' '.join(gates)}]")
