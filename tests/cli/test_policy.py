"""`podium config`: what a Policy makes the scheduler do, or why it is refused."""

from __future__ import annotations

import json

import pytest
import yaml

from cli.conftest import Files, Podium

GOOD = """\
kind: Policy
apiVersion: v1
predicates:
- name: PodFitsPorts
- name: PodFitsHost
  order: 1
- name: ZoneOnly
  argument: {serviceAffinity: {labels: [zone]}}
priorities:
- name: EqualPriority
  weight: 3
- name: ByDisk
  weight: 2
  argument: {labelPreference: {label: disk, presence: true}}
"""


def test_check_shows_what_runs_and_what_does_not(podium: Podium, write: Files) -> None:
    file = write(GOOD, "policy.yaml")

    result = podium("config", "check", file)

    assert (result.code, result.err) == (0, "")
    assert result.lines[0] == f"v1.13 policy {file}"
    assert "Predicates, in the order they run" in result.out
    assert any(line.startswith("HostName ") for line in result.lines)
    assert any(line.startswith("ZoneOnly ") and "order" in line for line in result.lines)
    assert '{"labelPreference":{"label":"disk","presence":true}}' in result.out
    assert "PodFitsPorts" in result.out.partition("Notes")[2]


def test_show_lists_a_provider(podium: Podium) -> None:
    result = podium("config", "show", "--profile", "v1.13")

    assert result.lines[0] == "v1.13 DefaultProvider"
    assert any(
        line.split()[:2] == ["NodePreferAvoidPodsPriority", "10000"] for line in result.lines
    )
    other = podium(
        "config", "show", "--profile", "v1.13", "--provider", "ClusterAutoscalerProvider"
    )
    assert "MostRequestedPriority" in other.out


def test_gates_change_what_is_shown(podium: Podium) -> None:
    flags = ("--feature-gates", "TaintNodesByCondition=false")

    assert "CheckNodeCondition" in podium("config", "show", "--profile", "v1.13", *flags).out
    assert "CheckNodeCondition" not in podium("config", "show", "--profile", "v1.13").out


@pytest.mark.parametrize(
    "command", [("show", "--profile", "v1.13"), ("check", "FILE"), ("show", "FILE")]
)
def test_json_and_yaml_are_the_same_data(
    podium: Podium, write: Files, command: tuple[str, ...]
) -> None:
    file = write(GOOD, "policy.yaml")
    arguments = ["config", *(file if part == "FILE" else part for part in command)]

    data = podium(*arguments, "-o", "json").json

    assert data["profile"].startswith("v1.13 ")
    assert yaml.safe_load(podium(*arguments, "-o", "yaml").out) == data


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param("kind: [", "is not readable YAML", id="truncated"),
        pytest.param(b"\x00", "is binary", id="binary"),
        pytest.param("a: 1\n---\nb: 2\n", "expected one Policy, got 2 documents", id="two"),
        pytest.param('{"kind": "Policy"}', "apiVersion is missing", id="no version"),
        pytest.param(
            json.dumps({"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": "Ports"}]}),
            "Invalid configuration: Predicate type not found for Ports; ",
            id="an unknown name",
        ),
    ],
)
def test_a_refused_file_exits_2_with_a_sentence(
    podium: Podium, write: Files, content: str | bytes, sentence: str
) -> None:
    result = podium("config", "check", write(content, "policy.yaml"), "--profile", "v1.13")

    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("podium: ")
    assert sentence in result.err
    assert len(result.err.splitlines()) == 1


def test_a_missing_file(podium: Podium) -> None:
    result = podium("config", "check", "none.yaml")

    assert (result.code, result.err) == (
        2,
        "podium: none.yaml: cannot be read: no such file or directory\n",
    )


def test_a_policy_may_come_from_standard_input(podium: Podium) -> None:
    assert podium("config", "check", "-", stdin=GOOD.encode()).code == 0


def test_list_shows_everything_that_can_be_named(podium: Podium) -> None:
    result = podium("config", "list", "--profile", "v1.13")

    assert result.code == 0
    assert "PodFitsHost" in result.out
    assert "kubernetes-1.8" in result.out
    found = podium("config", "list", "--profile", "v1.13", "-o", "json").json
    assert len(found["predicates"]) == 23
    assert {each["name"] for each in found["policies"]} >= {"kubernetes-1.8", "order-example"}


def test_a_shipped_policy_is_checked_by_its_name(podium: Podium) -> None:
    found = podium("config", "check", "order-example", "-o", "json").json

    assert [each["order"] for each in found["predicates"]] == [1, None, 2, 3, 4, 5, 6]
    assert [each["runs"] for each in found["predicates"]] == [1, 2, 3, 4, 5, 6, 7]


def test_a_policy_with_rules_of_users_is_checked_with_these(podium: Podium, write: Files) -> None:
    rules = write(
        "from podium.rules import priority\n\n\n"
        "@priority('FewPods')\ndef few(pod, node):\n    return 10\n",
        "own.py",
    )
    file = write(
        "{kind: Policy, apiVersion: v1, priorities: [{name: FewPods, weight: 2}]}", "policy.yaml"
    )

    assert "FewPods" in podium("config", "check", file).err  # unknown without the rules
    result = podium("config", "check", file, "--rules", rules, "-o", "json")

    assert result.code == 0
    assert [each["name"] for each in result.json["priorities"]] == ["FewPods"]
