"""Which kinds are served, and where."""

from __future__ import annotations

import asyncio
import json

import pytest

from control_plane.harness import ADMIN, ControlPlane
from kube.reflecting import connected
from kube.scripted import answer, scripted
from podium.kube.discovery import Served, discover
from podium.kube.errors import ApiError
from podium.objects.kinds.registry import KINDS


def served_by(plane: ControlPlane) -> Served:
    async def run() -> Served:
        async with connected(plane.kubeconfig(ADMIN)) as client:
            return await discover(client)

    return asyncio.run(run())


def test_what_is_served(control_plane: ControlPlane) -> None:
    served = served_by(control_plane)
    budgets = "policy/v1" if control_plane.serves("policy/v1") else "policy/v1beta1"
    assert served.path("PodDisruptionBudget") == f"/apis/{budgets}/poddisruptionbudgets"
    assert served.path("Node") == "/api/v1/nodes"
    assert served.path("Pod", "team") == "/api/v1/namespaces/team/pods"
    assert served.path("CSINode") == "/apis/storage.k8s.io/v1/csinodes"
    assert served.version("PriorityClass") == "scheduling.k8s.io/v1"
    assert {"events.k8s.io/v1", "coordination.k8s.io/v1"} <= served.versions
    later = set()
    if not control_plane.serves("resource.k8s.io/v1"):
        later = {"ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ResourceSlice"}
        later.add("DeviceTaintRule")
    if budgets != "policy/v1":  # as old as that
        later.add("CSIStorageCapacity")
    groups = "scheduling.k8s.io/v1beta1"  # once of priority classes
    listed = control_plane.get(f"/apis/{groups}") if control_plane.serves(groups) else {}
    if not any(each["kind"] == "PodGroup" for each in listed.get("resources", ())):
        later.add("PodGroup")
    assert KINDS.keys() - served.kinds.keys() == later


async def test_every_path_can_be_listed(control_plane: ControlPlane) -> None:
    served = await asyncio.to_thread(served_by, control_plane)

    async with connected(control_plane.kubeconfig(ADMIN)) as client:
        for kind in served.kinds:
            path = served.path(kind)
            assert path is not None
            assert (await client.get(path))["kind"] == f"{kind}List"


def group(*versions: str) -> dict[str, object]:
    return {"versions": [{"groupVersion": version} for version in versions]}


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        (["policy/v1", "policy/v1beta1"], "/apis/policy/v1/poddisruptionbudgets"),
        (["policy/v1beta1"], "/apis/policy/v1beta1/poddisruptionbudgets"),
        (["policy/v2"], None),
    ],
)
async def test_the_best_version_that_both_know(listed: list[str], expected: str | None) -> None:
    kind = {"name": "poddisruptionbudgets", "kind": "PodDisruptionBudget"}
    verbs = {"verbs": ["list", "watch"]}
    status = {"name": "poddisruptionbudgets/status", "kind": "PodDisruptionBudget", **verbs}
    texts = {"/apis": {"groups": [group(*listed)]}, "/api/v1": {"resources": []}} | {
        f"/apis/{version}": {"resources": [status, {**kind, **verbs}]} for version in listed
    }

    async def reply(_: str, target: str, __: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(json.dumps(texts[target]).encode()))

    async with scripted(reply) as (client, script):
        served = await discover(client)
        assert served.path("PodDisruptionBudget") == expected
        assert served.path("Pod") is None
        assert ("GET", "/apis/policy/v2") not in script.asked


async def test_a_group_that_is_gone_is_not_served_and_one_that_fails_is_an_error() -> None:
    statuses = {"/apis/apps/v1": "404 Not Found"}

    async def reply(_: str, target: str, __: bytes, writer: asyncio.StreamWriter) -> None:
        groups = json.dumps({"groups": [group("apps/v1")]}).encode()
        text = groups if target == "/apis" else b'{"resources": null}'
        writer.write(answer(text, statuses.get(target, "200 OK")))

    async with scripted(reply) as (client, _):
        assert (await discover(client)).path("ReplicaSet") is None
        statuses["/apis/apps/v1"] = "503 Service Unavailable"
        with pytest.raises(ApiError):
            await discover(client)
