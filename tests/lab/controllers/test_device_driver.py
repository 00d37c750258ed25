"""The driver publishes devices of nodes, and reports that allocated ones are ready."""

from __future__ import annotations

from typing import Any

from lab.controllers.managed_cluster import Json, ManagedCluster
from podium.lab.controllers.device_driver import DeviceSet
from podium.lab.controllers.manager import ControllerManager


def with_devices(lab: ManagedCluster, *devices: DeviceSet) -> None:
    """Controllers over the same objects, whose driver publishes *devices*."""
    lab.controllers.unsubscribe()
    lab.controllers = ControllerManager(
        lab.registry, lab.clock, devices=devices, warn=lab.warnings.append
    )
    lab.settle()


def slices(lab: ManagedCluster) -> dict[str, Json]:
    return {each["metadata"]["name"]: each for each in lab.registry.list("ResourceSlice")}


def test_every_node_gets_a_slice_that_it_owns(lab: ManagedCluster) -> None:
    capacity, attributes = {"memory": "80Gi"}, {"model": {"string": "h100"}}
    with_devices(lab, DeviceSet(2, "gpu.example.com", attributes=attributes, capacity=capacity))

    found = slices(lab)
    assert sorted(found) == [f"n{number}-gpu.example.com" for number in range(3)]
    first = found["n0-gpu.example.com"]
    assert first["metadata"]["ownerReferences"][0]["kind"] == "Node"
    assert first["spec"]["pool"] == {"name": "n0", "generation": 1, "resourceSliceCount": 1}
    assert first["spec"]["devices"][1] == {
        "name": "device-1",
        "attributes": {"model": {"string": "h100"}, "index": {"int": 1}},
        "capacity": {"memory": {"value": "80Gi"}},
    }
    made = lab.registry.get("DeviceClass", "gpu.example.com")
    expression = made["spec"]["selectors"][0]["cel"]["expression"]
    assert expression == "device.driver == 'gpu.example.com'"


def test_some_nodes_only_and_a_class_of_another_name(lab: ManagedCluster) -> None:
    lab.create("Node", {"metadata": {"name": "m0", "labels": {"accelerator": "l4"}}})
    with_devices(
        lab,
        DeviceSet(1, "first.example.com", nodes=2),
        DeviceSet(1, "l4.example.com", "l4", "example.com/l4", label=("accelerator", "l4")),
        DeviceSet(1, "any.example.com", label=("accelerator", "")),
    )

    assert sorted(slices(lab)) == [
        "m0-any.example.com",
        "m0-first.example.com",
        "m0-l4.example.com",
        "n0-first.example.com",
    ]
    assert lab.registry.get("DeviceClass", "l4")["spec"]["extendedResourceName"] == "example.com/l4"


def test_a_slice_follows_its_node_and_comes_back(lab: ManagedCluster) -> None:
    with_devices(lab, DeviceSet(1, "gpu.example.com"))
    lab.create("Node", {"metadata": {"name": "late"}})
    lab.settle()
    assert "late-gpu.example.com" in slices(lab)

    lab.registry.delete("ResourceSlice", "late-gpu.example.com")
    lab.settle()
    assert "late-gpu.example.com" in slices(lab)

    lab.registry.delete("Node", "late")
    lab.settle(60.0)
    assert "late-gpu.example.com" not in slices(lab)


def test_other_devices_are_a_new_generation_and_taints_of_others_stay(lab: ManagedCluster) -> None:
    with_devices(lab, DeviceSet(1, "gpu.example.com"))

    def taint(item: Json) -> Json:
        item["spec"]["devices"][0]["taints"] = [{"key": "broken", "effect": "NoSchedule"}]
        return item

    lab.registry.modify("ResourceSlice", "n0-gpu.example.com", change=taint)
    lab.settle()
    [device] = slices(lab)["n0-gpu.example.com"]["spec"]["devices"]
    assert device["taints"][0]["timeAdded"]

    with_devices(lab, DeviceSet(2, "gpu.example.com"))
    spec = slices(lab)["n0-gpu.example.com"]["spec"]
    assert (len(spec["devices"]), spec["pool"]["generation"]) == (2, 2)


def test_binding_conditions_of_allocated_devices_become_true(lab: ManagedCluster) -> None:
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    about = {"name": "c", "namespace": "default"}
    lab.create("ResourceClaim", {"metadata": about, "spec": {"devices": {"requests": requests}}})
    result: dict[str, Any] = {
        "request": "gpu",
        "driver": "gpu.example.com",
        "pool": "n0",
        "device": "gpu-0",
        "bindingConditions": ["attached"],
        "bindingFailureConditions": ["failed"],
    }
    lab.report("ResourceClaim", "c", {"allocation": {"devices": {"results": [result]}}})
    lab.settle()

    [device] = lab.status("ResourceClaim", "c")["devices"]
    assert (device["pool"], device["device"]) == ("n0", "gpu-0")
    assert [(each["type"], each["status"]) for each in device["conditions"]] == [
        ("attached", "True")
    ]
