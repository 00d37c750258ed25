"""Answers of single rows are dropped when something changes that they depend on besides the row."""

from __future__ import annotations

import msgspec

from builders import node, pod
from builders_v1_36 import current
from podium.objects.kinds.devices import DeviceClass
from podium.objects.kinds.pod import Pod


def test_a_class_that_serves_a_resource_changes_the_answers_of_all_rows() -> None:
    made = current(node("n0"), node("n1"), fast=True)
    wanted: Pod = pod("p", requests={"example.com/gpu": 1})
    before = [made.attempt(wanted).message for _ in range(3)]

    served = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    made.cache.columns.catalog.device_classes.put(msgspec.convert(served, DeviceClass))
    after = made.attempt(wanted)

    assert "2 Insufficient example.com/gpu" in before[2]
    assert "2 cannot allocate all claims" in after.message
    made.cache.columns.catalog.device_classes.drop(msgspec.convert(served, DeviceClass))
    assert made.attempt(wanted).message == before[2]
