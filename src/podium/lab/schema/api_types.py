"""The types of the API, from the table `models.txt`, which `tools/api-models` writes.

The table is split when the first model is asked for, and each model is read when it is first used.
The short name of a type is that of its model without version (`PodSpec`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

LIST, MAP, SINGLE = "list", "map", ""

#: Scalar types.
STRING, INTEGER, BOOLEAN, ANY = "string", "integer", "boolean", "any"
TIME, MICRO_TIME = "Time", "MicroTime"
INT_OR_STRING, QUANTITY, FIELDS, BYTES = "IntOrString", "Quantity", "FieldsV1", "bytes"
LONG = "long"
SCALARS = frozenset(
    {STRING, INTEGER, LONG, BOOLEAN, ANY, TIME, MICRO_TIME, INT_OR_STRING, QUANTITY, FIELDS, BYTES}
)

#: Kinds whose model is not named `V1` and the kind.
_MODELS = {
    # Of v1 in the API since v1.37; the fields are those of v1beta2.
    "DeviceTaintRule": "V1beta2DeviceTaintRule",
    "Event": "CoreV1Event",
    "PodGroup": "V1beta1PodGroup",
    # CoreV1ResourceClaim is the entry of a container.
    "ResourceClaim": "ResourceV1ResourceClaim",
    "TokenRequest": "AuthenticationV1TokenRequest",
}
_PREFIX = re.compile(
    r"^(Core|Events|Discovery|Storage|Authentication|Rbac|Flowcontrol|Resource)?V\d[a-z\d]*?(?=[A-Z])"
)
_LINE = re.compile(r"^(\w+)(!?) (\S+)\t?(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FieldType:
    """The type of a field's value, or of the items if the field is a list or a map."""

    #: A model (`V1Container`) or one of the scalar types above.
    of: str
    #: `LIST`, `MAP` or `SINGLE`.
    container: str = SINGLE

    @property
    def is_model(self) -> bool:
        """Whether the value, or each item, is an object with declared fields."""
        return self.of not in SCALARS


@dataclass(frozen=True, slots=True)
class Model:
    """A type with declared fields, by their names in JSON."""

    name: str
    fields: Mapping[str, FieldType]
    required: tuple[str, ...]

    @property
    def short(self) -> str:
        """The name without group and version: `PodSpec`."""
        return short_name(self.name)


def short_name(model: str) -> str:
    """The name of a model without group and version: `PodSpec` for `V1PodSpec`."""
    return _PREFIX.sub("", model)


def model_of_kind(kind: str, api_version: str = "") -> str:
    """The name of the model of a kind: `V1Pod` for `Pod`."""
    # The kind Event exists in two groups.
    if kind == "Event" and api_version.startswith("events.k8s.io/"):
        return "EventsV1Event"
    if api_version == "autoscaling/v2":
        return f"V2{kind}"
    return _MODELS.get(kind, f"V1{kind}")


@cache
def _blocks() -> Mapping[str, str]:
    """The lines of each model in the table."""
    text = files("podium.lab.schema").joinpath("models.txt").read_text("utf-8")
    blocks = (block.partition("\n") for block in text.split("\n\n")[1:])
    return {name: lines for name, _, lines in blocks}


def has_model(name: str) -> bool:
    """Whether the API has a model of this name."""
    return name in _blocks()


def _fields(name: str) -> list[tuple[str, str, str, str]]:
    """Field, "!" where it is required, type and description, for each line of a model."""
    return _LINE.findall(_blocks()[name])


def _field_type(written: str) -> FieldType:
    container = {"[": LIST, "{": MAP}.get(written[0], SINGLE)
    return FieldType(written[1:-1] if container else written, container)


@cache
def model(name: str) -> Model:
    """The model of this name: `V1Pod`."""
    lines = _fields(name)
    fields = {field: _field_type(written) for field, _, written, _ in lines}
    return Model(name, fields, tuple(field for field, required, _, _ in lines if required))


def descriptions(name: str) -> dict[str, str]:
    """The description of each field of a model, by its name in JSON."""
    return {field: text for field, _, _, text in _fields(name) if text}


def reachable(*roots: str) -> list[str]:
    """The names of the models that *roots* refer to, directly or not, *roots* included."""
    found: dict[str, None] = {}
    waiting = list(reversed(roots))
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found[name] = None
        waiting += [each.of for each in model(name).fields.values() if each.is_model]
    return list(found)
