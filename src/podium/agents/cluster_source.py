"""The cluster that questions are about: files that are read once, or a live cluster."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from podium.library.reading import read
from podium.library.snapshots.reading_cluster import read_cluster
from podium.what_if.plan.inputs import cluster_documents, live_documents

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from podium.kube.access import Access
    from podium.objects.reading.collection import Objects
    from podium.what_if.plan.inputs import ClusterDocuments

#: A live cluster is read again when the last answer is older.
FRESH_SECONDS: Final = 10.0


class FileCluster:
    """The cluster in some files."""

    def __init__(self, files: Sequence[str], *, workers: int = 1) -> None:
        self._files, self._workers = files, workers
        self._objects: Objects | None = None

    def objects(self) -> Objects:
        """What scheduling reads, parsed once."""
        if self._objects is None:
            self._objects = read(self._files, workers=self._workers)
        return self._objects

    def documents(self) -> ClusterDocuments:
        """The objects with all their fields; a plan changes them, so they are read each time."""
        return cluster_documents(self._files, workers=self._workers)


class LiveCluster:
    """The cluster behind an API server, as it is now."""

    def __init__(
        self,
        access: Access,
        *,
        fresh_seconds: float = FRESH_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._access, self._fresh_seconds, self._clock = access, fresh_seconds, clock
        self._objects: Objects | None = None
        self._read_at = 0.0

    def objects(self) -> Objects:
        """What scheduling reads, at most some seconds old."""
        now = self._clock()
        if self._objects is None or now - self._read_at > self._fresh_seconds:
            self._objects, self._read_at = read_cluster(self._access), now
        return self._objects

    def documents(self) -> ClusterDocuments:
        """The objects with all their fields."""
        return live_documents(self._access)
