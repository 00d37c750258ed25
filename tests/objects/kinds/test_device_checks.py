"""Fields of devices that no release has on by default are refused with a sentence."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.errors import InputError
from podium.objects.reading.decoding import decode
from podium.objects.reading.validation import validate

DERIVED = {"deviceClassName": "gpu", "derivedAttributes": [{"name": "a", "expression": "1"}]}
CONSUMED = {"counterSet": "c", "compatibilityGroups": ["a"]}


def claim(request: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "ResourceClaim", "spec": {"devices": {"requests": [{"name": "r", **request}]}}}


SLICE = {
    "kind": "ResourceSlice",
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "n1",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "d", "consumesCounters": [CONSUMED]}],
    },
}


@pytest.mark.parametrize(
    ("item", "where", "gate"),
    [
        (claim({"exactly": DERIVED}), "requests[0].exactly.derivedAttributes", "DerivedAttributes"),
        (
            claim({"firstAvailable": [{"name": "s", **DERIVED}]}),
            "requests[0].firstAvailable[0].derivedAttributes",
            "DerivedAttributes",
        ),
        (
            SLICE,
            "devices[0].consumesCounters[0].compatibilityGroups",
            "DeviceCompatibilityGroups",
        ),
    ],
)
def test_a_field_behind_a_gate_is_refused(item: dict[str, Any], where: str, gate: str) -> None:
    about = {"apiVersion": "resource.k8s.io/v1", "metadata": {"name": "x"}}
    objects = decode(msgspec.json.encode({**about, **item}))

    with pytest.raises(InputError) as error:
        validate(objects)

    assert where in str(error.value)
    assert f"needs the feature gate DRA{gate}, which is off by default" in str(error.value)
