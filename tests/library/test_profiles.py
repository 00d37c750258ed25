"""Profiles of both generations by their public constructors, and from a `ProfileSource`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import podium
from podium.generations.known import GENERATIONS
from podium.profiles.policy.configured_priorities import PROVIDERS
from podium.releases import RELEASES, V1_13

DUMP = str(Path(__file__).parents[2] / "examples" / "dump.json")

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: packing
"""
RULE = """
from podium.rules import priority

@priority("ByName", depends="node")
def by_name(pod, node):
    return len(node.name)
"""


@pytest.fixture
def rules(tmp_path: Path) -> str:
    path = tmp_path / "by_name.py"
    path.write_text(RULE, "utf-8")
    return str(path)


def priorities(profile: podium.Profile) -> list[str]:
    return [weighted.name for weighted in profile.priorities]


def test_the_table_of_generations_is_true() -> None:
    """It repeats the providers, so that `podium version` need not import the rules."""
    assert tuple(PROVIDERS) == V1_13.providers
    assert [podium.default_profile(each.name).name for each in RELEASES] == [
        "v1.13 DefaultProvider",
        "v1.34 default-scheduler",
        "v1.35 default-scheduler",
        "v1.36 default-scheduler",
        "v1.37 default-scheduler",
    ]
    assert list(GENERATIONS) == [each.name for each in RELEASES]


def test_one_generation_is_the_default() -> None:
    assert podium.default_profile().name == podium.default_profile("v1.37").name
    with pytest.raises(podium.ConfigError, match="there is no profile 'v9'") as refused:
        podium.default_profile("v9")
    assert refused.value.hint == "served: v1.13, v1.34, v1.35, v1.36, v1.37"


def test_a_policy_is_text_or_a_document() -> None:
    policy = {"apiVersion": "v1", "priorities": [{"name": "EqualPriority", "weight": 3}]}

    by_text = podium.from_policy(json.dumps(policy))
    by_document = podium.from_policy(podium.parse_policy(json.dumps(policy)))

    assert priorities(by_text) == priorities(by_document) == ["EqualPriority"]
    assert by_text.name == "v1.13 policy"
    assert podium.from_policy(policy, where="p.json").name == "v1.13 policy p.json"


def test_a_configuration_is_text_a_document_or_parsed() -> None:
    document: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": "packing"}],
    }

    for config in (CONFIG, document, podium.parse_config(CONFIG)):
        profiles = podium.from_config(config)
        assert [each.scheduler_name for each in profiles] == ["default-scheduler", "packing"]


def test_user_rules_are_in_every_profile(rules: str) -> None:
    options = podium.Options(rules=podium.load_rules([rules]))

    for profile in (
        podium.default_profile("v1.13", options),
        podium.default_profile("v1.36", options),
        podium.from_provider(options=options),
        *podium.from_config(CONFIG, options),
    ):
        assert "ByName" in priorities(profile)


def test_feature_gates_of_the_options_count_in_a_configuration() -> None:
    options = podium.Options(feature_gates={"NoSuchGate": True})

    with pytest.raises(podium.ConfigError, match="unrecognized feature gate: NoSuchGate"):
        podium.from_config(CONFIG, options)


def test_a_source_of_files(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG, "utf-8")

    chosen = podium.ProfileSource(config=str(path)).choose()
    assert chosen.schedulers == {"default-scheduler", "packing"}
    assert chosen.config is not None
    assert not chosen.generation.uses_policies

    named = podium.ProfileSource(config=str(path), scheduler_name="packing").choose()
    assert [each.scheduler_name for each in named.profiles] == ["packing"]


def test_the_environment_is_that_of_the_source() -> None:
    environment = {"KUBE_MAX_PD_VOLS": "7"}

    chosen = podium.ProfileSource(profile="v1.13", environment=environment).choose()

    assert chosen.options.max_pd_volumes == "7"
    assert chosen.generation.uses_policies


def test_failures_of_user_rules_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "broken.py"
    path.write_text(RULE.replace("len(node.name)", "1 // 0"), "utf-8")
    by_source = podium.ProfileSource(rules=(str(path),)).choose().profile
    by_options = podium.default_profile(
        options=podium.Options(rules=podium.load_rules([str(path)]))
    )

    for profile in (by_source, by_options):
        caplog.clear()
        list(podium.simulate(podium.read([DUMP]), profile))
        assert caplog.records[0].name == "podium"
        assert "rule ByName failed for pod default/api-5d4f8c7b6-w4m9t" in caplog.text
