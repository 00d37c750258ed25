"""Which services and controllers select a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.objects.selectors import (
    Selector,
    SelectorError,
    from_label_selector,
    from_map,
    from_map_literal,
)
from podium.objects.workloads import ReplicaSet, StatefulSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from podium.engine.catalog import Catalog
    from podium.engine.pod_class import PodClass
    from podium.objects.workloads import Service


def services_of(cls: PodClass, catalog: Catalog) -> list[Service]:
    """The services that select the pod; one without a selector is ignored."""
    return [
        service
        for service in catalog.services.within(cls.namespace)
        if service.spec.selector is not None
        and from_map_literal(service.spec.selector).matches(cls.labels.labels)
    ]


def selectors_of(cls: PodClass, catalog: Catalog) -> tuple[Selector, ...]:
    """Selectors of the services and controllers that select the pod, in that order."""
    version = catalog.selection_version()
    known = cls.memo.get("selectors")
    if known is None or known[0] != version:
        known = cls.memo["selectors"] = (version, tuple(_selectors(cls, catalog)))
    return known[1]


def _selectors(cls: PodClass, catalog: Catalog) -> Iterator[Selector]:
    labels = cls.labels.labels
    for service in services_of(cls, catalog):
        yield from_map(service.spec.selector)
    if not labels:
        return
    for controller in catalog.replication_controllers.within(cls.namespace):
        selector = controller.spec.selector
        if selector and from_map_literal(selector).matches(labels):
            yield from_map(selector)
    yield from _matching(catalog.replica_sets.within(cls.namespace), labels)
    yield from _matching(catalog.stateful_sets.within(cls.namespace), labels)


Owner = ReplicaSet | StatefulSet


def _matching(owners: Iterable[Owner], labels: Mapping[str, str]) -> list[Selector]:
    """Those that select the labels; one invalid selector and none of them count."""
    try:
        selectors = [from_label_selector(owner.spec.selector) for owner in owners]
    except SelectorError:
        return []
    return [s for s in selectors if not s.empty and s.matches(labels)]
