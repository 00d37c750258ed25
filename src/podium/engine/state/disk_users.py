"""How many pods on which row name a disk themselves, by disk: no decision walks pods for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from podium.engine.state.pod_class import once_per_class

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from podium.engine.state.pod_class import PodClass
    from podium.objects.kinds.pod import Volume


@once_per_class
def own_disks(cls: PodClass) -> tuple[Volume, ...]:
    """The volumes that name a disk which may be in conflict."""
    return tuple(v for v in cls.volumes if any(_sources(v)))


class _Disk(NamedTuple):
    """A disk as a pod names it."""

    volume: Volume
    #: Equal for two that are the same disk, used in the same way.
    identity: str
    #: Two that could be in conflict share a name.
    names: tuple[tuple[str, ...], ...]


@once_per_class
def _disks(cls: PodClass) -> tuple[_Disk, ...]:
    return tuple(_Disk(v, repr(_sources(v)), tuple(_names(v))) for v in own_disks(cls))


def _sources(volume: Volume) -> tuple[object, ...]:
    return (volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.iscsi, volume.rbd)


def _names(volume: Volume) -> Iterator[tuple[str, ...]]:
    if volume.gce_persistent_disk is not None:
        yield "gce", volume.gce_persistent_disk.pd_name
    if volume.aws_elastic_block_store is not None:
        yield "ebs", volume.aws_elastic_block_store.volume_id
    if volume.iscsi is not None:
        yield "iscsi", volume.iscsi.iqn
    if volume.rbd is not None:
        yield "rbd", volume.rbd.pool, volume.rbd.image


def disk_name(volume: Volume) -> str:
    """What a disk is called, with its kind: `gce data`, `rbd pool/image`."""
    kind, *names = next(_names(volume))
    return f"{kind} {'/'.join(names)}"


class DiskUsers:
    """Disks in use, by name and then by identity: row -> how many pods there."""

    __slots__ = ("_by_name",)

    def __init__(self) -> None:
        self._by_name: dict[tuple[str, ...], dict[str, tuple[Volume, dict[int, int]]]] = {}

    def add(self, cls: PodClass, row: int, number: int) -> None:
        """A pod came to a row or left it."""
        for disk in _disks(cls):
            for name in disk.names:
                alike = self._by_name.setdefault(name, {})
                rows = alike.setdefault(disk.identity, (disk.volume, {}))[1]
                rows[row] = rows.get(row, 0) + number
                if not rows[row]:
                    del rows[row]
                if not rows:
                    del alike[disk.identity]
                if not alike:
                    del self._by_name[name]

    def in_the_way(
        self, cls: PodClass, conflict: Callable[[Volume, Volume], bool], size: int
    ) -> np.ndarray:
        """Per row, how often disks of its pods are in conflict with those of a pod to come."""
        found = np.zeros(size, np.int64)
        for disk in _disks(cls):
            for name in disk.names:
                for other, rows in self._by_name.get(name, {}).values():
                    if conflict(disk.volume, other):
                        counts = np.fromiter(rows.values(), np.int64, len(rows))
                        found[list(rows)] += counts
        return found


def conflicts(wanted: PodClass, conflict: Callable[[Volume, Volume], bool], other: PodClass) -> int:
    """How often disks of one pod are in conflict with those of another, counted the same way."""
    return sum(
        conflict(disk.volume, taken.volume)
        for disk in _disks(wanted)
        for name in disk.names
        for taken in _disks(other)
        if name in taken.names
    )
