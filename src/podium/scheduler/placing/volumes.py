"""Binding the claims of a pod before the pod itself.

A decision may have a plan for volumes: which PersistentVolume each waiting claim gets, and which
claims are to be provisioned for the chosen node. The plan is written into volumes and claims, the
volume controller of the cluster carries it out, and the pod is bound once all its claims are.

Upstream: plugins/volumebinding/binder.go, Kubernetes v1.36.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from podium.engine.rows.rows import OneRow, as_int
from podium.engine.rules.volumes.binding import (
    BIND_COMPLETED,
    SELECTED_NODE,
    reaches_without_fields,
)
from podium.scheduler.placing.tasks import StageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from podium.engine.state.reservation import VolumePlan
    from podium.kube.api import KubeApi
    from podium.objects.kinds.pod import Pod
    from podium.objects.kinds.storage import PersistentVolume, PersistentVolumeClaim
    from podium.scheduler.state.cluster_state import ClusterState

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


class VolumeBinder:
    """Carries out volume plans."""

    def __init__(
        self,
        state: ClusterState,
        client: KubeApi,
        *,
        timeout_seconds: float,
        poll_seconds: float,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        """Wait *timeout_seconds* for the claims of a pod, and look every *poll_seconds*."""
        self._state = state
        self._client = client
        self._timeout_seconds = timeout_seconds
        self._poll_seconds = poll_seconds
        self._sleep = sleep

    async def bind(self, pod: Pod, node: str, plan: VolumePlan) -> None:
        """Write the plan, and wait until all claims are bound.

        If this is cancelled, the claims stay as they are, for the next scheduler to continue.
        """
        versions: dict[str, int] = {}
        for claim, volume in self._bindings(pod, plan):
            versions[volume.name] = await self._write_claim_ref(volume, claim)
        for name in plan.provision:
            claim = self._claim(pod, name)
            versions[claim.key] = await self._write_selected_node(claim, node)
        try:
            async with asyncio.timeout(self._timeout_seconds):
                while not self._is_bound(pod, node, plan, versions):
                    await self._sleep(self._poll_seconds)
        except TimeoutError:
            raise StageError("binding volumes: context deadline exceeded") from None

    def _bindings(
        self, pod: Pod, plan: VolumePlan
    ) -> Iterator[tuple[PersistentVolumeClaim, PersistentVolume]]:
        for name, volume in plan.bind.items():
            yield self._claim(pod, name), self._volume(volume)

    def _claim(self, pod: Pod, name: str) -> PersistentVolumeClaim:
        found = self._state.cache.columns.catalog.claims.get(name, pod.namespace)
        if found is None:
            key = f"{pod.namespace}/{name}"
            raise StageError(f'persistentvolumeclaim "{key}" not found')
        return found

    def _volume(self, name: str) -> PersistentVolume:
        found = self._state.cache.columns.catalog.volumes.get(name)
        if found is None:
            raise StageError(f'persistentvolume "{name}" not found')
        return found

    async def _write_claim_ref(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> int:
        """Write the claim into the volume; the resourceVersion afterwards."""
        about = {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": claim.namespace,
            "name": claim.name,
            "uid": claim.metadata.uid,
            "resourceVersion": claim.metadata.resource_version,
        }
        metadata: dict[str, Any] = {"resourceVersion": volume.metadata.resource_version}
        if volume.spec.claim_ref is None:
            metadata["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
        path = f"/api/v1/persistentvolumes/{volume.name}"
        return await self._patch(path, {"metadata": metadata, "spec": {"claimRef": about}})

    async def _write_selected_node(self, claim: PersistentVolumeClaim, node: str) -> int:
        """Ask the provisioner for a volume on the node; the claim's resourceVersion afterwards."""
        metadata = {
            "resourceVersion": claim.metadata.resource_version,
            "annotations": {SELECTED_NODE: node},
        }
        path = f"/api/v1/namespaces/{claim.namespace}/persistentvolumeclaims/{claim.name}"
        return await self._patch(path, {"metadata": metadata})

    async def _patch(self, path: str, patch: dict[str, Any]) -> int:
        answer = await self._client.patch(path, patch)
        return int(answer["metadata"]["resourceVersion"])

    def _is_bound(self, pod: Pod, node: str, plan: VolumePlan, versions: dict[str, int]) -> bool:
        """Whether all claims are bound; `StageError` when they can no longer be."""
        row = self._state.cache.columns.nodes.row_of.get(node)
        if row is None or self._state.node(node) is None:
            raise StageError(f'binding volumes: failed to get node "{node}"')
        if self._state.pod(pod) is None:
            raise StageError("binding volumes: pod does not exist any more")
        at = OneRow(self._state.cache.columns, row)
        for claim, volume in self._bindings(pod, plan):
            if _is_older(volume, versions[volume.name]):
                return False
            if not as_int(reaches_without_fields(volume, at)):
                raise _unreachable(volume, node)
            if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
                raise StageError(f'binding volumes: ClaimRef got reset for pv "{volume.name}"')
            if not _is_fully_bound(claim):
                return False
        return all(
            self._is_provisioned(self._claim(pod, name), node, at, versions)
            for name in plan.provision
        )

    def _is_provisioned(
        self, claim: PersistentVolumeClaim, node: str, at: OneRow, versions: dict[str, int]
    ) -> bool:
        if _is_older(claim, versions[claim.key]):
            return False
        if not claim.metadata.annotations:
            what = f'selectedNode annotation reset for PVC "{claim.name}"'
            raise StageError(f"binding volumes: {what}")
        if claim.metadata.annotations.get(SELECTED_NODE) != node:
            # A provisioner that failed removes or changes the annotation.
            raise StageError(f'binding volumes: provisioning failed for PVC "{claim.name}"')
        if claim.spec.volume_name:
            catalog = self._state.cache.columns.catalog
            volume = catalog.volumes.get(claim.spec.volume_name)
            if volume is None:
                return False  # its informer has not reported it yet
            if not as_int(reaches_without_fields(volume, at)):
                raise _unreachable(volume, node)
        return _is_fully_bound(claim)


def _is_older(item: PersistentVolume | PersistentVolumeClaim, version: int) -> bool:
    return int(item.metadata.resource_version or 0) < version


def _is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BIND_COMPLETED in (claim.metadata.annotations or {})


def _unreachable(volume: PersistentVolume, node: str) -> StageError:
    return StageError(
        f'binding volumes: pv "{volume.name}" node affinity doesn\'t match node "{node}"'
    )
