"""The driver publishes devices of nodes, and reports that allocated ones are ready."""

from __future__ import annotations

from typing import Any

import pytest

from lab.controllers.managed_cluster import Json, ManagedCluster
from manifests import device_claim
from podium.errors import InputError
from podium.lab.controllers.device_driver import DeviceSet, parse_device_set
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
    lab.create("ResourceClaim", device_claim("c"))
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


def test_a_number_alone_is_devices_on_every_node() -> None:
    assert parse_device_set("8") == DeviceSet(8)


def test_settings_say_whose_the_devices_are_and_what_they_are_like() -> None:
    text = (
        "2,driver=gpu.example.com,class=gpu,resource=example.com/gpu,nodes=4,label=zone=a,"
        "model=h100,memory=80Gi,slots=7,ecc=true,firmware=1.2.3,example.com/rack=r1"
    )
    assert parse_device_set(text) == DeviceSet(
        2,
        "gpu.example.com",
        "gpu",
        "example.com/gpu",
        ("zone", "a"),
        4,
        {
            "model": {"string": "h100"},
            "slots": {"int": 7},
            "ecc": {"bool": True},
            "firmware": {"version": "1.2.3"},
            "example.com/rack": {"string": "r1"},
        },
        {"memory": "80Gi"},
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a number of devices from 1 to 128"),
        ("129", "'129' is not a number of devices from 1 to 128"),
        ("8,model", "'model' is not NAME=VALUE"),
        ("8,a=1,a=2", "a is given twice"),
        ("8,driver=No_Name", "'No_Name' is not the name of a driver"),
        ("8,class=No_Name", "'No_Name' is not the name of a class"),
        ("8,resource=gpu", "'gpu' is not the name of an extended resource"),
        ("8,nodes=few", "nodes=few is not a number"),
        ("8,a-b=1", "'a-b' is not a name of an attribute"),
    ],
)
def test_mistakes_are_named(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        parse_device_set(text)
    assert str(error.value).startswith(message)
