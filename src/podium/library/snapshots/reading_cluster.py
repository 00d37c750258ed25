"""The objects of a live cluster, read once, for commands without FILES."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from podium.library.reading import read
from podium.library.snapshots.writing import write_snapshot

if TYPE_CHECKING:
    from podium.kube.access import Access
    from podium.objects.reading.collection import Objects


def read_cluster(access: Access) -> Objects:
    """Everything that scheduling reads of a cluster, as a snapshot of it would hold it."""
    with tempfile.TemporaryDirectory(prefix="podium-") as folder:
        file = Path(folder, "cluster.json")
        write_snapshot(access, str(file), {})
        return read([str(file)])
