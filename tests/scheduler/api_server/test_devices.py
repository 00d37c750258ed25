"""Devices on a real API server that serves them: claims are allocated, reserved and released."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from control_plane.harness import ABSENT, PODS, ControlPlane
from manifests import device_claim, device_class, device_slice
from scheduler.api_server.conftest import Podium
from waiting import until

VERSION = "resource.k8s.io/v1"
ROOT = f"/apis/{VERSION}"
CLAIMS = f"{ROOT}/namespaces/default/resourceclaims"


@pytest.fixture
def devices(plane: ControlPlane) -> Iterator[ControlPlane]:
    """A node with two devices, and a class for them."""
    if not plane.serves(VERSION):
        pytest.skip(f"{ABSENT} {VERSION}")
    plane.add_node("n1", {})
    gpus = device_class(expression='device.driver == "gpu.example.com"')
    plane.post(f"{ROOT}/deviceclasses", gpus)
    plane.post(f"{ROOT}/resourceslices", device_slice("n1", [{"name": "gpu-0"}, {"name": "gpu-1"}]))
    yield plane
    for path in (f"{ROOT}/deviceclasses/gpu", f"{ROOT}/resourceslices/n1-devices"):
        plane.call("DELETE", path)
    for name in ("one", "two", "three"):
        path = f"{CLAIMS}/{name}"
        plane.call("PATCH", path, {"metadata": {"finalizers": None}}, "merge-patch+json")
        plane.call("DELETE", path)


def test_each_claim_gets_a_device_of_its_own(devices: ControlPlane, podium: Podium) -> None:
    for name in ("one", "two", "three"):
        devices.post(CLAIMS, device_claim(name))
        named = [{"name": "gpu", "resourceClaimName": name}]
        devices.add_pod(f"uses-{name}", "podium", resourceClaims=named)

    def bound() -> set[str]:
        items = devices.get(PODS)["items"]
        return {each["metadata"]["name"] for each in items if each["spec"].get("nodeName")}

    with podium():
        until("two pods are bound", lambda: len(bound()) == 2)
        [left] = {"uses-one", "uses-two", "uses-three"} - bound()
        until("it is said", lambda: any("FailedScheduling" in e for e in devices.events_of(left)))
        statuses = [each.get("status") or {} for each in devices.get(CLAIMS)["items"]]

    allocated = [each["allocation"]["devices"]["results"][0]["device"] for each in statuses if each]
    assert sorted(allocated) == ["gpu-0", "gpu-1"]
    reserved = {each["reservedFor"][0]["name"] for each in statuses if each}
    assert reserved == bound()
