"""The flags that all deciding commands share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Files, Podium
from manifests import FIVE, node, pod
from podium.cli.parsing import truth
from podium.library.profile_choice import ChosenProfiles
from podium.library.profile_source import ProfileSource

POLICY = {
    "kind": "Policy",
    "apiVersion": "v1",
    "predicates": [
        {"name": "PodFitsHostPorts", "order": 2},
        {"name": "PodFitsResources", "order": 3},
        {"name": "NoDiskConflict", "order": 5},
        {"name": "PodToleratesNodeTaints", "order": 4},
        {"name": "MatchNodeSelector", "order": 6},
        {"name": "PodFitsHost", "order": 1},
    ],
    "priorities": [
        {"name": "LeastRequestedPriority", "weight": 1},
        {"name": "BalancedResourceAllocation", "weight": 1},
        {"name": "ServiceSpreadingPriority", "weight": 1},
        {"name": "EqualPriority", "weight": 1},
    ],
    "hardPodAffinitySymmetricWeight": 10,
}


@pytest.fixture
def cluster(write: Files) -> str:
    return write([*FIVE, pod("a")])


@pytest.fixture
def policy(write: Files) -> str:
    return write(json.dumps(POLICY), "policy.json")


SERVED = "v1.13, v1.34, v1.35, v1.36, v1.37"


@pytest.mark.parametrize("command", [("schedule",), ("explain", "a")])
def test_a_policy_file_decides(
    podium: Podium, cluster: str, policy: str, command: tuple[str, ...]
) -> None:
    result = podium(*command, cluster, "--policy", policy)

    assert result.code == 0
    assert result.lines[0].startswith(f"v1.13 policy {policy}: 5 nodes")


def test_a_provider_decides(podium: Podium, cluster: str) -> None:
    result = podium("schedule", cluster, "--provider", "ClusterAutoscalerProvider")

    assert result.lines[0].startswith("v1.13 ClusterAutoscalerProvider: ")


def test_a_generation_can_be_named(podium: Podium, cluster: str) -> None:
    assert podium("schedule", cluster, "--profile", "v1.13").lines[0].startswith("v1.13 Default")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (
            ("--profile", "v9"),
            "there is no profile 'v9'; served: v1.13, v1.34, v1.35, v1.36, v1.37",
        ),
        (("--provider", "DefaultProvder"), 'plugin "DefaultProvder" has not been registered; did'),
        (("--policy", "none.json"), "none.json: cannot be read: no such file or directory"),
        (("--provider", "x", "--profile", "y"), "--provider and --profile exclude each other"),
        (("--policy", "x", "--config", "y"), "--policy and --config exclude each other"),
        (("--feature-gates", "PodPriority"), "'PodPriority' is neither Name=true nor Name=false"),
        (("--feature-gates", "PodPriorty=true"), "unknown feature gate 'PodPriorty'; did you mean"),
        (("--percentage-of-nodes-to-score", "101"), "invalid percentageOfNodesToScore: 101"),
        (("--percentage-of-nodes-to-score", "few"), "'few' is not a valid integer"),
        (("--hard-pod-affinity-symmetric-weight", "0"), "invalid hardPodAffinitySymmetricWeight"),
        (("--ties", "coin"), "unknown tie rule 'coin'"),
        (("--no-preemption=perhaps",), "--no-preemption: expected true or false, got 'perhaps'"),
        (("--nopreemption",), "no such option"),
        (("-o", "xml"), "'xml' is not one of"),
    ],
)
@pytest.mark.parametrize("command", [("schedule",), ("explain", "a")])
def test_wrong_flags_exit_2_with_a_sentence(
    podium: Podium, cluster: str, command: tuple[str, ...], flags: tuple[str, ...], sentence: str
) -> None:
    ways = {"--policy", "--provider", "--config", "--profile"}
    classic = () if ways & set(flags) else ("--provider", "DefaultProvider")

    result = podium(*command, cluster, *flags, *classic)

    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("podium: ")
    assert sentence.lower() in result.err.lower()
    assert len(result.err.splitlines()) == 1


CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: packing
"""


def test_a_configuration_decides_for_all_its_schedulers(podium: Podium, write: Files) -> None:
    config = write(CONFIG, "config.yaml")
    pods = [pod("a"), pod("b", schedulerName="packing"), pod("c", schedulerName="x")]
    cluster = write([*FIVE, *pods])

    names = podium("schedule", cluster, "--config", config, "-o", "name").lines
    assert [line.split()[0] for line in names] == ["default/a", "default/b"]

    one = ("--config", config, "--scheduler-name", "packing")
    assert podium("schedule", cluster, *one, "-o", "name").out.startswith("default/b ")
    other = podium("schedule", cluster, "--config", config, "--scheduler-name", "x")
    assert other.code == 2
    assert "has no profile for the scheduler 'x'; it has default-scheduler, packing" in other.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--no-preemption",), True),
        (("--no-preemption=1",), True),
        (("--no-preemption=F",), False),
        (("--no-preemption", "--no-preemption=false"), False),
        (("--no-preemption=false", "--no-preemption"), True),
    ],
)
def test_the_last_mention_of_a_switch_counts(
    podium: Podium, write: Files, arguments: tuple[str, ...], expected: bool
) -> None:
    full = write([node("n", cpu="1"), pod("low", "1", nodeName="n"), pod("vip", "1", priority=1)])

    # A switch takes no value that is not joined to it: the file stays a file.
    assert podium("schedule", *arguments, full, "--exit-code").code == int(expected)


def test_after_two_dashes_nothing_is_a_flag(podium: Podium) -> None:
    result = podium("schedule", "--", "--no-preemption=maybe")

    assert "--no-preemption=maybe: cannot be read" in result.err


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("T", True), ("1", True), ("False", False), ("0", False), ("yes", None)],
)
def test_truth_is_what_go_takes(text: str, value: bool | None) -> None:
    assert truth(text) is value


def chosen(**values: Any) -> ChosenProfiles:
    return ProfileSource(environment={}, **values).choose()


def test_flags_become_options() -> None:
    found = chosen(
        feature_gates=({"PodPriority": False}, {"TaintNodesByCondition": False}),
        percentage_of_nodes_to_score=20,
        hard_pod_affinity_symmetric_weight=7,
        no_preemption=True,
        ties="first",
        scheduler_name="mine",
        profile="v1.13",
    )

    assert found.profile.by_priority is False
    assert found.options.feature_gates == {"PodPriority": False, "TaintNodesByCondition": False}
    assert found.profile.percentage_of_nodes_to_score == 20
    assert found.options.hard_pod_affinity_symmetric_weight == 7
    assert found.profile.preemption is False
    assert (found.profile.ties, found.profile.scheduler_name) == ("first", "mine")


def test_all_nodes_are_scored_and_ties_go_round_unless_told_otherwise() -> None:
    found = chosen(profile="v1.13")

    assert found.profile.percentage_of_nodes_to_score == 100
    assert (found.profile.ties, found.profile.preemption) == ("round-robin", True)
    assert found.profile.by_priority is True


@pytest.mark.parametrize(
    "flags",
    [
        ("--policy", "kubernetes-1.8", "--profile", "v1.13"),
        ("--policy-config-file", "order-example"),
        ("--algorithm-provider", "DefaultProvider", "--profile", "v1.13"),
    ],
)
def test_names_of_kube_scheduler_and_agreeing_flags(
    podium: Podium, cluster: str, flags: tuple[str, ...]
) -> None:
    assert podium("schedule", cluster, *flags).lines[0].startswith("v1.13 ")


def test_a_gate_of_the_other_generation_says_which_flag_is_missing(
    podium: Podium, cluster: str
) -> None:
    result = podium("schedule", cluster, "--feature-gates", "PodPriority=false")

    assert result.code == 2
    assert "it is a gate of v1.13: add --profile v1.13" in result.err


def test_the_default_generation_is_that_of_the_environment_or_a_file(
    podium: Podium, cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert podium("schedule", cluster).lines[0].startswith("v1.37 ")
    (tmp_path / "podium").mkdir()
    file = tmp_path / "podium" / "config.yaml"
    file.write_text("profile: v1.13\n")
    assert podium("schedule", cluster).lines[0].startswith("v1.13 ")
    monkeypatch.setenv("PODIUM_PROFILE", "v1.36")
    assert podium("schedule", cluster).lines[0].startswith("v1.36 ")
    monkeypatch.setenv("PODIUM_PROFILE", "v1.2")
    assert (
        "$PODIUM_PROFILE is 'v1.2'; served: v1.13, v1.34, v1.35, v1.36, v1.37"
        in podium("schedule", cluster).err
    )
    monkeypatch.delenv("PODIUM_PROFILE")
    file.write_text("generation: v1.13\n")
    result = podium("schedule", cluster)
    assert (result.code, "expected only `profile`" in result.err) == (2, True)
