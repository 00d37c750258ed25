"""`podium capacity`: the table, the data, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.conftest import Files, Podium
from manifests import deployment, node, pod
from podium.what_if.capacity.capacity import CapacitySearch


def test_the_table_says_how_many_where_and_what_ran_out(podium: Podium, write: Files) -> None:
    cluster = write([node("n1", cpu="1"), node("n2", cpu="2")])
    wanted = write([pod("w", cpu="500m")], "pod.json")

    result = podium("capacity", wanted, cluster)

    assert result.code == 0
    assert result.lines[0] == "v1.37 default-scheduler: 2 nodes"
    assert result.lines[2] == "6 more of default/w fit on 2 nodes"
    assert result.lines[5].split() == ["Insufficient", "cpu", "2", "6", "n1,", "n2"]
    assert [line.split() for line in result.lines[8:]] == [["n1", "1", "2"], ["n2", "1", "4"]]


def test_workloads_are_placed_in_the_ratio_of_their_replicas(podium: Podium, write: Files) -> None:
    cluster = write([node("n1", cpu="4")])
    front, back = deployment("front", 6, cpu="100m"), deployment("back", 2, cpu="1")
    wanted = write([front, back], "workloads.json")

    found = podium("capacity", wanted, cluster, "-o", "json").json

    assert (found["apiVersion"], found["kind"]) == ("podium/v1", "Capacity")
    assert [(k["name"], k["ratio"]) for k in found["kinds"]] == [
        ("deployment/front", 3),
        ("deployment/back", 1),
    ]
    assert found["rounds"] == 3
    assert found["pods"] == sum(found["perNode"].values()) == 13
    assert found["stoppedBy"] == "deployment/front"


def test_a_pod_or_workload_of_the_cluster_can_be_named(podium: Podium, write: Files) -> None:
    cluster = write([node("n1", cpu="4"), deployment("web", 2, cpu="1")])

    assert podium("capacity", "web", cluster, "-o", "json").json["pods"] == 4
    first = podium("capacity", "web", cluster, "--pending-first", "-o", "json")
    assert first.json["pods"] == 2


def test_none_fits_is_exit_code_1(podium: Podium, write: Files) -> None:
    cluster = write([node("n1", cpu="1")])

    result = podium("capacity", write([pod("w", cpu="2")], "pod.json"), cluster, "--exit-code")

    assert result.code == 1
    assert "no more of default/w fit" in result.out


def test_a_shape_is_a_node_or_a_file(podium: Podium, write: Files) -> None:
    cluster = write([node("n1", cpu="1")])
    wanted = write([pod("w", cpu="1")], "pod.json")
    shape = write([node("huge", cpu="64")], "node.json")

    found = podium("capacity", wanted, cluster, "--shape", shape, "--shape", "n1", "-o", "json")

    assert [(g["like"], g["pods"]) for g in found.json["oneMoreNode"]] == [("huge", 64), ("n1", 1)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{pod}", "{cluster}", "--shape", "n9"], "there is no node n9; there are n1"),
        (["{cluster}", "{cluster}"], "holds no pod; name a file with a pod or a workload"),
        (["nothing", "{cluster}"], "there is no pod nothing"),
        (["{pod}", "{cluster}", "--shape", "{pod}"], "holds 0 nodes; a shape is a file with one"),
    ],
)
def test_bad_input_is_one_sentence(
    podium: Podium, write: Files, arguments: list[str], said: str
) -> None:
    places = {"cluster": write([node("n1")]), "pod": write([pod("w")], "pod.json")}

    result = podium("capacity", *(each.format(**places) for each in arguments))

    assert result.code == 2
    assert said in result.err
    assert len(result.err.splitlines()) == 1


def test_an_interrupt_prints_what_is_known(
    podium: Podium, write: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = CapacitySearch.steps

    def interrupted(self: CapacitySearch) -> object:
        for number in steps(self):
            yield number
            if number == 3:
                raise KeyboardInterrupt

    monkeypatch.setattr(CapacitySearch, "steps", interrupted)
    cluster = write([node("n1", cpu="8")])
    wanted = write([pod("a", cpu="1"), pod("b", cpu="1")], "pod.json")

    result = podium("capacity", wanted, cluster)

    assert result.code == 130
    assert "interrupted" in result.err
    assert "the set fits at least 1 more times: 3 pods on 1 node" in result.out


STATEFUL = str(Path(__file__).parents[1] / "what_if" / "cases" / "stateful-set.yaml")


def test_the_next_pods_of_a_stateful_set_get_new_claims(podium: Podium) -> None:
    found = podium("capacity", "sts/kafka", STATEFUL, "-o", "json").json

    assert found["perNode"] == {"n-a": 3, "n-b": 4}


def test_wanted_pods_that_do_not_fit_need_nodes(podium: Podium) -> None:
    result = podium("capacity", "sts/kafka", STATEFUL, "--want", "50", "--exit-code")
    found = podium("capacity", "sts/kafka", STATEFUL, "--want", "50", "-o", "json").json

    assert result.code == 1
    assert "7 of 50 more of statefulset/kafka fit on 2 nodes; 43 do not" in result.lines
    assert [(each["like"], each["nodesForAll"]) for each in found["oneMoreNode"]] == [
        ("n-a", 11),
        ("n-b", 11),
    ]


def test_wanted_pods_that_fit(podium: Podium) -> None:
    result = podium("capacity", "sts/kafka", STATEFUL, "--want", "7")

    assert result.code == 0
    assert "all 7 more of statefulset/kafka fit on 2 nodes" in result.lines


def test_shapes_that_add_nothing_are_not_listed(podium: Podium, write: Files) -> None:
    small, large = node("small", cpu="1"), node("large", cpu="8")
    file = write([small, large, deployment("web", replicas=1, cpu="3")])

    result = podium("capacity", "deployment/web", file, "--want", "9")

    shapes = [line.split()[0] for line in result.lines if line.startswith(("small", "large"))]
    assert shapes == ["large"]


def test_several_names_are_placed_in_turn(podium: Podium, write: Files) -> None:
    file = write([node("n1", cpu="8"), deployment("a", replicas=1), deployment("b", replicas=1)])

    found = podium("capacity", "deployment/a,deployment/b", file, "-o", "json").json

    assert {each["name"] for each in found["kinds"]} == {"deployment/a", "deployment/b"}
    assert found["rounds"] >= 1


def test_a_claim_that_was_not_dumped_makes_the_answer_unknown(podium: Podium, write: Files) -> None:
    dumped = [node("n1"), pod("db-0", node="n1")]
    dumped[1]["spec"]["volumes"] = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    for each in dumped:
        each["metadata"]["uid"] = each["metadata"]["name"]

    result = podium("capacity", "db-0", write(dumped), "--exit-code")

    assert result.code == 1
    assert result.lines[2] == (
        "how many more fit is not known: "
        "default/db-0 depends on claim data, which is not in the input"
    )
    assert "kubectl get persistentvolumeclaims" in result.err
    assert "not found" not in result.out
