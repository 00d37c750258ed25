"""A driver for devices: publishes them in resource slices, and reports them as ready.

Each node that the driver serves gets one pool with one slice, owned by the node. A slice that was
changed or deleted is published again, with a new generation of its pool if the devices differ. For
allocated devices with binding conditions the driver reports all of them as true.

`podium lab --devices` writes devices as `8,model=h100,memory=80Gi,nodes=4`: first the number of
devices of each node, then settings. `driver`, `class`, `resource`, `nodes` and `label` say whose
they are and where. Every other name is a capacity if its value is an amount with a unit. Otherwise
it is an attribute: true or false, a whole number, a version (1.2.3) or text.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/resourceslice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, ClassVar, Final

from podium.errors import InputError
from podium.lab.api.status import ignoring
from podium.lab.controllers.framework.cluster import Cluster
from podium.lab.controllers.framework.controller import Controller, changed
from podium.lab.controllers.framework.object_fields import (
    Key,
    is_terminating,
    key_of,
    labels_of,
    new_condition,
    uid_of,
)
from podium.lab.kinds.device_class import validate_attribute_name, validate_driver
from podium.objects.kinds.meta import JsonObject
from podium.objects.names import is_extended, is_subdomain

#: The driver, if no other is asked for.
DRIVER: Final = "gpu.lab.podium"
#: The most devices that fit into one slice.
MOST_DEVICES: Final = 128


@dataclass(frozen=True, slots=True)
class DeviceSet:
    """Devices that every node of some has: how many, of which driver, and what they are like."""

    count: int
    driver: str = DRIVER
    #: The class by which claims ask for these devices; it has the name of the driver by default.
    device_class: str = ""
    #: The extended resource that the class serves.
    extended_resource: str = ""
    #: Nodes with this label have devices; "" for any value. None: all nodes.
    label: tuple[str, str] | None = None
    #: At most so many nodes have devices, those whose names come first. None: no limit.
    nodes: int | None = None
    attributes: dict[str, JsonObject] = field(default_factory=dict)
    capacity: dict[str, str] = field(default_factory=dict)

    @property
    def class_name(self) -> str:
        """The name of the device class."""
        return self.device_class or self.driver

    def serves(self, node: JsonObject, names: Sequence[str]) -> bool:
        """Whether a node has these devices; *names* are those of all nodes, in order."""
        if self.label is not None:
            key, value = self.label
            labels = labels_of(node)
            if key not in labels or value not in {"", labels[key]}:
                return False
        return self.nodes is None or node["metadata"]["name"] in names[: self.nodes]

    def devices(self) -> list[JsonObject]:
        """The devices of one node."""
        width = len(str(self.count - 1))
        return [
            {
                "name": f"device-{number:0{width}d}",
                "attributes": {
                    **{name: dict(value) for name, value in self.attributes.items()},
                    "index": {"int": number},
                },
                **(
                    {"capacity": {name: {"value": text} for name, text in self.capacity.items()}}
                    if self.capacity
                    else {}
                ),
            }
            for number in range(self.count)
        ]

    def class_manifest(self) -> JsonObject:
        """The device class of these devices."""
        expression = f"device.driver == '{self.driver}'"
        spec: JsonObject = {"selectors": [{"cel": {"expression": expression}}]}
        if self.extended_resource:
            spec["extendedResourceName"] = self.extended_resource
        return {"metadata": {"name": self.class_name}, "spec": spec}


class DeviceDriver(Controller[tuple[str, Key]]):
    """Publishes devices of nodes. Its keys are nodes, and claims with binding conditions."""

    name: ClassVar = "device-driver"

    def __init__(self, cluster: Cluster, devices: Sequence[DeviceSet] = ()) -> None:
        """Publish *devices*; without any, only binding conditions are reported."""
        super().__init__(cluster)
        self._sets = tuple(devices)
        if self._sets:
            self.watch("Node", self._on_node)
            self.watch("ResourceSlice", self._on_slice)
            for each in self._sets:
                self._create_class(each)
        self.watch("ResourceClaim", self._on_claim)

    def _create_class(self, wanted: DeviceSet) -> None:
        """Create the class of some devices, unless there is one of its name."""
        with ignoring(409):
            self.cluster.create("DeviceClass", wanted.class_manifest())

    def _on_node(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if new is None:
            return
        if old is None or labels_of(old) != labels_of(new):
            self.enqueue(("Node", key_of(new)))

    def _on_slice(self, old: JsonObject | None, new: JsonObject | None) -> None:
        item = changed(old, new)
        name = item["spec"].get("nodeName")
        drivers = {each.driver for each in self._sets}
        if old is not None and name and item["spec"].get("driver") in drivers:
            self.enqueue(("Node", ("", name)))

    def _on_claim(self, old: JsonObject | None, new: JsonObject | None) -> None:
        del old
        if new is not None and any(_unreported(new)):
            self.enqueue(("ResourceClaim", key_of(new)))

    def sync(self, key: tuple[str, Key]) -> None:
        """Publish the devices of a node, or report that those of a claim are ready."""
        kind, place = key
        item = self.cluster.get(kind, *place)
        if item is None or is_terminating(item):
            return
        if kind == "Node":
            names = sorted(key_of(each)[1] for each in self.cluster.list("Node"))
            for each in self._sets:
                if each.serves(item, names):
                    self._publish(item, each)
        else:
            self._report(item)

    def _publish(self, node: JsonObject, wanted: DeviceSet) -> None:
        name = node["metadata"]["name"]
        devices = wanted.devices()
        slice_name = f"{name}-{wanted.driver}"
        present = self.cluster.get("ResourceSlice", "", slice_name)
        if present is None:
            self.cluster.create("ResourceSlice", _slice(slice_name, node, wanted.driver, devices))
            return
        if is_terminating(present) or _facts(present["spec"].get("devices") or ()) == _facts(
            devices
        ):
            return

        def edit(item: JsonObject) -> None:
            item["spec"]["devices"] = devices
            pool = item["spec"]["pool"]
            pool["generation"] = pool.get("generation", 0) + 1

        self.cluster.update("ResourceSlice", ("", slice_name), edit)

    def _report(self, claim: JsonObject) -> None:
        """Set the binding conditions of the devices of a claim to true."""
        status = dict(claim.get("status") or {})
        reported = [dict(each) for each in status.get("devices") or ()]
        for result in _unreported(claim):
            found = next((each for each in reported if _identity(each) == _identity(result)), None)
            if found is None:
                found = {
                    part: result[part]
                    for part in ("driver", "pool", "device", "shareID")
                    if part in result
                }
                reported.append(found)
            names = result["bindingConditions"]
            kept = [each for each in found.get("conditions") or () if each["type"] not in names]
            found["conditions"] = [*kept, *(self._true(each) for each in names)]
        self.cluster.update_status(claim, {**status, "devices": reported})

    def _true(self, kind: str) -> JsonObject:
        return new_condition({}, kind, "True", "Ready", "", at=self.cluster.timestamp())


def _unreported(claim: JsonObject) -> Iterator[JsonObject]:
    """The allocated devices of a claim with binding conditions that are not yet true."""
    status = claim.get("status") or {}
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    reported = {_identity(each): each for each in status.get("devices") or ()}
    for result in results:
        wanted = result.get("bindingConditions") or ()
        conditions = (reported.get(_identity(result)) or {}).get("conditions") or ()
        true = {each.get("type") for each in conditions if each.get("status") == "True"}
        if any(each not in true for each in wanted):
            yield result


def _identity(device: JsonObject) -> tuple[Any, ...]:
    return tuple(device.get(part) for part in ("driver", "pool", "device", "shareID"))


def _slice(name: str, node: JsonObject, driver: str, devices: list[JsonObject]) -> JsonObject:
    about = node["metadata"]
    owner = {
        "apiVersion": "v1",
        "kind": "Node",
        "name": about["name"],
        "uid": uid_of(node),
        "controller": True,
    }
    return {
        "metadata": {"name": name, "ownerReferences": [owner]},
        "spec": {
            "driver": driver,
            "nodeName": about["name"],
            "pool": {"name": about["name"], "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def _facts(devices: Sequence[JsonObject]) -> list[Any]:
    """The fields of devices that the driver writes; taints and other fields come from others."""
    parts = ("name", "attributes", "capacity")
    return [{part: each.get(part) for part in parts if each.get(part)} for each in devices]


SYNTAX: Final = "COUNT[,NAME=VALUE]…, as in 8,model=h100,memory=80Gi,nodes=4"
_AMOUNT: Final = re.compile(r"[0-9]+(\.[0-9]+)?([KMGTPE]i|[kMGTPE])")
_VERSION: Final = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?")
_NUMBER: Final = re.compile(r"-?[0-9]{1,18}")
_PLACES: Final = frozenset({"driver", "class", "resource", "nodes", "label"})


def has_expressions() -> bool:
    """Whether the package is installed that device selectors need."""
    return find_spec("cel_expr_python") is not None


def parse_device_set(text: str) -> DeviceSet:
    """The devices that a text describes; a mistake is an InputError."""
    count, *settings = text.split(",")
    if not count.isdigit() or not 1 <= int(count) <= MOST_DEVICES:
        what = f"{count!r} is not a number of devices from 1 to {MOST_DEVICES}"
        raise InputError(what, hint=f"write {SYNTAX}")
    given: dict[str, str] = {}
    for each in settings:
        name, equals, value = each.partition("=")
        if not name or not equals or not value:
            raise InputError(f"{each!r} is not NAME=VALUE", hint=f"write {SYNTAX}")
        if name in given:
            raise InputError(f"{name} is given twice", hint="give each name once")
        given[name] = value
    found: dict[str, Any] = {"count": int(count), **_places(given)}
    attributes: dict[str, JsonObject] = {}
    capacity: dict[str, str] = {}
    for name, value in given.items():
        if name in _PLACES:
            continue
        problem = next(validate_attribute_name(name, name), None)
        if problem is not None:
            raise InputError(f"{name!r} is not a name of an attribute", hint=problem.detail)
        if _AMOUNT.fullmatch(value):
            capacity[name] = value
        else:
            attributes[name] = _attribute(value)
    return DeviceSet(**found, attributes=attributes, capacity=capacity)


def _places(given: dict[str, str]) -> dict[str, Any]:
    """The settings that say whose the devices are and which nodes have them."""
    driver = given.get("driver", DRIVER)
    if next(validate_driver(driver, "driver"), None) is not None:
        raise InputError(f"{driver!r} is not the name of a driver", hint="gpu.example.com is one")
    name = given.get("class", "")
    if name and not is_subdomain(name):
        raise InputError(f"{name!r} is not the name of a class", hint="gpu.example.com is one")
    resource = given.get("resource", "")
    if resource and not is_extended(resource):
        what = f"{resource!r} is not the name of an extended resource"
        raise InputError(what, hint="example.com/gpu is one")
    found: dict[str, Any] = {
        "driver": driver,
        "device_class": name,
        "extended_resource": resource,
    }
    if "nodes" in given:
        if not given["nodes"].isdigit():
            what = f"nodes={given['nodes']} is not a number"
            raise InputError(what, hint="say how many nodes have devices, or label=KEY=VALUE")
        found["nodes"] = int(given["nodes"])
    if "label" in given:
        key, _, value = given["label"].partition("=")
        found["label"] = (key, value)
    return found


def _attribute(value: str) -> JsonObject:
    if value in {"true", "false"}:
        return {"bool": value == "true"}
    if _NUMBER.fullmatch(value):
        return {"int": int(value)}
    if _VERSION.fullmatch(value):
        return {"version": value}
    return {"string": value}
