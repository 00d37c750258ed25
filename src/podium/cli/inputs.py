"""The files that a command reads."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from podium.library.parallel import processors
from podium.library.reading import read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.objects.reading.collection import Objects
    from podium.planning.inputs import ClusterDocuments


def read_files(files: Sequence[str]) -> Objects:
    """The objects in the files, kept until the command ends.

    The garbage collector need not look at them again; a large cluster is decided about faster so.
    """
    objects = read(files, workers=processors())
    gc.freeze()
    return objects


def read_live(kubeconfig: str | None, context: str | None, server: str | None) -> Objects:
    """The objects of the cluster that the flags name, as they are now."""
    from podium.kube.access import load_access  # noqa: PLC0415  brings the client
    from podium.library.snapshots.reading_cluster import read_cluster  # noqa: PLC0415

    objects = read_cluster(load_access(kubeconfig, context, server))
    gc.freeze()
    return objects


def documents_in(files: Sequence[str]) -> ClusterDocuments:
    """The objects in the files with all their fields, for a plan."""
    from podium.planning.inputs import cluster_documents  # noqa: PLC0415  brings the lab

    return cluster_documents(files, workers=processors())


def live_cluster(reach: dict[str, str | None]) -> ClusterDocuments:
    """The objects of the cluster that the flags `kubeconfig`, `context` and `server` name."""
    from podium.kube.access import load_access  # noqa: PLC0415  brings the client
    from podium.planning.live import live_documents  # noqa: PLC0415

    return live_documents(load_access(reach["kubeconfig"], reach["context"], reach["server"]))
