"""The stages between a decision and the binding: waiting for permit rules, PreBind, volumes.

A pod that a permit rule lets wait keeps its node and its reservations meanwhile. What reserve rules
have set aside is carried out before the pod is bound: the rule's own step, and the annotation of
the pod that keeps the reservation. Then its volumes are bound, which may take minutes.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from podium.cluster.claims import ClaimWriteError
from podium.engine.rows.rows import OneRow
from podium.engine.state.reservation import PreBindSteps
from podium.kube.api import of_uid
from podium.kube.errors import ApiError
from podium.scheduler.placing.device_claims import DeviceClaims
from podium.scheduler.placing.tasks import Stage, StageError, StageTasks, error_of

if TYPE_CHECKING:
    import random
    from collections.abc import Awaitable, Callable

    from podium.engine.framework.decision import ClaimRelease
    from podium.engine.framework.rule import Permission, PermitRule
    from podium.engine.state.reservation import DevicePlan
    from podium.kube.api import KubeApi
    from podium.objects.kinds.pod import Pod
    from podium.scheduler.placing.volumes import VolumeBinder
    from podium.scheduler.state.clock import Clocks
    from podium.scheduler.state.cluster_state import ClusterState
    from podium.scheduler.state.observers import AttemptResult


class PreBind:
    """Runs the stages before the binding, one task per pod that needs any of them."""

    def __init__(
        self,
        state: ClusterState,
        client: KubeApi,
        clocks: Clocks,
        volumes: VolumeBinder,
        *,
        rng: random.Random,
        poll_seconds: float = 1.0,
        nominate: Callable[[Pod, str], Awaitable[None]] | None = None,
    ) -> None:
        """*nominate* tells others the node of a pod that waits here."""
        self._nominate = nominate
        self._state = state
        self._client, self._volumes = client, volumes
        self.claims = DeviceClaims(state, client, clocks, rng)
        self._clocks = clocks
        self._poll_seconds = poll_seconds
        self._tasks = StageTasks()

    def __len__(self) -> int:
        """The number of pods in these stages."""
        return len(self._tasks)

    def start(self, result: AttemptResult, done: Callable[[str, Stage], None]) -> None:
        """Run the stages for a pod; *done* is called with the error, "" for none, and its stage."""
        self._tasks.begin(self._run(result, done))

    def undo(self, result: AttemptResult) -> None:
        """Take back what was written for a pod that is not bound after all."""
        plan = result.decision.devices
        if plan is not None:
            self._tasks.begin(self.claims.unreserve(result.pod, plan))

    def release(self, pod: Pod, release: ClaimRelease) -> None:
        """Give back a claim of a pod that fits nowhere."""
        self._tasks.begin(self.claims.release(pod, release))

    async def cancel(self) -> None:
        """Cancel all tasks; the pods are not bound."""
        await self._tasks.cancel()

    def is_needed(self, result: AttemptResult) -> bool:
        """Whether a permit rule lets the pod wait, or something reserved is to be carried out."""
        waits, reservations = result.decision.waits, result.decision.reservations
        if waits or not reservations:
            return bool(waits)
        reserved = reservations.values()
        return any(each.has_pre_bind or each.volumes is not None for each in reserved)

    async def _run(self, result: AttemptResult, done: Callable[[str, Stage], None]) -> None:
        pod, node, volumes = result.pod, result.decision.node, result.decision.volumes
        assert node is not None
        stage = Stage.PRE_BIND
        error = await error_of(f"before binding pod {pod.key}", self._pre_bind(result))
        if not error and volumes is not None:
            stage, binding = Stage.VOLUMES, self._volumes.bind(pod, node, volumes)
            error = await error_of(f"binding the volumes of pod {pod.key}", binding)
        done(error, stage)

    async def _pre_bind(self, result: AttemptResult) -> None:
        if self._nominate is not None and result.decision.node is not None:
            await self._nominate(result.pod, result.decision.node)
        await self._wait(result)
        await self._carry_out(result)

    async def _wait(self, result: AttemptResult) -> None:
        """Wait until every permit rule allows the binding, or one rejects it, or time is up."""
        rules = {rule.name: rule for rule in result.profile.permits}
        for name, first in result.decision.waits:
            deadline = self._clocks.steady() + first.wait_seconds
            permission = first
            while not permission.allowed:
                if permission.wait_seconds <= 0:
                    raise StageError(f"rejected by {name}: {permission.reason}")
                if self._clocks.steady() >= deadline:
                    raise StageError(f"timed out waiting for {name}: {permission.reason}")
                await self._clocks.sleep(self._poll_seconds)
                permission = self._ask(rules[name], result)

    def _ask(self, rule: PermitRule, result: AttemptResult) -> Permission:
        columns = self._state.cache.columns
        row = columns.nodes.row_of.get(result.decision.node or "")
        if row is None or not self._state.cache.is_assumed(result.pod.uid):
            raise StageError("the pod was deleted or placed meanwhile")
        return rule.permit(columns.pods.incoming(result.pod), OneRow(columns, row))

    async def _carry_out(self, result: AttemptResult) -> None:
        pod, node = result.pod, result.decision.node
        assert node is not None
        steps = _Steps(pod, self._client, self.claims)
        for name, reserved in result.decision.reservations.items():
            if not reserved.has_pre_bind:
                continue
            try:
                await reserved.pre_bind(pod.key, node, steps)
            except (ClaimWriteError, ApiError) as error:
                raise StageError(f'running PreBind plugin "{name}": {error}') from error
            except Exception as error:
                what = f"{type(error).__name__}: {error}"
                raise StageError(f'running PreBind plugin "{name}": {what}') from error


class _Steps(PreBindSteps):
    """The steps of reservations for one pod."""

    def __init__(self, pod: Pod, client: KubeApi, claims: DeviceClaims) -> None:
        self._pod, self._client, self._claims = pod, client, claims

    async def annotate(self, key: str, value: object) -> None:
        text = msgspec.json.encode(value, enc_hook=str).decode()
        path = f"/api/v1/namespaces/{self._pod.namespace}/pods/{self._pod.name}"
        metadata = {**of_uid(self._pod.metadata.uid), "annotations": {key: text}}
        await self._client.patch(path, {"metadata": metadata})

    async def call(self, step: Callable[[], None]) -> None:
        await asyncio.to_thread(step)

    async def bind_claims(self, plan: DevicePlan) -> None:
        timeout = plan.binding_timeout_seconds
        await self._claims.bind(self._pod, plan, timeout_seconds=timeout)
