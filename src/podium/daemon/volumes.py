"""Binding the claims of a pod before the pod itself.

A decision may come with a plan: which volume a waiting claim gets, and for which claims one is to
be made on the chosen node. The plan is written into volumes and claims; the volume controller does
the rest, and the pod is bound when all its claims are.

Upstream: plugins/volumebinding/binder.go, Kubernetes v1.36.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Protocol

from podium.engine.rows.many import OneRow
from podium.engine.rules.volumes.binding.shared import BIND_COMPLETED, SELECTED_NODE
from podium.engine.rules.volumes.binding.v1_13 import reaches
from podium.kube.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from podium.daemon.cluster_state import Beliefs
    from podium.daemon.observers import Attempted
    from podium.daemon.pod_status import StatusWriter
    from podium.engine.rules.volumes.binding.shared import VolumePlan
    from podium.objects.kinds.pod import Pod
    from podium.objects.kinds.storage import PersistentVolume, PersistentVolumeClaim

logger = logging.getLogger(__name__)

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
#: How long claims may take to be bound, and how often that is looked at.
TIMEOUT_SECONDS = 600.0
POLL_SECONDS = 0.25


class PatchingClient(Protocol):
    """What is needed of a client here."""

    async def patch(self, path: str, patch: Any) -> Any:
        """Change part of an object."""


class VolumesError(Exception):
    """The claims cannot be bound as planned."""


class VolumeBinder:
    """Carries plans out, one task per pod."""

    def __init__(
        self,
        beliefs: Beliefs,
        client: PatchingClient,
        writer: StatusWriter,
        *,
        announces: bool,
        timeout_seconds: float = TIMEOUT_SECONDS,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        """*announces*: the pod is nominated to its node while it waits for its volumes."""
        self._beliefs = beliefs
        self._client = client
        self._writer = writer
        self._announces = announces
        self._timeout_seconds = timeout_seconds
        self._poll_seconds = poll_seconds
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """How many pods wait for their volumes."""
        return len(self._tasks)

    def start(self, attempted: Attempted, done: Callable[[str], None]) -> None:
        """Bind the claims; *done* is told why it did not work, or nothing when it did."""
        task = asyncio.get_running_loop().create_task(self._run(attempted, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def dismiss(self) -> None:
        """Give up on all of them; whoever comes next finds the claims as they are."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, attempted: Attempted, done: Callable[[str], None]) -> None:
        decision = attempted.decision
        assert decision.node is not None
        assert decision.volumes is not None
        try:
            if self._announces:
                await self._announce(attempted.pod, decision.node)
            await self._bind(attempted.pod, decision.node, decision.volumes)
        except (VolumesError, ApiError) as error:
            done(str(error))
        else:
            done("")

    async def _announce(self, pod: Pod, node: str) -> None:
        try:
            await self._writer.nominate(pod, node)
        except ApiError as error:  # not worth giving up for
            logger.warning("pod %s: %s", pod.key, error)

    async def _bind(self, pod: Pod, node: str, plan: VolumePlan) -> None:
        versions: dict[str, int] = {}
        for claim, volume in self._bindings(pod, plan):
            versions[volume.name] = await self._give(volume, claim)
        for name in plan.provision:
            claim = self._claim(pod, name)
            versions[claim.key] = await self._select(claim, node)
        try:
            async with asyncio.timeout(self._timeout_seconds):
                while not self._is_bound(pod, node, plan, versions):  # noqa: ASYNC110  as upstream
                    await asyncio.sleep(self._poll_seconds)
        except TimeoutError:
            raise VolumesError("binding volumes: context deadline exceeded") from None

    def _bindings(
        self, pod: Pod, plan: VolumePlan
    ) -> Iterator[tuple[PersistentVolumeClaim, PersistentVolume]]:
        for name, volume in plan.bind.items():
            yield self._claim(pod, name), self._volume(volume)

    def _claim(self, pod: Pod, name: str) -> PersistentVolumeClaim:
        found = self._beliefs.cache.columns.catalog.claims.get(name, pod.namespace)
        if found is None:
            key = f"{pod.namespace}/{name}"
            raise VolumesError(f'persistentvolumeclaim "{key}" not found')
        return found

    def _volume(self, name: str) -> PersistentVolume:
        found = self._beliefs.cache.columns.catalog.volumes.get(name)
        if found is None:
            raise VolumesError(f'persistentvolume "{name}" not found')
        return found

    async def _give(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> int:
        """Write the claim into the volume; the version that says so."""
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

    async def _select(self, claim: PersistentVolumeClaim, node: str) -> int:
        """Ask for a volume that the node can reach; the version of the claim that says so."""
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
        """Whether all claims are bound; raises when they never will be."""
        row = self._beliefs.cache.columns.row_of.get(node)
        if row is None or self._beliefs.node(node) is None:
            raise VolumesError(f'binding volumes: failed to get node "{node}"')
        if self._beliefs.pod(pod) is None:
            raise VolumesError("binding volumes: pod does not exist any more")
        at = OneRow(self._beliefs.cache.columns, row)
        for claim, volume in self._bindings(pod, plan):
            if _is_older(volume, versions[volume.name]):
                return False
            if not reaches(volume, at):
                raise _unreachable(volume, node)
            if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
                raise VolumesError(f'binding volumes: ClaimRef got reset for pv "{volume.name}"')
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
        if (claim.metadata.annotations or {}).get(SELECTED_NODE) != node:
            # That is how a provisioner tells that it failed.
            raise VolumesError(f'binding volumes: provisioning failed for PVC "{claim.name}"')
        if claim.spec.volume_name:
            catalog = self._beliefs.cache.columns.catalog
            volume = catalog.volumes.get(claim.spec.volume_name)
            if volume is None:
                return False  # not seen yet
            if not reaches(volume, at):
                raise _unreachable(volume, node)
        return _is_fully_bound(claim)


def _is_older(item: PersistentVolume | PersistentVolumeClaim, version: int) -> bool:
    return int(item.metadata.resource_version or 0) < version


def _is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BIND_COMPLETED in (claim.metadata.annotations or {})


def _unreachable(volume: PersistentVolume, node: str) -> VolumesError:
    return VolumesError(
        f'binding volumes: pv "{volume.name}" node affinity doesn\'t match node "{node}"'
    )
