"""Writing the resource claims of a pod: order, conflicts, waiting, and the undo."""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from builders import node, pod
from podium.cluster.claims import ClaimWriteError
from podium.engine.framework.decision import ClaimRelease
from podium.engine.rules.devices.extended_resources import special_claim
from podium.engine.state.devices import DeviceId
from podium.engine.state.reservation import ClaimPlan, DevicePlan
from podium.kube.api import MERGE_PATCH
from podium.kube.errors import ApiError, UnreachableError
from podium.objects.kinds.devices import (
    CLAIM_FINALIZER,
    AllocatedDevice,
    Allocation,
    DeviceAllocation,
    ResourceClaim,
)
from podium.objects.kinds.pod import ContainerExtendedResource
from podium.scheduler.placing.device_claims import DeviceClaims
from podium.scheduler.state.clock import Clocks
from scheduler.fakes import Cluster, NoServer, refused

BASE = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
POD = pod("p", uid="u")


class ClaimServer(NoServer):
    """An API server with claims alone: merge patches, versions, conflicts, finalizers."""

    def __init__(self, *names: str) -> None:
        self.version = 0
        self.claims: dict[str, dict[str, Any]] = {}
        self.pods: list[dict[str, Any]] = []
        self.log: list[str] = []
        #: Called before each patch, to change a claim meanwhile.
        self.meanwhile: list[Any] = []
        for name in names:
            self._store(
                name,
                {
                    "kind": "ResourceClaim",
                    "metadata": {"name": name, "namespace": "default", "uid": name},
                },
            )

    def _store(self, name: str, claim: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        claim["metadata"]["resourceVersion"] = str(self.version)
        self.claims[name] = claim
        return copy.deepcopy(claim)

    def claim(self, name: str) -> ResourceClaim:
        return msgspec.convert(self.claims[name], ResourceClaim)

    def touch(self, name: str, **status: Any) -> None:
        """Another client writes the claim."""
        claim = copy.deepcopy(self.claims[name])
        claim["status"] = {**claim.get("status", {}), **status}
        self._store(name, claim)

    async def get(self, path: str, params: Any = None) -> Any:
        name = path.removeprefix(f"{BASE}/")
        if name not in self.claims:
            raise refused(404)
        return copy.deepcopy(self.claims[name])

    async def create(self, path: str, obj: Mapping[str, Any]) -> Any:
        assert path == BASE
        name = f"{obj['metadata']['generateName']}abcde"
        self.log.append(f"create {name}")
        about = {**obj["metadata"], "name": name, "namespace": "default", "uid": name}
        return self._store(name, {**obj, "metadata": about})

    async def patch(self, path: str, patch: Any, content_type: str = MERGE_PATCH) -> Any:
        if "/pods/" in path:
            self.pods.append(patch)
            return {}
        if self.meanwhile:
            self.meanwhile.pop(0)()
        name, _, part = path.removeprefix(f"{BASE}/").partition("/")
        claim = copy.deepcopy(self.claims[name])
        if patch["metadata"]["resourceVersion"] != claim["metadata"]["resourceVersion"]:
            raise refused(409)
        if part == "status":
            self.log.append(f"status {name}")
            status = {**claim.get("status", {}), **patch["status"]}
            claim["status"] = {key: value for key, value in status.items() if value is not None}
        else:
            self.log.append(f"patch {name}")
            claim["metadata"]["finalizers"] = patch["metadata"]["finalizers"] or []
        return self._store(name, claim)

    async def delete(self, path: str, options: Mapping[str, Any] | None = None) -> Any:
        name = path.removeprefix(f"{BASE}/")
        assert options == {"preconditions": {"uid": name}}
        assert not self.claims[name]["metadata"].get("finalizers")
        self.log.append(f"delete {name}")
        del self.claims[name]


def allocation(*, conditions: list[str] | None = None) -> Allocation:
    device = AllocatedDevice("r", "gpu.example.com", "n1", "gpu-0", binding_conditions=conditions)
    return Allocation(DeviceAllocation([device]))


class World:
    """A scheduler's writer of claims, and the API server it writes to."""

    def __init__(self, *names: str) -> None:
        self.server = ClaimServer(*names)
        self.cluster = Cluster(node("n1"))
        time = self.cluster.time
        self.claims = DeviceClaims(
            self.cluster.state,
            self.server,
            Clocks(time, time, time, time.sleep),
            random.Random(0),  # noqa: S311
        )

    def plan(self, name: str, *, conditions: list[str] | None = None) -> DevicePlan:
        return DevicePlan((ClaimPlan(self.server.claim(name), allocation(conditions=conditions)),))

    def bind(self, plan: DevicePlan) -> None:
        asyncio.run(self.claims.bind(POD, plan, timeout_seconds=600.0))


def test_finalizer_then_allocation_and_reservation() -> None:
    world = World("c")

    world.bind(world.plan("c"))

    claim = world.server.claim("c")
    assert world.server.log == ["patch c", "status c"]
    assert claim.metadata.finalizers == [CLAIM_FINALIZER]
    assert [each.uid for each in claim.status.reserved_for or ()] == ["u"]
    assert claim.status.allocation is not None
    assert claim.status.allocation.allocation_timestamp is not None


def test_after_a_conflict_the_claim_is_read_and_checked_again() -> None:
    world = World("c")
    world.server.meanwhile = [lambda: world.server.touch("c", reservedFor=[{"uid": "other"}])]

    world.bind(world.plan("c"))

    consumers = world.server.claim("c").status.reserved_for or ()
    assert [each.uid for each in consumers] == ["other", "u"]


def test_a_claim_that_was_allocated_meanwhile_is_an_error() -> None:
    world = World("c")
    elsewhere = msgspec.to_builtins(allocation())
    world.server.meanwhile = [lambda: world.server.touch("c", allocation=elsewhere)]

    with pytest.raises(ClaimWriteError, match="default/c got allocated elsewhere in the meantime"):
        world.bind(world.plan("c"))

    assert not world.server.claim("c").status.reserved_for


def test_a_pod_that_is_not_bound_leaves_the_allocation_and_no_reservation() -> None:
    world = World("c")
    plan = world.plan("c")
    world.bind(plan)

    asyncio.run(world.claims.unreserve(POD, plan))

    claim = world.server.claim("c")
    assert claim.status.allocation is not None
    assert not claim.status.reserved_for


def test_a_reservation_that_was_taken_back_is_not_found_by_the_next_attempt() -> None:
    """The watch has reported the reservation, and is silent from then on."""
    world = World("c")
    plan = world.plan("c")
    world.bind(plan)
    world.cluster.put(world.server.claim("c"))
    known = world.cluster.state.cache.columns.catalog.resource_claims
    reserved = known.get("c", "default")
    assert reserved is not None
    assert reserved.is_reserved_for(POD.uid)

    asyncio.run(world.claims.unreserve(POD, plan))

    claim = known.get("c", "default")
    assert claim is not None
    assert not claim.is_reserved_for(POD.uid)


def test_devices_stay_taken_while_a_watch_reports_earlier_versions() -> None:
    """The undo has read the allocation; the watch reports first that the finalizer was added."""
    world = World("c")
    known = world.cluster.state.cache.columns.catalog.resource_claims
    new = world.server.claim("c")
    world.cluster.put(new)
    plan = world.plan("c")
    world.bind(plan)
    asyncio.run(world.claims.unreserve(POD, plan))

    about = msgspec.structs.replace(new.metadata, resource_version="2")
    world.cluster.put(msgspec.structs.replace(new, metadata=about))
    claim = known.get("c", "default")
    assert claim is not None
    assert claim.status.allocation is not None

    world.cluster.put(world.server.claim("c"))
    world.server.touch("c", allocation=None)
    world.cluster.put(world.server.claim("c"))
    claim = known.get("c", "default")
    assert claim is not None
    assert claim.status.allocation is None


def test_a_claim_is_made_for_extended_resources_and_deleted_with_the_undo() -> None:
    world = World()
    mapping = ContainerExtendedResource("main", "example.com/gpu", "container-0-request-0")
    plan = DevicePlan((ClaimPlan(special_claim(POD), allocation(), special=True),), (mapping,))
    name = "p-extended-resources-abcde"

    world.bind(plan)
    assert world.server.log == [f"create {name}", f"patch {name}", f"status {name}"]
    [written] = world.server.pods
    assert written["metadata"] == {"uid": POD.uid}, "no other pod of that name gets it"
    assert written["status"]["extendedResourceClaimStatus"]["resourceClaimName"] == name

    empty = DevicePlan(plan.claims)
    with pytest.raises(ClaimWriteError, match="nil or empty request mappings"):
        world.bind(empty)
    asyncio.run(world.claims.unreserve(POD, empty))
    assert world.server.log[-2:] == [f"patch {name}", f"delete {name}"]


async def test_binding_conditions_are_waited_for() -> None:
    world = World("c")
    plan = world.plan("c", conditions=["Attached"])

    task = asyncio.create_task(world.claims.bind(POD, plan, timeout_seconds=600.0))
    while not world.cluster.time.slept:  # noqa: ASYNC110
        await asyncio.sleep(0)
    ready = {
        "driver": "gpu.example.com",
        "pool": "n1",
        "device": "gpu-0",
        "conditions": [{"type": "Attached", "status": "True"}],
    }
    world.server.touch("c", devices=[ready])
    world.cluster.put(world.server.claim("c"))
    await task

    assert world.cluster.time.slept


def test_a_claim_that_keeps_a_pod_from_its_nodes_is_given_back() -> None:
    world = World("c")
    world.bind(world.plan("c"))
    world.cluster.put(world.server.claim("c"))

    asyncio.run(world.claims.release(POD, ClaimRelease("default/c", "c")))

    claim = world.server.claim("c")
    assert (claim.status.allocation, claim.status.reserved_for) == (None, None)
    assert claim.metadata.finalizers == [CLAIM_FINALIZER]


def test_devices_count_from_the_decision_until_the_claim_says_so() -> None:
    world = World("c")
    plan = world.plan("c")
    cache = world.cluster.state.cache
    claims, device = (
        cache.columns.catalog.resource_claims,
        DeviceId("gpu.example.com", "n1", "gpu-0"),
    )

    cache.assume(POD, "n1", {"DynamicResources": plan})
    assert claims.is_taken(device)
    world.bind(plan)
    cache.forget(POD)
    assert claims.is_taken(device), "written, and not reported yet"
    claims.put(world.server.claim("c"))

    assert claims.is_taken(device)
    assert not claims.in_flight


def test_devices_of_a_pod_that_was_given_up_are_free() -> None:
    world = World("c")
    cache = world.cluster.state.cache

    cache.assume(POD, "n1", {"DynamicResources": world.plan("c")})
    cache.forget(POD)

    claims = cache.columns.catalog.resource_claims
    assert not claims.is_taken(DeviceId("gpu.example.com", "n1", "gpu-0"))


class DeafServer(ClaimServer):
    """Loses the answer to the first write of a status, and does not answer for a while."""

    def __init__(self, *names: str, carried_out: bool) -> None:
        super().__init__(*names)
        self._carried_out = carried_out
        self._silent = 0

    async def get(self, path: str, params: Any = None) -> Any:
        if self._silent:
            self._silent -= 1
            raise UnreachableError("connection refused")
        return await super().get(path)

    async def patch(self, path: str, patch: Any, content_type: str = MERGE_PATCH) -> Any:
        if path.endswith("/status") and "status c" not in self.log:
            self._silent = 3
            if self._carried_out:
                await super().patch(path, patch)
            else:
                self.log.append("status c")
            raise UnreachableError("the connection was closed")
        return await super().patch(path, patch)


@pytest.mark.parametrize("carried_out", [True, False])
def test_a_claim_is_written_once_although_the_answer_got_lost(carried_out: bool) -> None:
    world = World("c")
    plan = world.plan("c")
    world.server = DeafServer("c", carried_out=carried_out)
    time = world.cluster.time
    clocks = Clocks(time, time, time, time.sleep)
    rng = random.Random(0)  # noqa: S311
    world.claims = DeviceClaims(world.cluster.state, world.server, clocks, rng)
    claims = world.cluster.state.cache.columns.catalog.resource_claims
    world.cluster.state.cache.assume(POD, "n1", {"DynamicResources": plan})

    world.bind(plan)

    written = world.server.claim("c").status
    assert written.allocation is not None
    assert [each.uid for each in written.reserved_for or ()] == ["u"]
    assert world.server.log.count("status c") == (1 if carried_out else 2)
    assert len(time.slept) == 3
    world.cluster.state.cache.forget(POD)
    assert claims.is_taken(DeviceId("gpu.example.com", "n1", "gpu-0")), "no watch has reported it"


def test_a_claim_that_is_gone_when_it_is_asked_for_again_is_an_error() -> None:
    world = World("c")
    plan = world.plan("c")

    def delete() -> None:
        del world.server.claims["c"]
        raise UnreachableError("the connection was closed")

    world.server.meanwhile = [delete]

    with pytest.raises(ApiError) as told:
        world.bind(plan)

    assert told.value.status == 404


def test_a_refusal_after_a_lost_answer_is_told_as_it_is() -> None:
    world = World("c")
    plan = world.plan("c")

    def lose() -> None:
        raise UnreachableError("the connection was closed")

    def refuse() -> None:
        raise refused(403, "no rights to write it")

    world.server.meanwhile = [lose, refuse]

    with pytest.raises(ApiError, match="no rights to write it"):
        world.bind(plan)

    assert world.server.claim("c").status.allocation is None
