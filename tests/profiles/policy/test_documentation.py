"""The page about policies is right: its policies load, and it knows every name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from podium.generations.predicates import PRIORITIES
from podium.profiles.policy.build import Options, from_policy, parse_policy
from podium.profiles.policy.configured_predicates import BY_NAME, POSITIONS
from podium.profiles.policy.configured_priorities import PROVIDERS
from podium.profiles.policy.feature_gates import GATES

PAGE = (Path(__file__).parents[3] / "docs" / "policy.md").read_text("utf-8")
BLOCKS = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("text", BLOCKS)
def test_its_policies_load(text: str) -> None:
    assert from_policy(parse_policy(text, "docs/policy.md"), Options()).predicates


def test_its_example_of_an_order() -> None:
    made = from_policy(parse_policy(BLOCKS[1], "docs/policy.md"), Options())

    assert [rule.name for rule in made.predicates] == [
        "MatchInterPodAffinity",
        "CheckNodeUnschedulable",
        "PodFitsResources",
        "PodToleratesNodeTaints",
    ]


def test_it_numbers_the_predicates_as_they_run() -> None:
    rows = re.findall(r"^\| (\d+) \| `(\w+)`", PAGE, re.MULTILINE)

    assert {name: int(number) for number, name in rows} == POSITIONS


def test_it_knows_every_name() -> None:
    names = [*BY_NAME, *PROVIDERS]
    names += [priority.name for priority in PRIORITIES]
    names += [gate.name for gate in GATES]

    assert [name for name in names if f"`{name}`" not in PAGE] == []
