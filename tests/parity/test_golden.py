"""Every recorded decision of kube-scheduler, replayed: zero differences, nothing filtered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from podium.past.recordings.comparison import Difference
from podium.past.recordings.replay import replay

RECORDINGS = Path(__file__).parents[1] / "golden" / "v1.13"
FILES = sorted(RECORDINGS.glob("*.jsonl"))
#: Scenarios and attempts of each file, as the README of the recordings counts them.
COUNTS = {
    "conditions": (36, 247),
    "image_locality": (36, 197),
    "interpod_affinity": (44, 284),
    "mixed": (12, 545),
    "node_affinity_preferred": (36, 168),
    "policy_variants": (60, 317),
    "ports": (36, 245),
    "preemption": (48, 221),
    "prefer_avoid_pods": (36, 242),
    "resource_priorities": (36, 221),
    "resources": (40, 216),
    "selectors": (36, 204),
    "service_affinity": (36, 204),
    "spreading": (36, 245),
    "taints": (36, 220),
    "volumes": (45, 317),
}


def scenarios(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def shown(difference: Difference) -> str:
    place = f"{difference.scenario}: {difference.where}"
    return f"{place}\n  expected {difference.expected!r}\n  got      {difference.got!r}"


def test_no_recording_is_missing() -> None:
    assert [file.stem for file in FILES] == sorted(COUNTS)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_replaying_a_recording_finds_no_difference(file: Path) -> None:
    replayed = [replay(scenario) for scenario in scenarios(file)]

    differences = [shown(d) for one in replayed for d in one.differences]
    assert not differences, f"{len(differences)} differences\n" + "\n".join(differences)
    assert (len(replayed), sum(one.steps for one in replayed)) == COUNTS[file.stem]
