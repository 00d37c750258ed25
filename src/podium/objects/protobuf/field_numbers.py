"""The number of each field of the API in protobuf, from the table `field_numbers.txt`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple


class FieldNumber(NamedTuple):
    """The field with a certain number.

    A zero of a *pointer* is not the same as nothing. A *part* is an embedded message whose fields
    are fields of the object itself in JSON.
    """

    name: str
    pointer: bool
    part: str


@cache
def field_numbers() -> dict[str, dict[int, FieldNumber]]:
    """The fields of each model by their numbers; models have the names of `lab/schema`."""
    found: dict[str, dict[int, FieldNumber]] = {}
    text = files("podium.objects.protobuf").joinpath("field_numbers.txt").read_text("utf-8")
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        model, _, rest = line.partition(":")
        table = found[model] = {}
        for each in rest.split():
            name, _, number = each.partition("=")
            part = name if name.startswith("@") else ""
            table[int(number)] = FieldNumber(name.rstrip("?"), name.endswith("?"), part)
    return found
