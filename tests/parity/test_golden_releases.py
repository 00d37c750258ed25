"""Every recorded decision of the other releases, replayed: zero differences, nothing filtered."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.past.recordings.parity_report import verify
from podium.releases import RELEASES

GOLDEN = Path(__file__).parents[1] / "golden"
#: Scenarios and steps of each folder.
COUNTS = {
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


def test_every_generation_has_recordings() -> None:
    folders = {folder.name.partition("-")[0] for folder in GOLDEN.iterdir()}

    assert folders >= {each.name for each in RELEASES}


@pytest.mark.parametrize("folder", COUNTS)
def test_replaying_recordings_finds_no_difference(folder: str) -> None:
    report = verify([str(GOLDEN / folder)])

    assert report.first == []
    total = report.total()
    assert (total.scenarios, total.steps, total.differences) == (*COUNTS[folder], 0)
    assert report.profiles == [folder.partition("-")[0]]
