"""The usual shape of a predicate: a bit per reason, turned into verdict codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.framework.rule import Scope
from podium.engine.state.verdicts import FITS

if TYPE_CHECKING:
    from podium.engine.rows.many import Rows
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import Ints
    from podium.engine.state.verdicts import Reason
    from podium.engine.state.view import View


class BitPredicate:
    """A predicate whose reasons add up: bit i of `bits` stands for reason i."""

    name: str
    always: Scope = Scope.NODE

    def scope(self, cls: PodClass) -> Scope:  # noqa: ARG002 - subclasses look at the class
        """What the answer depends on."""
        return self.always

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:
        """The reasons there may be, in the order they are reported."""
        raise NotImplementedError

    def bits(self, pod: Incoming, at: Rows) -> Ints:
        """Which of them apply, per row."""
        raise NotImplementedError

    def reject(self, pod: Incoming, at: Rows) -> Ints:
        """The verdict codes."""
        bits = self.bits(pod, at)
        if not at.some(bits):
            return at.full(FITS)
        return at.codes(self.name, bits, self.reasons(pod, at.view))
