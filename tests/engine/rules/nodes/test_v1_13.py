"""Predicates on the node alone, where no recording shows them or the letter matters."""

from __future__ import annotations

import pytest

from builders import (
    ZONE,
    Said,
    decided,
    expression,
    judged,
    node,
    node_term,
    pod,
    profile,
    taint,
    tolerates,
    view,
)
from podium.engine.framework.rule import Predicate
from podium.engine.rules.node_affinity.v1_13 import MatchNodeSelector
from podium.engine.rules.nodes.v1_13 import (
    CheckNodeCondition,
    CheckNodeDiskPressure,
    CheckNodeLabelPresence,
    CheckNodeMemoryPressure,
    CheckNodePIDPressure,
    CheckNodeUnschedulable,
    HostName,
)
from podium.engine.rules.taints.v1_13 import PodToleratesNodeNoExecuteTaints, PodToleratesNodeTaints
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import NodeSelectorTerm, Pod

HOST = ("node(s) didn't match the requested hostname",)
SELECTOR = ("node(s) didn't match node selector",)
TAINTS = ("node(s) had taints that the pod didn't tolerate",)
CORDONED = ("node(s) were unschedulable",)
NOT_READY = "node(s) were not ready"
OUT_OF_DISK = "node(s) were out of disk space"
NETWORK = "node(s) had unavailable network"
LABELS = ("node(s) didn't have the requested labels",)


def said(predicate: Predicate, wanted: Pod, one: Node) -> Said:
    return judged(predicate, wanted, view(one))[one.name]


# HostName -----------------------------------------------------------------------------------------


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


# Conditions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("conditions", "unschedulable", "expected"),
    [
        pytest.param({}, False, (), id="what is not reported is fine"),
        pytest.param({"Ready": "True"}, False, (), id="ready"),
        pytest.param({"Ready": "False"}, False, (NOT_READY,), id="not ready"),
        pytest.param({"Ready": "Unknown"}, False, (NOT_READY,), id="unknown is not ready"),
        pytest.param({"OutOfDisk": "False"}, False, (), id="disk space"),
        pytest.param({"OutOfDisk": "Unknown"}, False, (OUT_OF_DISK,), id="unknown disk space"),
        pytest.param({"NetworkUnavailable": "True"}, False, (NETWORK,), id="no network"),
        pytest.param({"NetworkUnavailable": "Unknown"}, False, (NETWORK,), id="unknown network"),
        pytest.param({"MemoryPressure": "True"}, False, (), id="pressure is another rule's matter"),
        pytest.param(
            {"NetworkUnavailable": "True", "OutOfDisk": "True", "Ready": "False"},
            False,
            (NETWORK, OUT_OF_DISK, NOT_READY),
            id="all are reported, in the order of the conditions",
        ),
        pytest.param({}, True, CORDONED, id="a cordoned node"),
        pytest.param(
            {"Ready": "False"}, True, (NOT_READY, *CORDONED), id="the cordon is reported last"
        ),
    ],
)
def test_node_conditions(
    conditions: dict[str, str], unschedulable: bool, expected: tuple[str, ...]
) -> None:
    one = node(conditions=conditions, unschedulable=unschedulable)

    assert said(CheckNodeCondition(), pod(tolerations=[tolerates("", "Exists")]), one) == expected


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param(tolerates("", "Exists"), (), id="tolerating everything"),
        pytest.param(
            tolerates("node.kubernetes.io/unschedulable", "Exists", effect="NoSchedule"),
            (),
            id="tolerating cordons",
        ),
        pytest.param(
            tolerates("node.kubernetes.io/unschedulable"), (), id="equal to the empty value"
        ),
        pytest.param(tolerates(), (), id="the empty toleration covers the empty value"),
        pytest.param(
            tolerates("node.kubernetes.io/unschedulable", "Exists", effect="NoExecute"),
            CORDONED,
            id="another effect",
        ),
        pytest.param(tolerates("other", "Exists"), CORDONED, id="another key"),
    ],
)
def test_who_may_use_a_cordoned_node(toleration: object, expected: Said) -> None:
    wanted = pod(tolerations=[toleration])  # type: ignore[list-item]

    assert said(CheckNodeUnschedulable(), wanted, node(unschedulable=True)) == expected


@pytest.mark.parametrize(
    ("effect", "all_hard", "evicting"),
    [
        pytest.param("NoSchedule", TAINTS, (), id="NoSchedule"),
        pytest.param("NoExecute", TAINTS, TAINTS, id="NoExecute"),
        pytest.param("PreferNoSchedule", (), (), id="a soft taint never rejects"),
        pytest.param("Other", (), (), id="an effect nobody knows never rejects"),
    ],
)
def test_taints_by_effect(effect: str, all_hard: Said, evicting: Said) -> None:
    one = node(taints=[taint(effect=effect)])

    assert said(PodToleratesNodeTaints(), pod(), one) == all_hard
    assert said(PodToleratesNodeNoExecuteTaints(), pod(), one) == evicting


# Pressure -----------------------------------------------------------------------------------------

GUARANTEED = {"cpu": "1"}


@pytest.mark.parametrize(
    ("predicate", "condition", "reason", "everybody"),
    [
        (CheckNodeMemoryPressure(), "MemoryPressure", "node(s) had memory pressure", False),
        (CheckNodeDiskPressure(), "DiskPressure", "node(s) had disk pressure", True),
        (CheckNodePIDPressure(), "PIDPressure", "node(s) had pid pressure", True),
    ],
    ids=["memory", "disk", "pid"],
)
def test_pressure(predicate: Predicate, condition: str, reason: str, everybody: bool) -> None:
    pressed = node(conditions={condition: "True"})

    assert said(predicate, pod(), pressed) == (reason,)
    assert said(predicate, pod(), node(conditions={condition: "Unknown"})) == ()
    assert said(predicate, pod(), node(conditions={condition: "False"})) == ()
    assert said(predicate, pod(requests=GUARANTEED), pressed) == ((reason,) if everybody else ())


@pytest.mark.parametrize(
    ("wanted", "best_effort"),
    [
        pytest.param(pod(), True, id="nothing at all"),
        pytest.param(pod(requests={"cpu": 0, "memory": "0"}), True, id="zero is nothing"),
        pytest.param(pod(requests={"ephemeral-storage": 1}), True, id="storage does not count"),
        pytest.param(pod(requests={"example.com/gpu": 1}), True, id="nor do other resources"),
        pytest.param(pod(limits={"memory": 1}), False, id="a limit is a promise"),
        pytest.param(pod(requests={"cpu": "1m"}), False, id="so is a request"),
    ],
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


# Labels and selectors -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "presence", "expected"),
    [
        pytest.param({"a": "", "b": "1"}, True, (), id="all wanted keys are there"),
        pytest.param({"a": ""}, True, LABELS, id="one is missing"),
        pytest.param({}, True, LABELS, id="all are missing"),
        pytest.param({}, False, (), id="no unwanted key is there"),
        pytest.param({"b": ""}, False, LABELS, id="one unwanted key, even with no value"),
    ],
)
def test_label_presence(labels: dict[str, str], presence: bool, expected: Said) -> None:
    rule = CheckNodeLabelPresence(["a", "b"], presence=presence)

    assert said(rule, pod(), node(labels=labels)) == expected


def name_is(operator: str, *names: str) -> NodeSelectorTerm:
    return node_term(fields=[expression("metadata.name", operator, *names)])


@pytest.mark.parametrize(
    ("terms", "fits"),
    [
        pytest.param([], False, id="no terms match no node"),
        pytest.param([node_term()], False, id="an empty term matches nothing"),
        pytest.param([node_term(), name_is("In", "n")], True, id="terms are alternatives"),
        pytest.param([name_is("In", "n")], True, id="the node's own name"),
        pytest.param([name_is("In", "m")], False, id="another name"),
        pytest.param([name_is("NotIn", "m")], True, id="not another name"),
        pytest.param([name_is("NotIn", "n")], False, id="not its own name"),
        pytest.param([name_is("In", "n", "m")], False, id="two names are an invalid term"),
        pytest.param([name_is("Exists")], False, id="fields know only In and NotIn"),
        pytest.param(
            [node_term(fields=[expression("spec.x", "In", "")])], True, id="unknown fields are ''"
        ),
        pytest.param(
            [node_term(fields=[expression("spec.x", "NotIn", "")])], False, id="and are not not ''"
        ),
        pytest.param(
            [
                node_term(
                    expression("disk", "In", "ssd"),
                    fields=[expression("metadata.name", "In", "m")],
                )
            ],
            False,
            id="labels and fields must both match",
        ),
        pytest.param([node_term(expression("size", "Gt", "5"))], True, id="greater"),
        pytest.param(
            [node_term(expression("size", "Gt", "6"))], False, id="not greater than equal"
        ),
        pytest.param([node_term(expression("size", "Lt", "07"))], True, id="leading zeros"),
        pytest.param([node_term(expression("disk", "Gt", "5"))], False, id="not a number"),
        pytest.param([node_term(expression("gone", "Lt", "5"))], False, id="no such label"),
        pytest.param([node_term(expression("gone", "NotIn", "x"))], True, id="absent is not in"),
        pytest.param(
            [node_term(expression("disk", "Near", "x")), node_term(expression("disk", "Exists"))],
            True,
            id="an invalid term is skipped",
        ),
    ],
)
def test_required_node_affinity(terms: list[NodeSelectorTerm], fits: bool) -> None:
    one = node("n", labels={"disk": "ssd", "size": "6"})

    found = said(MatchNodeSelector(), pod(node_affinity=terms), one)

    assert found == (() if fits else SELECTOR)


def test_a_node_selector_with_an_invalid_value_matches_every_node() -> None:
    wanted = pod(node_selector={"disk": "-bad", "zone": "nowhere"})

    assert said(MatchNodeSelector(), wanted, node("n")) == ()


def test_node_selector_and_affinity_must_both_match() -> None:
    columns = view(node("a", labels={"x": "1", ZONE: "z"}), node("b", labels={"x": "1"}))
    wanted = pod(node_selector={"x": "1"}, node_affinity=[node_term(expression(ZONE, "Exists"))])

    assert judged(MatchNodeSelector(), wanted, columns) == {"a": (), "b": SELECTOR}
