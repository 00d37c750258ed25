"""Which pods a spread constraint means, and on which rows it counts them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.rules.nodes.v1_13 import matches_required_node, required_node
from podium.engine.state.owner_selectors import services_of
from podium.objects.selectors.selectors import (
    EVERYTHING,
    NOTHING,
    Requirement,
    Selector,
    SelectorError,
    from_label_selector,
    from_map_literal,
)
from podium.objects.taints import tolerated

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podium.engine.rows.many import Rows
    from podium.engine.rules.spreading.constraints import Constraint
    from podium.engine.state.catalog import Catalog
    from podium.engine.state.pod_class import PodClass
    from podium.engine.state.tallies import Flags
    from podium.objects.kinds.node import Taint
    from podium.objects.kinds.pod import TopologySpreadConstraint
    from podium.objects.kinds.workloads import ReplicaSet, StatefulSet


def own_selector(each: TopologySpreadConstraint, labels: Mapping[str, str]) -> Selector:
    """The constraint's selector, narrowed to pods that share the pod's values of some keys."""
    if each.label_selector is None:
        return NOTHING
    selector = from_label_selector(each.label_selector)
    shared = [
        Requirement(k, "In", (labels[k],)) for k in each.match_label_keys or () if k in labels
    ]
    return Selector((*selector.requirements, *shared)) if shared else selector


def default_selector(cls: PodClass, catalog: Catalog) -> Selector:
    """What the pod's services and its controller select; everything when there are none."""
    pairs: dict[str, str] = {}
    for service in services_of(cls, catalog):
        pairs.update(service.spec.selector or {})
    owner = cls.owner
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


def counted_rows(cls: PodClass, constraint: Constraint, at: Rows) -> Flags:
    """Which rows a constraint counts pods on, by its policies."""
    counted = at.full(True)  # noqa: FBT003 - a column of True
    if constraint.honours_affinity and any(part is not None for part in required_node(cls)):
        counted = counted & matches_required_node(cls, at)
    if constraint.honours_taints:
        counted = counted & (at.fact(at.view.facts.taints, lambda t: _blocks(cls, t)) ^ True)
    return counted


def _blocks(cls: PodClass, taints: tuple[Taint, ...]) -> bool:
    hard = [taint for taint in taints if taint.effect in ("NoSchedule", "NoExecute")]
    return not all(tolerated(cls.spec.tolerations, taint) for taint in hard)
