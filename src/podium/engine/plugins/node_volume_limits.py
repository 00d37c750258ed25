"""NodeVolumeLimits: a node takes only as many volumes of a CSI driver as it says."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from podium.engine.contracts import Scope
from podium.engine.plugins.base import FilterPlugin
from podium.engine.predicates import reasons as why
from podium.engine.predicates.volumes import class_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.engine.catalog import Catalog
    from podium.engine.pod_class import Incoming, PodClass, Resident
    from podium.engine.rows import OneRow, Rows
    from podium.engine.tallies import Ints
    from podium.engine.verdicts import Reason
    from podium.engine.view import View

CsiVolume = tuple[str, str]  #: driver, handle


class NodeVolumeLimits(FilterPlugin):
    """Counts the volumes of the node's pods, and those attached to it without a pod."""

    name = "NodeVolumeLimits"

    def scope(self, cls: PodClass) -> Scope:
        """Only pods with claims."""
        return Scope.CLUSTER if any(map(_claims, cls.volumes)) else Scope.NONE

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:  # noqa: ARG002
        """One."""
        return (why.VOLUME_COUNT,)

    def bits(self, pod: Incoming, at: Rows) -> Ints:
        """Too many for some driver; without a limit any number goes."""
        catalog = at.view.catalog
        wanted = set(_volumes(pod.cls, pod.pod.name, catalog))
        if not wanted or not len(catalog.csi_nodes):
            return at.full(0)
        limited = {at.view.row_of.get(node.name, -1) for node in catalog.csi_nodes}
        return at.sparse(limited, lambda row: self._over(wanted, row))

    def _over(self, wanted: set[CsiVolume], row: OneRow) -> int:
        catalog = row.view.catalog
        limits = _limits(row.name, catalog)
        if not limits:
            return 0
        attached: set[CsiVolume] = set()
        for resident in row.residents():
            if resident.cls.volumes:
                name = resident.key.partition("/")[2]
                if stranger := _not_owned(resident, name, catalog):
                    row.fail(f'running "{NodeVolumeLimits.name}" filter plugin: {stranger}')
                    return 0
                attached.update(_volumes(resident.cls, name, catalog))
        new = Counter(driver for driver, _ in wanted - attached)
        held = Counter(driver for driver, _ in attached | set(_attached(row.name, catalog)))
        return int(any(held[d] + n > limits[d] for d, n in new.items() if d in limits))


def _not_owned(resident: Resident, name: str, catalog: Catalog) -> str:
    """What is said of an ephemeral claim that was not made for the pod; empty when all were."""
    for volume in resident.cls.volumes:
        if volume.ephemeral is None:
            continue
        claim = catalog.claims.get(f"{name}-{volume.name}", resident.cls.namespace)
        owner = claim.metadata.controller() if claim is not None else None
        if claim is not None and (owner is None or owner.uid != resident.uid):
            return f"PVC {claim.key} was not created for pod {resident.key} (pod is not owner)"
    return ""


def _claims(volume: object) -> bool:
    claim = getattr(volume, "persistent_volume_claim", None)
    return claim is not None or getattr(volume, "ephemeral", None) is not None


def _limits(node: str, catalog: Catalog) -> dict[str, int]:
    found = catalog.csi_nodes.get(node)
    drivers = (found.spec.drivers if found is not None else None) or ()
    return {
        driver.name: driver.allocatable.count
        for driver in drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _volumes(cls: PodClass, pod_name: str, catalog: Catalog) -> Iterator[CsiVolume]:
    """Driver and handle behind each claim; one not yet bound counts for its class's driver."""
    for volume in cls.volumes:
        if volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            name = f"{pod_name}-{volume.name}"
        else:
            continue
        claim = catalog.claims.get(name, cls.namespace)
        if claim is None:
            continue
        bound = catalog.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
        if bound is not None:
            if bound.spec.csi is not None:
                yield bound.spec.csi.driver, bound.spec.csi.volume_handle
            continue
        found = catalog.storage_classes.get(class_name(claim)) if class_name(claim) else None
        if found is not None:
            yield found.provisioner, f"unbound {claim.key}"


def _attached(node: str, catalog: Catalog) -> Iterator[CsiVolume]:
    for attachment in catalog.attachments:
        if attachment.spec.node_name == node and attachment.spec.attacher:
            volume = catalog.volumes.get(attachment.spec.source.persistent_volume_name or "")
            if volume is not None and volume.spec.csi is not None:
                yield attachment.spec.attacher, volume.spec.csi.volume_handle
