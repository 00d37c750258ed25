"""v1.36 VolumeBinding: what a node must offer to claims."""

from __future__ import annotations

from typing import Any

import msgspec

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
from cases import cases
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


@cases(
    ("wanted", "items", "expected"),
    {
        "a bound volume that m cannot reach": (
            using("c"),
            (claim("c", volume="v"), volume("v", reachable=AT_N)),
            {"m": (UNREACHABLE,)},
        ),
        "no such volume": (using("c"), (claim("c", volume="v"),), {"n": (LOST,), "m": (LOST,)}),
        "the first bound claim that fails is the last one looked at": (
            using("c", "d"),
            (claim("c", volume="v"), volume("v", reachable=AT_N), claim("d", volume="w")),
            {"n": (LOST,), "m": (UNREACHABLE,)},
        ),
        "nothing to bind, and no provisioner": (
            using("c"),
            (LATE, claim("c", storage_class="late")),
            {"n": (NO_VOLUME,), "m": (NO_VOLUME,)},
        ),
        "a free volume": (
            using("c"),
            (
                LATE,
                claim("c", storage_class="late"),
                volume("v", storage_class="late", reachable=AT_N),
            ),
            {"m": (NO_VOLUME,)},
        ),
        "one volume for two claims": (
            using("c", "d"),
            (
                LATE,
                claim("c", storage_class="late"),
                claim("d", storage_class="late"),
                volume("v", storage_class="late"),
            ),
            {"n": (NO_VOLUME,), "m": (NO_VOLUME,)},
        ),
        "too small": (
            using("c"),
            (
                LATE,
                claim("c", storage_class="late", storage="2Gi"),
                volume("v", storage_class="late"),
            ),
            {"n": (NO_VOLUME,), "m": (NO_VOLUME,)},
        ),
        "the volume meant for the claim, or none": (
            using("c"),
            (
                LATE,
                claim("c", storage_class="late"),
                volume("v", storage_class="late"),
                volume("mine", storage_class="late", claimed_by="c", reachable=AT_N),
            ),
            {"m": (NO_VOLUME,)},
        ),
        "unless that one is too small": (
            using("c"),
            (
                LATE,
                claim("c", storage_class="late", storage="2Gi"),
                volume("v", storage_class="late", storage="2Gi"),
                volume("mine", storage_class="late", claimed_by="c", reachable=AT_N),
            ),
            {},
        ),
        "made on some nodes only": (
            using("c"),
            (
                storage_class("made", provisioner="x", topologies=[made_in("n")]),
                claim("c", storage_class="made"),
            ),
            {"m": (NO_VOLUME,)},
        ),
        "being made for m": (
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
        ),
        "both kinds are told": (
            using("c", "d"),
            (
                claim("c", volume="v"),
                volume("v", reachable=AT_N),
                LATE,
                claim("d", storage_class="late"),
            ),
            {"n": (NO_VOLUME,), "m": (UNREACHABLE, NO_VOLUME)},
        ),
    },
)
def test_binding(
    wanted: Pod, items: tuple[Object, ...], expected: dict[str, tuple[str, ...]]
) -> None:
    found = judged(VolumeBinding(), wanted, N, M, *items)

    assert {name: reasons for name, reasons in found.items() if reasons} == expected


TRACKED = storage_class("made", provisioner="x")


@cases(
    ("items", "rejected"),
    {
        "without a driver capacity is not tracked": ([], set()),
        "a driver that does not": ([csi_driver("x", tracks=False)], set()),
        "tracked, and none reported": ([csi_driver("x", tracks=True)], {"n", "m"}),
        "enough on n": (
            [csi_driver("x", tracks=True), csi_capacity("1", "made", "1Gi", selector({HOST: "n"}))],
            {"m"},
        ),
        "enough everywhere": (
            [csi_driver("x", tracks=True), csi_capacity("1", "made", "1Gi", selector())],
            set(),
        ),
        "reported for nowhere": (
            [csi_driver("x", tracks=True), csi_capacity("1", "made", "1Gi", None)],
            {"n", "m"},
        ),
        "not enough": (
            [csi_driver("x", tracks=True), csi_capacity("1", "made", "1023Mi", selector())],
            {"n", "m"},
        ),
        "of another class": (
            [csi_driver("x", tracks=True), csi_capacity("1", "other", "1Gi", selector())],
            {"n", "m"},
        ),
        "the largest volume is what counts, if it is told": (
            [
                csi_driver("x", tracks=True),
                msgspec.structs.replace(
                    csi_capacity("1", "made", "9Gi", selector()), maximum_volume_size="1Mi"
                ),
            ],
            {"n", "m"},
        ),
    },
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
