"""NodeVolumeLimits: a node takes only as many volumes of a CSI driver as it says."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from podium.engine.contracts import Scope
from podium.engine.plugins.base import FilterPlugin
from podium.engine.predicates import reasons as why
from podium.engine.predicates.volumes import class_name
from podium.engine.volume_ledger import Held, Lookups, ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.engine.catalog import Catalog
    from podium.engine.pod_class import Incoming, PodClass, Resident
    from podium.engine.rows import OneRow, Rows
    from podium.engine.tallies import Flags, Ints
    from podium.engine.verdicts import Reason
    from podium.engine.view import View

CsiVolume = tuple[str, str]  #: driver, handle


class NodeVolumeLimits(FilterPlugin):
    """Counts the volumes of the node's pods, and those attached to it without a pod."""

    name = "NodeVolumeLimits"
    #: On rows where it cannot come to the limit, whoever leaves.
    settled = True

    def scope(self, cls: PodClass) -> Scope:
        """Only pods with claims."""
        return Scope.CLUSTER if any(map(_claims, cls.volumes)) else Scope.NONE

    def reasons(self, pod: Incoming, view: View) -> tuple[Reason, ...]:  # noqa: ARG002
        """One."""
        return (why.VOLUME_COUNT,)

    def lockstep(self, pod: Incoming, at: Rows) -> Flags:
        """Where there is room for all volumes even with everybody there."""
        wanted = set(_volumes(pod.cls, pod.pod.name, Lookups(), at.view.catalog))
        known = ledger(at.view, self.name, _held, all_rows=True)
        room = known.failing()[at.index] ^ True
        for driver, number in Counter(driver for driver, _ in wanted).items():
            held = known.counts(driver)[at.index]
            room = room & (held + number <= known.limits(driver)[at.index])
        return room

    def bits(self, pod: Incoming, at: Rows) -> Ints:
        """Too many for some driver; without a limit any number goes."""
        catalog = at.view.catalog
        wanted = set(_volumes(pod.cls, pod.pod.name, Lookups(), catalog))
        if not wanted or not len(catalog.csi_nodes):
            return at.full(0)
        return at.either(lambda: _over(wanted, at), lambda row: _over_on(wanted, row))


def _over(wanted: set[CsiVolume], at: Rows) -> Ints:
    known = ledger(at.view, NodeVolumeLimits.name, _held, all_rows=True)
    for row, text in known.errors.items():
        at.fail_where(at.index == row, text)
    over = at.full(False)  # noqa: FBT003 - a column of False
    for driver in sorted({driver for driver, _ in wanted}):
        volumes = [volume for volume in wanted if volume[0] == driver]
        new = len(volumes) - known.holding(volumes)[at.index]
        full = known.counts(driver)[at.index] + new > known.limits(driver)[at.index]
        over = over | ((new > 0) & full)
    return over * 1


def _over_on(wanted: set[CsiVolume], row: OneRow) -> int:
    held = _held(row, Lookups())
    if held.error:
        row.fail(held.error)
        return 0
    limits = held.limits
    new = Counter(driver for driver, _ in wanted.difference(held.volumes))
    return int(any(held.counts[d] + n > limits[d] for d, n in new.items() if d in limits))


def _held(row: OneRow, lookups: Lookups) -> Held:
    """What the row's pods hold and what is attached to it; nothing counts without limits."""
    catalog = row.view.catalog
    limits = _limits(row.name, lookups, catalog)
    if not limits:
        return Held()
    volumes: set[CsiVolume] = set()
    for resident in row.residents():
        if resident.cls.volumes:
            name = resident.key.partition("/")[2]
            if stranger := _not_owned(resident, name, lookups, catalog):
                error = f'running "{NodeVolumeLimits.name}" filter plugin: {stranger}'
                return Held(error=error)
            volumes.update(_volumes(resident.cls, name, lookups, catalog))
    everything = volumes.union(_attached(row.name, lookups, catalog))
    return Held(volumes, Counter(driver for driver, _ in everything), limits)


def _not_owned(resident: Resident, name: str, lookups: Lookups, catalog: Catalog) -> str:
    """What is said of an ephemeral claim that was not made for the pod; empty when all were."""
    for volume in resident.cls.volumes:
        if volume.ephemeral is None:
            continue
        claim = lookups.get(catalog.claims, f"{name}-{volume.name}", resident.cls.namespace)
        owner = claim.metadata.controller() if claim is not None else None
        if claim is not None and (owner is None or owner.uid != resident.uid):
            return f"PVC {claim.key} was not created for pod {resident.key} (pod is not owner)"
    return ""


def _claims(volume: object) -> bool:
    claim = getattr(volume, "persistent_volume_claim", None)
    return claim is not None or getattr(volume, "ephemeral", None) is not None


def _limits(node: str, lookups: Lookups, catalog: Catalog) -> dict[str, int]:
    found = lookups.get(catalog.csi_nodes, node)
    drivers = (found.spec.drivers if found is not None else None) or ()
    return {
        driver.name: driver.allocatable.count
        for driver in drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _volumes(
    cls: PodClass, pod_name: str, lookups: Lookups, catalog: Catalog
) -> Iterator[CsiVolume]:
    """Driver and handle behind each claim; one not yet bound counts for its class's driver."""
    for volume in cls.volumes:
        if volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            name = f"{pod_name}-{volume.name}"
        else:
            continue
        claim = lookups.get(catalog.claims, name, cls.namespace)
        if claim is None:
            continue
        bound_to = claim.spec.volume_name
        bound = lookups.get(catalog.volumes, bound_to) if bound_to else None
        if bound is not None:
            if bound.spec.csi is not None:
                yield bound.spec.csi.driver, bound.spec.csi.volume_handle
            continue
        named = class_name(claim)
        found = lookups.get(catalog.storage_classes, named) if named else None
        if found is not None:
            yield found.provisioner, f"unbound {claim.key}"


def _attached(node: str, lookups: Lookups, catalog: Catalog) -> Iterator[CsiVolume]:
    for attachment in lookups.attached(catalog.attachments, node):
        if attachment.spec.attacher:
            name = attachment.spec.source.persistent_volume_name or ""
            volume = lookups.get(catalog.volumes, name)
            if volume is not None and volume.spec.csi is not None:
                yield attachment.spec.attacher, volume.spec.csi.volume_handle
