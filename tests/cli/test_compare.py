"""`podium compare`: which argument is what, the table, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders_v1_36 import PACK
from cli.conftest import Files, Podium
from manifests import node, pod

POLICY = '{"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": "PodFitsResources"}]}'
ROOM_ONLY = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      disabled: [{name: "*"}]
      enabled: [{name: PrioritySort}, {name: NodeResourcesFit}, {name: DefaultBinder}]
"""
RULES = """
from podium.rules import predicate


@predicate("NotOnN1", reason="node(s) were n1", depends="node")
def not_on_n1(pod, node):
    # No pod may run on n1.
    return node.name != "n1"
"""


@pytest.fixture
def cluster(write: Files) -> str:
    nodes = [node(f"n{i}", cpu="4") for i in range(3)]
    return write([*nodes, *(pod(f"p{i}", "1") for i in "abcd")])


def test_configurations_and_files_are_told_apart(
    podium: Podium, write: Files, cluster: str
) -> None:
    pack, policy = write(PACK, "pack.yaml"), write(POLICY, "plain.json")

    found = podium(
        "compare", "v1.36", pack, "DefaultProvider", cluster, policy, "-o", "json", "--seeds", "1"
    ).json

    assert (found["apiVersion"], found["kind"]) == ("podium/v1", "Comparison")
    names = [each["name"] for each in found["configurations"]]
    assert names == ["v1.36", "pack", "DefaultProvider", "plain"]
    assert (found["nodes"], found["pods"]) == (3, 4)
    assert all(each["nodesNeeded"] == {"1": 1} for each in found["configurations"])


def test_the_table_has_a_column_for_each(podium: Podium, write: Files, cluster: str) -> None:
    result = podium("compare", "v1.36", write(PACK, "pack.yaml"), cluster, "--bound")

    assert result.code == 0
    assert result.lines[0] == "3 nodes, 4 pods placed anew"
    assert result.lines[2].split() == ["v1.36", "pack"]
    rows = {line.rsplit(None, 2)[0]: line.split()[-2:] for line in result.lines[3:17]}
    assert rows["placed"] == ["4", "4"]
    assert rows["nodes needed"] == rows["lower bound"] == ["1", "1"]
    assert "The lower bound ignores:" in result.lines


def test_rules_of_your_own_are_a_configuration(podium: Podium, write: Files, cluster: str) -> None:
    rules = write(RULES, "mine.py")

    found = podium("compare", "v1.36", rules, cluster, "--seeds", "0", "-o", "json").json

    mine = found["configurations"][1]
    assert mine["name"] == "mine"
    assert "n1" not in mine["placements"].values()


def test_a_configuration_that_leaves_more_over_is_exit_code_1(podium: Podium, write: Files) -> None:
    tainted = node("n1", taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}])
    file, config = write([tainted, pod("w")]), write(ROOM_ONLY, "room.yaml")

    assert podium("compare", "v1.36", config, file, "--seeds", "0").code == 0
    asked = podium("compare", "v1.36", config, file, "--seeds", "0", "--exit-code")
    assert asked.code == 1


def test_one_configuration_is_not_enough(podium: Podium, cluster: str) -> None:
    result = podium("compare", "v1.36", cluster)

    assert result.code == 2
    assert "expected two configurations or more, got 1" in result.err


def test_a_name_that_is_neither_a_file_nor_a_configuration(podium: Podium, cluster: str) -> None:
    result = podium("compare", "v1.36", "v9.99", cluster)

    assert result.code == 2
    assert result.err == (
        "podium: v9.99: is neither a file nor the name of a configuration; "
        "the names are v1.13, ClusterAutoscalerProvider, DefaultProvider, "
        "v1.34, v1.35, v1.36, v1.37\n"
    )


def test_a_configuration_that_is_named_twice(podium: Podium, cluster: str) -> None:
    result = podium("compare", "v1.36", "v1.36", cluster)

    assert result.code == 2
    assert "the configuration v1.36 is named twice" in result.err


def test_without_files_a_cluster_is_needed(
    podium: Podium, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))

    result = podium("compare", "v1.36", "v1.13")

    assert result.code == 2
    assert f"{tmp_path / 'none'}: no such file" in result.err


def test_a_bad_configuration_is_one_sentence(podium: Podium, write: Files, cluster: str) -> None:
    bad = write(PACK.replace("MostAllocated", "Fullest"), "bad.yaml")

    result = podium("compare", "v1.36", bad, cluster)

    assert result.code == 2
    assert len(result.err.splitlines()) == 1


def test_html_is_one_page_that_loads_nothing(podium: Podium, write: Files, cluster: str) -> None:
    pack = write(PACK, "pack.yaml")

    page = podium("compare", "v1.36", pack, cluster, "--seeds", "2", "-o", "html").out

    assert page.startswith("<!doctype html>")
    assert "src=" not in page
    assert "://" not in page
    assert "<h1>Compare: v1.36, pack</h1>" in page
    # A map for each configuration, with all nodes; those with other pods are outlined.
    assert page.count('<rect class="node') == 2 * 3
    assert "n0: cpu 100%, memory 0%, 4 pods" in page
    assert page.count('<rect class="node changed"') == 2 * 3
    assert page.count("more than all") == 0
    assert page.count("<td>median</td>") == 1


def test_html_of_names_is_escaped(podium: Podium, write: Files) -> None:
    file, pack = write([node("n1"), pod("p")]), write(PACK, "<b>.yaml")

    page = podium("compare", "v1.36", pack, file, "--seeds", "0", "-o", "html").out

    assert "<b>" not in page
    assert "&lt;b&gt;" in page


def test_json_has_the_use_of_every_node(podium: Podium, write: Files, cluster: str) -> None:
    pack = write(PACK, "pack.yaml")

    found = podium("compare", "v1.36", pack, cluster, "--seeds", "0", "-o", "json").json

    for each in found["configurations"]:
        assert [use["name"] for use in each["nodes"]] == ["n0", "n1", "n2"]
        assert sum(use["pods"] for use in each["nodes"]) == 4
        assert sum(use["requested"]["cpu"] for use in each["nodes"]) == 4000
        assert {use["allocatable"]["cpu"] for use in each["nodes"]} == {4000}


def test_two_releases_are_compared_by_placements_and_messages(podium: Podium, write: Files) -> None:
    """The question before an upgrade: which pods would go elsewhere, which messages change."""
    cluster = write([node("n", cpu="1"), pod("large", cpu="4")], "waits.json")

    result = podium("compare", "v1.36", "v1.37", cluster, "--seeds", "0")
    found = podium("compare", "v1.36", "v1.37", cluster, "--seeds", "0", "-o", "json").json

    assert "1 message of waiting pods would be another" in result.lines
    [changed] = found["changedMessages"]
    assert changed["pod"] == "default/large"
    fit = "0/1 nodes are available: 1 Insufficient cpu."
    left = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    assert changed["messages"] == {
        "v1.36": f"{fit} no new claims to deallocate, {left}",
        "v1.37": f"{fit} {left}",
    }
