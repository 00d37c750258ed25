"""v1.13 rules on the node alone, where no recording shows them or the letter matters."""

from __future__ import annotations

import json

import pytest

from builders import (
    Said,
    decided,
    judged,
    node,
    pod,
    profile,
    scored,
    tolerates,
    view,
)
from cases import cases
from podium.engine.framework.rule import FilterRule
from podium.engine.rules.nodes import (
    CheckNodeCondition,
    CheckNodeDiskPressure,
    CheckNodeLabelPresence,
    CheckNodeMemoryPressure,
    CheckNodePIDPressure,
    CheckNodeUnschedulable,
    EqualPriority,
    HostName,
    NodeLabelPriority,
    NodePreferAvoidPodsPriority,
)
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod

HOST = ("node(s) didn't match the requested hostname",)
CORDONED = ("node(s) were unschedulable",)
NOT_READY = "node(s) were not ready"
OUT_OF_DISK = "node(s) were out of disk space"
NETWORK = "node(s) had unavailable network"
LABELS = ("node(s) didn't have the requested labels",)


def said(predicate: FilterRule, wanted: Pod, one: Node) -> Said:
    return judged(predicate, wanted, view(one))[one.name]


def test_a_pod_that_names_its_node_fits_that_node_only() -> None:
    columns = view(node("a"), node("b", labels={"kubernetes.io/hostname": "a"}))

    assert judged(HostName(), pod(node="a"), columns) == {"a": (), "b": HOST}
    assert judged(HostName(), pod(node="elsewhere"), columns) == {"a": HOST, "b": HOST}
    assert judged(HostName(), pod(), columns) == {"a": (), "b": ()}


def test_a_named_host_is_part_of_the_basics() -> None:
    columns = view(node("a"), node("b", cpu=0))

    decision = decided(columns, pod(node="c", requests={"cpu": 1}), profile())

    assert decision.failed() == {"a": list(HOST), "b": ["Insufficient cpu", *HOST]}
    assert decision.preemption is not None
    assert decision.preemption.potential == ()


@cases(
    ("conditions", "unschedulable", "expected"),
    {
        "what is not reported is fine": ({}, False, ()),
        "ready": ({"Ready": "True"}, False, ()),
        "not ready": ({"Ready": "False"}, False, (NOT_READY,)),
        "unknown is not ready": ({"Ready": "Unknown"}, False, (NOT_READY,)),
        "disk space": ({"OutOfDisk": "False"}, False, ()),
        "unknown disk space": ({"OutOfDisk": "Unknown"}, False, (OUT_OF_DISK,)),
        "no network": ({"NetworkUnavailable": "True"}, False, (NETWORK,)),
        "unknown network": ({"NetworkUnavailable": "Unknown"}, False, (NETWORK,)),
        "pressure is another rule's matter": ({"MemoryPressure": "True"}, False, ()),
        "all are reported, in the order of the conditions": (
            {"NetworkUnavailable": "True", "OutOfDisk": "True", "Ready": "False"},
            False,
            (NETWORK, OUT_OF_DISK, NOT_READY),
        ),
        "a cordoned node": ({}, True, CORDONED),
        "the cordon is reported last": ({"Ready": "False"}, True, (NOT_READY, *CORDONED)),
    },
)
def test_node_conditions(
    conditions: dict[str, str], unschedulable: bool, expected: tuple[str, ...]
) -> None:
    one = node(conditions=conditions, unschedulable=unschedulable)

    assert said(CheckNodeCondition(), pod(tolerations=[tolerates("", "Exists")]), one) == expected


@cases(
    ("toleration", "expected"),
    {
        "tolerating everything": (tolerates("", "Exists"), ()),
        "tolerating cordons": (
            tolerates("node.kubernetes.io/unschedulable", "Exists", effect="NoSchedule"),
            (),
        ),
        "equal to the empty value": (tolerates("node.kubernetes.io/unschedulable"), ()),
        "the empty toleration covers the empty value": (tolerates(), ()),
        "another effect": (
            tolerates("node.kubernetes.io/unschedulable", "Exists", effect="NoExecute"),
            CORDONED,
        ),
        "another key": (tolerates("other", "Exists"), CORDONED),
    },
)
def test_who_may_use_a_cordoned_node(toleration: object, expected: Said) -> None:
    wanted = pod(tolerations=[toleration])  # type: ignore[list-item]

    assert said(CheckNodeUnschedulable(), wanted, node(unschedulable=True)) == expected


GUARANTEED = {"cpu": "1"}


@pytest.mark.parametrize(
    ("predicate", "condition", "reason", "every_pod"),
    [
        (CheckNodeMemoryPressure(), "MemoryPressure", "node(s) had memory pressure", False),
        (CheckNodeDiskPressure(), "DiskPressure", "node(s) had disk pressure", True),
        (CheckNodePIDPressure(), "PIDPressure", "node(s) had pid pressure", True),
    ],
    ids=["memory", "disk", "pid"],
)
def test_pressure(predicate: FilterRule, condition: str, reason: str, every_pod: bool) -> None:
    pressed = node(conditions={condition: "True"})

    assert said(predicate, pod(), pressed) == (reason,)
    assert said(predicate, pod(), node(conditions={condition: "Unknown"})) == ()
    assert said(predicate, pod(), node(conditions={condition: "False"})) == ()
    assert said(predicate, pod(requests=GUARANTEED), pressed) == ((reason,) if every_pod else ())


@cases(
    ("wanted", "best_effort"),
    {
        "nothing at all": (pod(), True),
        "zero is nothing": (pod(requests={"cpu": 0, "memory": "0"}), True),
        "storage does not count": (pod(requests={"ephemeral-storage": 1}), True),
        "nor do other resources": (pod(requests={"example.com/gpu": 1}), True),
        "a limit is a promise": (pod(limits={"memory": 1}), False),
        "so is a request": (pod(requests={"cpu": "1m"}), False),
    },
)
def test_who_feels_memory_pressure(wanted: Pod, best_effort: bool) -> None:
    found = said(CheckNodeMemoryPressure(), wanted, node(conditions={"MemoryPressure": "True"}))

    assert bool(found) == best_effort


def test_a_pressure_no_longer_reported_stays_as_it_was() -> None:
    columns = view(node("a", conditions={"DiskPressure": "True"}))
    rule = CheckNodeDiskPressure()

    columns.put_node(node("a"))
    assert judged(rule, pod(), columns)["a"] == ("node(s) had disk pressure",)

    columns.put_node(node("a", conditions={"MemoryPressure": "False"}))
    assert judged(rule, pod(), columns)["a"] == ("node(s) had disk pressure",)

    columns.put_node(node("a", conditions={"DiskPressure": "False"}))
    assert judged(rule, pod(), columns)["a"] == ()

    columns.put_node(node("a"))
    assert judged(rule, pod(), columns)["a"] == ()


def test_a_pressure_is_forgotten_when_the_node_goes() -> None:
    # Even with a pod still on it: the node itself is what remembers.
    for stays in (False, True):
        pods = [pod("x", node="a")] if stays else []
        columns = view(node("a", conditions={"DiskPressure": "True"}), *pods)

        columns.drop_node("a")
        columns.put_node(node("a"))

        assert judged(CheckNodeDiskPressure(), pod(), columns)["a"] == ()


@cases(
    ("labels", "presence", "expected"),
    {
        "all wanted keys are there": ({"a": "", "b": "1"}, True, ()),
        "one is missing": ({"a": ""}, True, LABELS),
        "all are missing": ({}, True, LABELS),
        "no unwanted key is there": ({}, False, ()),
        "one unwanted key, even with no value": ({"b": ""}, False, LABELS),
    },
)
def test_label_presence(labels: dict[str, str], presence: bool, expected: Said) -> None:
    rule = CheckNodeLabelPresence(["a", "b"], presence=presence)

    assert said(rule, pod(), node(labels=labels)) == expected


@pytest.mark.parametrize(
    ("presence", "expected"), [(True, [10, 10, 0]), (False, [0, 0, 10])], ids=["has", "lacks"]
)
def test_node_label(presence: bool, expected: list[int]) -> None:
    columns = view(node("a", labels={"x": "1"}), node("b", labels={"x": ""}), node("c"))

    found = scored(NodeLabelPriority("x", presence=presence, name="x"), pod(), columns)

    assert list(found.values()) == expected


def test_equal() -> None:
    assert scored(EqualPriority(), pod(), view(node("a"), node("b"))) == {"a": 1, "b": 1}


def avoiding(*controllers: object) -> str:
    entries = [{"podSignature": {"podController": each}} for each in controllers]
    return json.dumps({"preferAvoidPods": entries})


@cases(
    ("annotation", "owner", "expected"),
    {
        "no annotation": ("", ("ReplicaSet", "u"), 10),
        "meant": (avoiding({"kind": "ReplicaSet", "uid": "u"}), ("ReplicaSet", "u"), 0),
        "meant by one of several": (
            avoiding({"kind": "ReplicaSet", "uid": "v"}, {"kind": "ReplicaSet", "uid": "u"}),
            ("ReplicaSet", "u"),
            0,
        ),
        "another uid": (avoiding({"kind": "ReplicaSet", "uid": "u"}), ("ReplicaSet", "v"), 10),
        "another kind": (
            avoiding({"kind": "ReplicaSet", "uid": "u"}),
            ("ReplicationController", "u"),
            10,
        ),
        "a kind that cannot be meant": (
            avoiding({"kind": "StatefulSet", "uid": "u"}),
            ("StatefulSet", "u"),
            10,
        ),
        "no controller": (avoiding({"kind": "ReplicaSet", "uid": "u"}), None, 10),
        "not to be read": ("{", ("ReplicaSet", "u"), 10),
        "of another shape": ("[]", ("ReplicaSet", "u"), 10),
    },
)
def test_nodes_that_avoid_pods(
    annotation: str, owner: tuple[str, str] | None, expected: int
) -> None:
    key = "scheduler.alpha.kubernetes.io/preferAvoidPods"
    columns = view(node("n", annotations={key: annotation} if annotation else None), node("m"))

    found = scored(NodePreferAvoidPodsPriority(), pod(owner=owner), columns)

    assert found == {"n": expected, "m": 10}
