"""Devices as `podium lab --devices` writes them: `8,model=h100,memory=80Gi,nodes=4`.

First the number of devices of each node, then settings. `driver`, `class`, `resource`, `nodes` and
`label` say whose they are and where; every other name is a capacity, if its value is an amount
with a unit, or an attribute: true or false, a whole number, a version (1.2.3) or text.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any, Final

from podium.errors import InputError
from podium.lab.controllers.device_driver import DRIVER, MOST_DEVICES, DeviceSet
from podium.lab.kinds.device_fields import validate_attribute_name, validate_driver
from podium.objects.kinds.meta import JsonObject
from podium.objects.names import is_subdomain
from podium.objects.resource_names import is_extended

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
