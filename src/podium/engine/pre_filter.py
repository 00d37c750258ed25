"""The first look at a pod, before any node: who refuses it, who names the only nodes, who steps aside."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from podium.engine.contracts import AttemptError
from podium.engine.plugins.base import OnlyNodes, Refused

if TYPE_CHECKING:
    from podium.engine.contracts import Predicate
    from podium.engine.pod_class import Incoming
    from podium.engine.profile import Profile
    from podium.engine.view import View


@dataclass(slots=True)
class FirstLook:
    """What came of it."""

    refused: Refused | None = None
    #: The only nodes in question; None when all are.
    only: frozenset[str] | None = None
    #: Plugins that named nodes.
    naming: list[str] = field(default_factory=list)
    #: Plugins that were asked, and those that stepped aside.
    prepared: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)

    def active(self, profile: Profile) -> tuple[Predicate, ...]:
        """The predicates that take part in this attempt, trials included."""
        return tuple(p for p in profile.predicates if p.name not in self.skipped)


def first_look(pod: Incoming, view: View, profile: Profile) -> FirstLook:
    """Ask each plugin in order, until one refuses the pod for good."""
    look = FirstLook()
    for plugin in profile.pre_filters:
        try:
            answer = plugin.prepare(pod, view)
        except AttemptError as error:
            raise AttemptError(f'running PreFilter plugin "{plugin.name}": {error}') from error
        if isinstance(answer, Refused):
            look.refused = answer
            return look
        look.prepared.add(plugin.name)
        if isinstance(answer, OnlyNodes):
            look.naming.append(plugin.name)
            look.only = answer.names if look.only is None else look.only & answer.names
            if not look.only:
                look.refused = _nobody(look.naming)
                return look
        elif plugin.skips(pod, view):
            look.skipped.add(plugin.name)
    return look


def _nobody(names: list[str]) -> Refused:
    if len(names) == 1:
        return Refused("", f"node(s) didn't satisfy plugin {names[0]}")
    together = " ".join(sorted(names))
    return Refused("", f"node(s) didn't satisfy plugin(s) [{together}] simultaneously")
