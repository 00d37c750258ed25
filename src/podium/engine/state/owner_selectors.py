"""Which services and controllers select a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.objects.selectors.selectors import Selector, from_map

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.engine.state.catalog import Catalog
    from podium.engine.state.pod_class import PodClass
    from podium.objects.kinds.workloads import Service


def services_of(cls: PodClass, catalog: Catalog) -> list[Service]:
    """The services that select the pod; one without a selector is ignored."""
    return [found for found, _ in catalog.services.selecting(cls.namespace, cls.labels.labels)]


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
    for controller, _ in catalog.replication_controllers.selecting(cls.namespace, labels):
        if controller.spec.selector:
            yield from_map(controller.spec.selector)
    # One of them with an invalid selector, and none of them count.
    for shelf in (catalog.replica_sets, catalog.stateful_sets):
        found = shelf.selecting(cls.namespace, labels)
        yield from (selector for _, selector in found if not selector.empty)
