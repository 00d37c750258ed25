"""Answers of single rows are dropped when something changes that they depend on besides the row.

They are also dropped when there is no memory for them.
"""

from __future__ import annotations

import msgspec

from builders import node, pod, term
from builders_v1_36 import HOST, current
from podium.cluster.decider import Decider, always
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


def test_a_class_whose_answers_are_no_longer_shared_may_be_the_oldest() -> None:
    """Its own answers take the place of others where there is memory for few of them."""
    made = current(node("n0", labels={HOST: "n0"}), node("n1", labels={HOST: "n1"}), fast=True)
    made.decider = Decider(
        made.cache, made.decider.profiles, clock=always(0.0), nominations=None, kept_bytes=1
    )
    apps = [{"app": f"a{number}"} for number in range(9)]
    alone = [pod("p", labels=each, anti=[term(each, HOST)]) for each in apps]
    for wanted in (*alone, *alone):
        assert made.attempt(wanted).feasible_count == 2
    for number, each in enumerate(apps):
        made.cache.add_pod(pod(f"placed-{number}", node="n0", labels=each))

    assert [made.attempt(wanted).feasible_count for wanted in alone] == [1] * 9
