"""`podium plan` and `podium survive`: flags in their order, every way of printing, exit codes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from cli.conftest import Files, Podium
from podium.what_if.plan.execution import Applier
from podium.what_if.plan.results import Plan
from podium.what_if.survive.survival import Survival, lose_domain
from render.json_schema import problems
from what_if.clusters import node, pod, workload

DOCS = Path(__file__).parents[2] / "docs"
ITEMS = [node("n1", "a"), node("n2", "b"), node("n3", "c"), workload("Deployment", "web", 3)]


def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DOCS / f"{name}.schema.json").read_text("utf-8"))
    return found


def test_changes_keep_the_order_of_the_command_line(podium: Podium, write: Files) -> None:
    flags = ["--cordon", "n1", "--drain", "n2", "--uncordon", "n1", "--drain", "n3"]

    result = podium("plan", write(ITEMS), *flags, "-o", "json")

    names = [each["change"] for each in result.json["changes"]]
    assert names == ["cordon n1", "drain n2", "uncordon n1", "drain n3"]
    assert result.code == 0


def test_the_table_says_what_moved(podium: Podium, write: Files) -> None:
    result = podium("plan", write(ITEMS), "--drain", "n1")

    assert result.code == 0
    assert "1 pod moved, no pod without a node" in result.lines[0]
    assert any(line.startswith("MOVED") for line in result.lines)
    assert any(line.startswith("ZONE") for line in result.lines)
    assert any("node n1 is cordoned" in line for line in result.lines)


def test_a_pod_without_a_node_is_exit_code_1(podium: Podium, write: Files) -> None:
    items = [*ITEMS[:3], workload("Deployment", "web", 3, cpu="3")]

    result = podium("plan", write(items), "--lose", "n1", "--exit-code")

    assert result.code == 1
    assert "Insufficient cpu" in result.out


@pytest.mark.parametrize(
    "change", [["--drain", "n1"], ["--lose", "n1"], ["--scale", "deploy/web=20"]]
)
def test_json_follows_the_schema(podium: Podium, write: Files, change: list[str]) -> None:
    result = podium("plan", write([*ITEMS, pod("bare", nodeName="n1")]), *change, "-o", "json")

    assert problems(result.json, schema("plan"), schema("plan")) == []
    assert msgspec.convert(result.json, Plan).kind == "Plan"


def test_yaml_says_the_same(podium: Podium, write: Files) -> None:
    file = write(ITEMS)

    as_yaml = yaml.safe_load(podium("plan", file, "--drain", "n1", "-o", "yaml").out)

    assert as_yaml == podium("plan", file, "--drain", "n1", "-o", "json").json


def test_html_is_one_page_that_loads_nothing(podium: Podium, write: Files) -> None:
    page = podium("plan", write(ITEMS), "--drain", "n1", "-o", "html").out

    assert page.startswith("<!doctype html>")
    assert "<svg" in page
    assert "src=" not in page
    assert "://" not in page


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ([], "there is no change to plan"),
        (["--drain", "n9"], "--drain n9: there is no node 'n9'; known: n1, n2, n3"),
        (["--scale", "web=3"], "--scale web=3: names no object"),
        (["--add", "n1"], "--add n1: does not say which nodes to add"),
        (["--apply", "nowhere.yaml"], "nowhere.yaml"),
        (["--apply", os.devnull], "holds no object"),
        (["--replace", "n1", "--surge", "0"], "'--surge': 0 is not in the range x>=1"),
        (["--drain", "n1", "--surge", "2"], "--surge says how many nodes --replace replaces"),
        (["--drain", "n1", "--context", "x"], "--context is for a live cluster; leave out FILES"),
        (
            ["--drain", "n1", "--limit", "0"],
            "'--limit': '0' is not more than 0; 10m would be a duration",
        ),
    ],
)
def test_bad_input_is_one_sentence(
    podium: Podium, write: Files, arguments: list[str], what: str
) -> None:
    result = podium("plan", write(ITEMS), *arguments)

    assert result.code == 2
    assert result.out == ""
    assert len(result.err.splitlines()) == 1
    assert what in result.err


@pytest.mark.parametrize(
    "command", [["plan", "--drain", "n1", "--drain", "n2"], ["plan", "--lose-each", "zone"]]
)
def test_an_interrupt_prints_what_is_known_and_exits_130(
    podium: Podium, write: Files, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    made: list[Any] = []

    def interrupted(work: Callable[..., Any]) -> Callable[..., Any]:
        def first_only(*given: Any, **more: Any) -> Any:
            if made:
                raise KeyboardInterrupt
            made.append(work(*given, **more))
            return made[0]

        return first_only

    monkeypatch.setattr(Applier, "apply", interrupted(Applier.apply))
    monkeypatch.setattr("podium.what_if.survive.survival.lose_domain", interrupted(lose_domain))

    result = podium(command[0], write(ITEMS), *command[1:])

    assert result.code == 130
    assert result.err.splitlines() == [
        "podium: note: interrupted; what follows is what was found so far"
    ]
    assert "interrupted" in result.out
    assert len(made) == 1


def test_files_without_nodes_are_refused(podium: Podium, write: Files) -> None:
    result = podium("plan", write([pod("a")]), "--drain", "n1")

    assert result.code == 2
    assert "holds no node" in result.err


def test_survive_has_the_worst_loss_first(podium: Podium, write: Files) -> None:
    items = [*ITEMS, node("n4", "a", cpu="8"), workload("Deployment", "big", 1, cpu="7")]

    result = podium("plan", write(items), "--lose-each", "zone", "--exit-code")

    assert result.code == 1
    header = next(number for number, line in enumerate(result.lines) if line.startswith("LOST"))
    assert result.lines[header + 1].split()[0] == "a"
    assert "Insufficient cpu" in result.out


def test_survive_as_json_follows_the_schema(podium: Podium, write: Files) -> None:
    file = write([*ITEMS, pod("bare", nodeName="n1")])

    result = podium(
        *("plan", file, "--lose-each", "kubernetes.io/hostname", "--exit-code", "-o", "json")
    )

    assert problems(result.json, schema("survival"), schema("survival")) == []
    assert msgspec.convert(result.json, Survival).domains[0].value == "n1"
    assert result.code == 1


def test_survive_names_the_labels_there_are(podium: Podium, write: Files) -> None:
    result = podium("plan", write(ITEMS), "--lose-each", "topology.kubernetes.io/zon")

    assert result.code == 2
    assert "did you mean topology.kubernetes.io/zone?" in result.err


def test_consolidate_prints_the_commands(podium: Podium, write: Files) -> None:
    items = [*ITEMS[:3], workload("Deployment", "web", 3)]

    result = podium("plan", write(items), "--consolidate")
    as_json = podium("plan", write(items), "--consolidate", "-o", "json").json

    assert result.code == 0
    assert "2 of 3 nodes can be emptied" in result.lines[0]
    assert set(as_json["commands"]) < set(result.lines)
    assert as_json["kind"] == "Consolidation"
    assert as_json["atLeast"] == 1


def test_consolidate_stands_alone(podium: Podium, write: Files) -> None:
    result = podium("plan", write(ITEMS), "--consolidate", "--drain", "n1")

    assert result.code == 2
    assert "--consolidate makes changes of its own" in result.err


def test_only_what_becomes_worse_fails_the_gate(podium: Podium, write: Files) -> None:
    file = write([*ITEMS, pod("huge", cpu="64")])

    assert podium("plan", file, "--drain", "n1", "--exit-code").code == 0
    assert podium("plan", file, "--drain", "n1", "--exit-code=any").code == 1


@pytest.mark.parametrize(
    "command", [["plan", "--drain", "n1.eu.internal"], ["plan", "--lose-each", "zone"]]
)
@pytest.mark.parametrize("columns", [80, 60])
def test_tables_are_no_wider_than_the_terminal(
    podium: Podium,
    write: Files,
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    columns: int,
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    nodes = [node(f"n{number}.eu.internal", "abc"[number]) for number in range(3)]

    result = podium(command[0], write([*nodes, ITEMS[-1]]), *command[1:])

    tables = result.lines[1:]
    assert max(map(len, tables)) <= columns


def test_names_of_nodes_lose_what_they_have_in_common(podium: Podium, write: Files) -> None:
    nodes = [node(f"n{number}.eu.internal") for number in range(3)]

    file = write([*nodes, ITEMS[-1]])
    result = podium("plan", file, "--drain", "n1.eu.internal")
    whole = podium("plan", file, "--drain", "n1.eu.internal", "-o", "json").json

    assert result.lines[1] == "names of nodes end in .eu.internal, which is left out"
    assert "eu.internal" not in "\n".join(result.lines[2:])
    assert whole["moved"][0]["fromNode"] == "n1.eu.internal"
