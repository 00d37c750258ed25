"""Tables of an explanation."""

from __future__ import annotations

import pytest

from podium.render.reports.explanation_tables import common_domain


@pytest.mark.parametrize(
    ("names", "ending"),
    [
        (["a.eu.compute.internal", "b.eu.compute.internal"], ".eu.compute.internal"),
        (["xa.eu.compute.internal", "ya.eu.compute.internal"], ".eu.compute.internal"),
        (["a.x", "b.x"], ""),
        (["one.eu.compute.internal"], ""),
        (["a", "b"], ""),
        ([], ""),
    ],
)
def test_what_all_names_end_in(names: list[str], ending: str) -> None:
    assert common_domain(names) == ending
