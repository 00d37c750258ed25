"""NodeDeclaredFeatures: a pod that needs a node feature runs only where the node declares it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.framework.rule import Scope
from podium.engine.rules.plugins import FilterPlugin
from podium.engine.state.verdicts import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable

    from podium.engine.rows.many import Rows
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import Ints
    from podium.engine.state.view import View

MISSING = Reason("node(s) didn't match Pod's required features", curable=False)


class NodeDeclaredFeatures(FilterPlugin):
    """Every feature the pod needs must be declared."""

    name = "NodeDeclaredFeatures"

    def scope(self, cls: PodClass) -> Scope:
        """Few pods need any."""
        return Scope.NODE if needed_features(cls) else Scope.NONE

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:  # noqa: ARG002
        """One."""
        return (MISSING,)

    def bits(self, pod: Incoming, at: Rows) -> Ints:
        """Some feature is missing."""
        needed = needed_features(pod.cls)
        return at.fact(at.view.facts.features, lambda declared: int(not needed <= declared))


def seen_features(declared: Iterable[str]) -> frozenset[str]:
    """Those that the real program sees: it reads a sorted list, and misses what is out of order."""
    seen, last = set(), ""
    for name in declared:
        if name > last:
            seen.add(name)
            last = name
    return frozenset(seen)


def needed_features(cls: PodClass) -> frozenset[str]:
    """The node features that the specification implies."""
    return cls.once("features", lambda: frozenset(_needed(cls)))


def _needed(cls: PodClass) -> list[str]:
    spec, needed = cls.spec, []
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    rules = [rule for container in containers for rule in container.restart_policy_rules or ()]
    if any(rule.action == "RestartAllContainers" for rule in rules):
        needed.append("RestartAllContainersOnContainerExits")
    if spec.host_network and spec.host_users is False:
        needed.append("UserNamespacesHostNetworkSupport")
    return needed
