"""Which pods a spread constraint means: by its own selector, or by services and controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.selection import services_of
from podium.engine.terms import LABEL_SELECTOR
from podium.objects.selectors import (
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

    from podium.engine.catalog import Catalog
    from podium.engine.pod_class import PodClass
    from podium.objects.pod import TopologySpreadConstraint
    from podium.objects.workloads import ReplicaSet, StatefulSet


def own_selector(each: TopologySpreadConstraint, labels: Mapping[str, str]) -> Selector:
    """The constraint's selector, narrowed to pods that share the pod's values of some keys."""
    if each.label_selector is None:
        return NOTHING
    selector = from_label_selector(each.label_selector, LABEL_SELECTOR)
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
