"""Every recorded decision of kube-scheduler, replayed: zero differences, nothing filtered."""

from __future__ import annotations

import pytest

from parity.recordings import GOLDEN, files, read, shown
from podium.past.recordings.parity_report import verify
from podium.past.recordings.replay import replay
from podium.releases import RELEASES

#: Scenarios and steps of each file, as the READMEs of the recordings count them.
COUNTS = {
    "v1.13": {
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
    },
    "v1.36": {
        "image_locality": (40, 132),
        "interpod_affinity": (40, 123),
        "mixed": (12, 497),
        "node_affinity": (40, 123),
        "ports": (40, 177),
        "preemption": (40, 147),
        "profiles": (40, 191),
        "resource_scores": (40, 176),
        "resources": (40, 118),
        "taints": (40, 145),
        "topology_spread": (40, 113),
        "unschedulable": (40, 159),
        "volumes": (40, 139),
    },
    "v1.36-devices": {
        "admin": (25, 109),
        "basic": (25, 95),
        "constraints": (25, 74),
        "consumable": (25, 103),
        "errors": (25, 80),
        "extended": (25, 102),
        "mixed": (25, 383),
        "partitionable": (25, 115),
        "preemption": (25, 117),
        "prioritized": (25, 98),
        "shared_claims": (25, 103),
        "taints": (25, 115),
    },
}
#: Scenarios and steps of the folders of other releases.
IN_ALL = {
    "v1.34": (471, 2168),
    "v1.34-devices": (124, 478),
    "v1.34-releases": (283, 617),
    "v1.35": (484, 2208),
    "v1.35-devices": (125, 481),
    "v1.35-releases": (295, 640),
    "v1.36-releases": (355, 764),
    "v1.37": (492, 2240),
    "v1.37-devices": (300, 1494),
    "v1.37-releases": (355, 767),
}


@pytest.mark.parametrize("folder", COUNTS)
def test_no_recording_is_missing(folder: str) -> None:
    assert [file.stem for file in files(folder)] == sorted(COUNTS[folder])


def test_every_generation_has_recordings() -> None:
    folders = {folder.name.partition("-")[0] for folder in GOLDEN.iterdir()}

    assert folders >= {each.name for each in RELEASES}


def test_the_readme_counts_the_same() -> None:
    rows = [line.split("|") for line in (GOLDEN / "v1.36/README.md").read_text().splitlines()]
    told = {
        cells[1].strip().removesuffix(".jsonl"): (int(cells[2]), int(cells[3]))
        for cells in rows
        if len(cells) > 3 and cells[1].strip().endswith(".jsonl")
    }

    assert told == COUNTS["v1.36"]


@pytest.mark.parametrize(
    ("folder", "file"), [(folder, file) for folder, counts in COUNTS.items() for file in counts]
)
def test_replaying_a_recording_finds_no_difference(folder: str, file: str) -> None:
    replayed = [replay(scenario) for scenario in read(GOLDEN / folder / f"{file}.jsonl")]

    differences = [shown(d) for one in replayed for d in one.differences]
    assert not differences, f"{len(differences)} differences\n" + "\n".join(differences)
    assert (len(replayed), sum(one.steps for one in replayed)) == COUNTS[folder][file]


@pytest.mark.parametrize("folder", IN_ALL)
def test_replaying_other_releases_finds_no_difference(folder: str) -> None:
    report = verify([str(GOLDEN / folder)])

    assert report.first == []
    total = report.total()
    assert (total.scenarios, total.steps, total.differences) == (*IN_ALL[folder], 0)
