"""SchedulingGates: a pod with scheduling gates is not scheduled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.engine.framework.declaration import PluginDeclaration, plain
from podium.engine.framework.rule import Refused
from podium.engine.rules.plugins import is_self

if TYPE_CHECKING:
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View


class SchedulingGates:
    """Keeps a pod out of the active queue until all its scheduling gates are removed."""

    name = "SchedulingGates"

    def hold(self, pod: Incoming, view: View) -> Refused | None:
        """The refusal that names the gates left; None when there are none."""
        gates = pod.pod.spec.scheduling_gates
        if not gates:
            return None
        names = " ".join(gate.name for gate in gates)
        return Refused(self.name, f"waiting for scheduling gates: [{names}]")


SCHEDULING_GATES: Final = PluginDeclaration(
    "SchedulingGates",
    "preEnqueue",
    "a pod with gates is not tried",
    gate=plain(SchedulingGates),
    events={"Pod UpdatePodSchedulingGatesEliminated": is_self},
)
