"""Storage classes and errors, as the volume rules of both generations use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from podium.engine.rows.rows import Flags, K, ManyRows, OneRow, Rows
from podium.engine.state.catalog import CLASS_ANNOTATION
from podium.engine.state.view import KeptInView

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.objects.kinds.storage import CsiNode, PersistentVolume, PersistentVolumeClaim

#: The rows whose CSINode has a property.
_BY_DRIVER: KeptInView[np.ndarray] = KeptInView()


class VolumeError(Exception):
    """The claims of a pod cannot be judged; the text says why."""


def class_name(item: PersistentVolume | PersistentVolumeClaim) -> str:
    """The storage class of a claim or volume; the beta annotation takes precedence."""
    annotations = item.metadata.annotations or {}
    if CLASS_ANNOTATION in annotations:
        return annotations[CLASS_ANNOTATION]
    return item.spec.storage_class_name or ""


def told_by_drivers(at: Rows[K], key: str, has: Callable[[CsiNode], bool]) -> Flags[K]:
    """Rows whose CSINode has a property; rows without a CSINode do not have it.

    *key* names the property: the rows are found once, and again when a CSINode or the rows change.
    """
    view = at.view

    def find() -> np.ndarray:
        flags = np.zeros(view.nodes.capacity, np.int64)
        named = (view.nodes.row_of.get(n.name) for n in view.catalog.csi_nodes if has(n))
        flags[[row for row in named if row is not None]] = 1
        return flags

    def many(rows: ManyRows) -> np.ndarray:
        now = (view.catalog.csi_nodes.version, view.journal.epoch)
        found: np.ndarray = _BY_DRIVER.of(view, key, find, now)[rows.index]
        return found

    def one(row: OneRow) -> int:
        node = view.catalog.csi_nodes.get(row.name)
        return int(node is not None and has(node))

    return at.either(many, one) == 1
