"""v1.36 VolumeBinding: what a node must offer to claims."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from builders import (
    claim,
    claim_volume,
    expression,
    node,
    node_term,
    pod,
    selector,
    storage_class,
    volume,
)
from builders_v1_36 import (
    HOST,
    csi_capacity,
    csi_driver,
    current,
    judged,
)
from podium.engine.rules.volumes.binding import VolumeBinding
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.storage import TopologySelectorTerm

UNREACHABLE = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
LOST = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


def using(*names: str, **fields: Any) -> Pod:
    return pod(fields.pop("name", "p"), volumes=[claim_volume(name) for name in names], **fields)


AT_N = [node_term(expression(HOST, "In", "n"))]
N, M = (node(name, labels={HOST: name, "disk": name}) for name in "nm")
LATE = storage_class("late")


def made_in(*names: str) -> TopologySelectorTerm:
    return TopologySelectorTerm([expression(HOST, "In", *names)])


@pytest.mark.parametrize(
    ("wanted", "items", "expected"),
    [
        pytest.param(
            using("c"),
            (claim("c", volume="v"), volume("v", reachable=AT_N)),
            {"m": (UNREACHABLE,)},
            id="a bound volume that m cannot reach",
        ),
        pytest.param(
            using("c"), (claim("c", volume="v"),), {"n": (LOST,), "m": (LOST,)}, id="no such volume"
        ),
        pytest.param(
            using("c", "d"),
            (claim("c", volume="v"), volume("v", reachable=AT_N), claim("d", volume="w")),
            {"n": (LOST,), "m": (UNREACHABLE,)},
            id="the first bound claim that fails is the last one looked at",
        ),
        pytest.param(
            using("c"),
            (LATE, claim("c", storage_class="late")),
            {"n": (NO_VOLUME,), "m": (NO_VOLUME,)},
            id="nothing to bind, and no provisioner",
        ),
        pytest.param(
            using("c"),
            (
                LATE,
                claim("c", storage_class="late"),
                volume("v", storage_class="late", reachable=AT_N),
            ),
            {"m": (NO_VOLUME,)},
            id="a free volume",
        ),
        pytest.param(
            using("c", "d"),
            (
                LATE,
                claim("c", storage_class="late"),
                claim("d", storage_class="late"),
                volume("v", storage_class="late"),
            ),
            {"n": (NO_VOLUME,), "m": (NO_VOLUME,)},
            id="one volume for two claims",
        ),
        pytest.param(
            using("c"),
            (
                LATE,
                claim("c", storage_class="late", storage="2Gi"),
                volume("v", storage_class="late"),
            ),
            {"n": (NO_VOLUME,), "m": (NO_VOLUME,)},
            id="too small",
        ),
        pytest.param(
            using("c"),
            (
                LATE,
                claim("c", storage_class="late"),
                volume("v", storage_class="late"),
                volume("mine", storage_class="late", claimed_by="c", reachable=AT_N),
            ),
            {"m": (NO_VOLUME,)},
            id="the volume meant for the claim, or none",
        ),
        pytest.param(
            using("c"),
            (
                LATE,
                claim("c", storage_class="late", storage="2Gi"),
                volume("v", storage_class="late", storage="2Gi"),
                volume("mine", storage_class="late", claimed_by="c", reachable=AT_N),
            ),
            {},
            id="unless that one is too small",
        ),
        pytest.param(
            using("c"),
            (
                storage_class("made", provisioner="x", topologies=[made_in("n")]),
                claim("c", storage_class="made"),
            ),
            {"m": (NO_VOLUME,)},
            id="made on some nodes only",
        ),
        pytest.param(
            using("c"),
            (
                storage_class("made", provisioner="x"),
                claim(
                    "c",
                    storage_class="made",
                    annotations={"volume.kubernetes.io/selected-node": "m"},
                ),
            ),
            {"n": (NO_VOLUME,)},
            id="being made for m",
        ),
        pytest.param(
            using("c", "d"),
            (
                claim("c", volume="v"),
                volume("v", reachable=AT_N),
                LATE,
                claim("d", storage_class="late"),
            ),
            {"n": (NO_VOLUME,), "m": (UNREACHABLE, NO_VOLUME)},
            id="both kinds are told",
        ),
    ],
)
def test_binding(
    wanted: Pod, items: tuple[Object, ...], expected: dict[str, tuple[str, ...]]
) -> None:
    found = judged(VolumeBinding(), wanted, N, M, *items)

    assert {name: reasons for name, reasons in found.items() if reasons} == expected


TRACKED = storage_class("made", provisioner="x")


@pytest.mark.parametrize(
    ("items", "rejected"),
    [
        pytest.param([], set(), id="without a driver capacity is not tracked"),
        pytest.param([csi_driver("x", tracks=False)], set(), id="a driver that does not"),
        pytest.param([csi_driver("x", tracks=True)], {"n", "m"}, id="tracked, and none reported"),
        pytest.param(
            [csi_driver("x", tracks=True), csi_capacity("1", "made", "1Gi", selector({HOST: "n"}))],
            {"m"},
            id="enough on n",
        ),
        pytest.param(
            [csi_driver("x", tracks=True), csi_capacity("1", "made", "1Gi", selector())],
            set(),
            id="enough everywhere",
        ),
        pytest.param(
            [csi_driver("x", tracks=True), csi_capacity("1", "made", "1Gi", None)],
            {"n", "m"},
            id="reported for nowhere",
        ),
        pytest.param(
            [csi_driver("x", tracks=True), csi_capacity("1", "made", "1023Mi", selector())],
            {"n", "m"},
            id="not enough",
        ),
        pytest.param(
            [csi_driver("x", tracks=True), csi_capacity("1", "other", "1Gi", selector())],
            {"n", "m"},
            id="of another class",
        ),
        pytest.param(
            [
                csi_driver("x", tracks=True),
                msgspec.structs.replace(
                    csi_capacity("1", "made", "9Gi", selector()), maximum_volume_size="1Mi"
                ),
            ],
            {"n", "m"},
            id="the largest volume is what counts, if it is told",
        ),
    ],
)
def test_capacity(items: list[Object], rejected: set[str]) -> None:
    found = judged(
        VolumeBinding(), using("c"), N, M, TRACKED, claim("c", storage_class="made"), *items
    )

    assert found == {name: (NO_SPACE,) if name in rejected else () for name in "nm"}


def test_the_smallest_volume_that_suits_is_promised_and_taken_from_then_on() -> None:
    made = current(
        N,
        LATE,
        claim("c", storage_class="late"),
        claim("d", storage_class="late"),
        volume("large", storage_class="late", storage="9Gi"),
        volume("small", storage_class="late", storage="2Gi"),
    )

    first, second = made.run([using("c", name="p"), using("d", name="q")])

    assert first.decision.volumes is not None
    assert first.decision.volumes.bind == {"c": "small"}
    assert second.decision.volumes is not None
    assert second.decision.volumes.bind == {"d": "large"}
