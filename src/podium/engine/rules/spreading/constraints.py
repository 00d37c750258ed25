"""Topology spread constraints of a pod: its own, or the profile's defaults.

The defaults get a selector made from the pod's services and its controller.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from podium.engine.framework.rule import AttemptError
from podium.engine.rows.rows import Flags, K, Rows
from podium.engine.rules.node_affinity import matches_required_node, required_node
from podium.engine.rules.spreading.shared import tally_live_pods
from podium.engine.rules.taints import has_untolerated
from podium.engine.state.catalog import services_of
from podium.engine.state.pod_class import KeptPerClass
from podium.objects.kinds.pod import TopologySpreadConstraint
from podium.objects.selectors.faults import label_selector_fault
from podium.objects.selectors.selectors import (
    EVERYTHING,
    NOTHING,
    Requirement,
    Selector,
    SelectorError,
    from_label_selector,
    from_map_literal,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from podium.engine.state.catalog import Catalog
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import Tally
    from podium.engine.state.view import View
    from podium.objects.kinds.workloads import ReplicaSet, StatefulSet

HOST = "kubernetes.io/hostname"
HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
_KIND = {HARD: "hard", SOFT: "soft"}
SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOST, when_unsatisfiable=SOFT),
    TopologySpreadConstraint(
        max_skew=5, topology_key="topology.kubernetes.io/zone", when_unsatisfiable=SOFT
    ),
)


@dataclass(frozen=True, slots=True)
class SpreadDefaults:
    """Constraints for pods without any: the built-in ones (System) or the profile's (List)."""

    kind: str = "System"
    constraints: tuple[TopologySpreadConstraint, ...] = SYSTEM_DEFAULTS
    #: The hard and the soft ones, and what a class keeps of them for its pods.
    by_action: dict[str, tuple[TopologySpreadConstraint, ...]] = field(
        init=False, compare=False, repr=False
    )
    kept: dict[str, KeptPerClass[tuple[Constraint, ...]]] = field(
        init=False, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        """Sort the constraints by what is done where they cannot be satisfied."""
        actions, listed = (HARD, SOFT), self.constraints
        by_action = {a: tuple(c for c in listed if c.when_unsatisfiable == a) for a in actions}
        object.__setattr__(self, "by_action", by_action)
        object.__setattr__(self, "kept", {action: KeptPerClass() for action in actions})


@dataclass(frozen=True, slots=True)
class Constraint:
    """A topology spread constraint, compiled for one class of pods."""

    key: str
    max_skew: int
    selector: Selector
    min_domains: int
    honours_affinity: bool
    honours_taints: bool
    #: Its tally, with the tallies among which it was found.
    _known: list[tuple[dict[object, Tally], Tally]] = field(
        default_factory=list, compare=False, repr=False
    )
    #: The rows on which its pods count for a score; None if these are all.
    counted: KeptPerClass[np.ndarray | None] = field(
        default_factory=KeptPerClass, compare=False, repr=False
    )

    @property
    def pods(self) -> str:
        """The pods that count, as a selector that `kubectl` takes; equal requirements once."""
        return ",".join(dict.fromkeys(map(str, self.selector.requirements)))

    def tally(self, cls: PodClass, view: View) -> Tally:
        """A tally of the pods that count. An empty selector counts none, though it matches all."""
        tallies, known = view.pods.tallies, self._known
        if known and known[0][0] is tallies:
            return known[0][1]
        selectors = () if self.selector.empty else (self.selector,)
        found = tally_live_pods(view, cls.namespace, selectors)
        known[:] = [(tallies, found)]
        return found


def constraints_of(
    pod: Incoming, view: View, action: str, defaults: SpreadDefaults
) -> tuple[Constraint, ...]:
    """The hard or soft constraints of a pod: its own, if it has any at all, else the defaults."""
    cls = pod.cls
    own = cls.spec.topology_spread_constraints
    if not own and not defaults.by_action[action]:
        return ()
    # Own constraints have selectors of their own, whatever services and controllers there are.
    changes = 0 if own else view.catalog.selections.changes
    return defaults.kept[action].of(
        cls,
        changes,
        lambda: _own(cls, own, action) if own else _default(cls, view, action, defaults),
    )


def _own(cls: PodClass, own: list[TopologySpreadConstraint], action: str) -> tuple[Constraint, ...]:
    try:
        return tuple(
            _compiled(each, own_selector(each, cls.labels.labels))
            for each in own
            if each.when_unsatisfiable == action
        )
    except SelectorError as error:
        faults = (
            label_selector_fault(c.label_selector) for c in own if c.when_unsatisfiable == action
        )
        what = f"obtaining pod's {_KIND[action]} topology spread constraints"
        raise AttemptError(f"{what}: {next(filter(None, faults))}") from error


def _default(
    cls: PodClass, view: View, action: str, defaults: SpreadDefaults
) -> tuple[Constraint, ...]:
    wanted = defaults.by_action[action]
    selector = default_selector(cls, view.catalog) if wanted else EVERYTHING
    return () if selector.empty else tuple(_compiled(each, selector) for each in wanted)


def _compiled(each: TopologySpreadConstraint, selector: Selector) -> Constraint:
    return Constraint(
        key=each.topology_key,
        max_skew=each.max_skew,
        selector=selector,
        min_domains=each.min_domains if each.min_domains is not None else 1,
        honours_affinity=each.node_affinity_policy != "Ignore",
        honours_taints=each.node_taints_policy == "Honor",
    )


def own_selector(each: TopologySpreadConstraint, labels: Mapping[str, str]) -> Selector:
    """The constraint's selector, with the pod's values of matchLabelKeys added."""
    if each.label_selector is None:
        return NOTHING
    selector = from_label_selector(each.label_selector)
    shared = [
        Requirement(k, "In", (labels[k],)) for k in each.match_label_keys or () if k in labels
    ]
    return Selector((*selector.requirements, *shared)) if shared else selector


def default_selector(cls: PodClass, catalog: Catalog) -> Selector:
    """The selectors of the pod's services and controller together; everything without any."""
    pairs: dict[str, str] = {}
    for service in services_of(cls, catalog):
        pairs.update(service.spec.selector or {})
    owner = cls.owner
    if owner is None and not pairs:
        return EVERYTHING
    if owner is not None and (owner.kind, owner.api_version) == ("ReplicationController", "v1"):
        controller = catalog.replication_controllers.get(owner.name, cls.namespace)
        pairs.update((controller.spec.selector if controller else None) or {})
    selector = from_map_literal(pairs)
    if owner is None or owner.api_version != "apps/v1":
        return selector
    found: ReplicaSet | StatefulSet | None = None
    if owner.kind == "ReplicaSet":
        found = catalog.replica_sets.get(owner.name, cls.namespace)
    elif owner.kind == "StatefulSet":
        found = catalog.stateful_sets.get(owner.name, cls.namespace)
    if found is None:
        return selector
    try:
        more = from_label_selector(found.spec.selector)
    except SelectorError:
        more = EVERYTHING
    # A controller without a selector adds nothing.
    return Selector((*selector.requirements, *more.requirements))


def counted_rows(cls: PodClass, constraint: Constraint, at: Rows[K]) -> Flags[K]:
    """The rows where a constraint counts pods, by nodeAffinityPolicy and nodeTaintsPolicy."""
    counted = at.flags(True)  # noqa: FBT003 - a column of True
    if constraint.honours_affinity and any(part is not None for part in required_node(cls)):
        counted = counted & matches_required_node(cls, at)
    if constraint.honours_taints:
        shut = at.flag(
            at.view.nodes.facts.taints, lambda t: has_untolerated(cls.spec.tolerations, t)
        )
        counted = counted & (shut ^ True)
    return counted
