"""Notes on conditions without taints, and on zones that v1.13 does not see."""

from __future__ import annotations

import builders as b
from podium.lab.contents.generated_nodes import node_manifest
from podium.library.cluster_notes import cluster_notes
from podium.library.profile_source import ProfileSource
from podium.objects.kinds.node import Node

V1_13 = ProfileSource(profile="v1.13", environment={})
V1_36 = ProfileSource(profile="v1.36", environment={})
NEWER, OLDER = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"


def notes(source: ProfileSource, *nodes: Node) -> list[str]:
    return list(cluster_notes(b.objects(*nodes), source.choose()))


def test_a_node_that_is_not_ready_without_the_taint_is_noted() -> None:
    sick = [b.node(f"n{i}", conditions={"Ready": "False"}) for i in range(5)]

    [note] = notes(V1_36, *sick, b.node("ok", conditions={"Ready": "True"}))

    assert note == (
        "nodes n0, n1, n2 and 2 more: condition Ready is False, which keeps no pod away without "
        "the taint node.kubernetes.io/not-ready; the node controller would add it: write it into "
        "the file"
    )


def test_pressure_is_noted_and_the_taint_ends_the_note() -> None:
    pressed = b.node("n", conditions={"MemoryPressure": "True", "DiskPressure": "False"})
    tainted = b.node(
        "m",
        conditions={"MemoryPressure": "True"},
        taints=[b.taint("node.kubernetes.io/memory-pressure")],
    )

    [note] = notes(V1_13, pressed, tainted)

    assert note.startswith("node n: condition MemoryPressure is True")
    assert note.endswith("or give --feature-gates TaintNodesByCondition=false")


def test_predicates_that_look_at_conditions_need_no_note() -> None:
    source = ProfileSource(
        profile="v1.13", feature_gates=({"TaintNodesByCondition": False},), environment={}
    )

    assert notes(source, b.node("n", conditions={"Ready": "False", "PIDPressure": "True"})) == []


def test_zones_by_the_newer_label_only_are_noted_for_v1_13() -> None:
    newer = b.node("n", labels={NEWER: "a"})

    assert notes(V1_36, newer) == []
    assert notes(V1_13, b.node("n", labels={NEWER: "a", OLDER: "a"})) == []
    [note] = notes(V1_13, newer)
    assert note.startswith(f"node n: v1.13 reads zones from the label {OLDER} only")


def test_nodes_of_the_lab_have_the_labels_of_both_generations() -> None:
    labels = node_manifest("n", "zone-a", "small")["metadata"]["labels"]

    assert labels[NEWER] == labels[OLDER] == "zone-a"
