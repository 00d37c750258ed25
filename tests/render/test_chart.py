"""Charts: round numbers at the axes, and values at their places."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from podium.render.chart import Panel, picture, ticks

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0, 7, [0, 2, 4, 6, 8]),
        (0, 999, [0, 200, 400, 600, 800, 1000]),
        (0, 1001, [0, 500, 1000, 1500]),
        (12, 33, [10, 15, 20, 25, 30, 35]),
        (5, 5, [4, 4.5, 5, 5.5, 6]),
    ],
)
def test_axes_have_round_numbers(low: float, high: float, found: list[float]) -> None:
    assert ticks(low, high) == found


def test_values_are_drawn_at_their_places() -> None:
    panel = Panel((120, 60), (10, 5, 10, 15), (0, 10), (0, 4))

    assert [panel.x(0), panel.x(5), panel.x(10)] == [10, 60, 110]
    assert [panel.y(0), panel.y(1), panel.y(4)] == [45, 35, 5]
    assert (
        panel.line("l", [(0, 4), (10, 0)]) == '<polyline class="l" points="10.0,5.0 110.0,45.0"/>'
    )


def test_a_picture_is_well_formed_and_labels_its_lines() -> None:
    panel = Panel((120, 60), (10, 5, 10, 15), (0, 10), (0, 4))
    parts = [*panel.levels((0, 4), "{}<".format), *panel.columns((5,), "{} s".format)]
    drawn = ET.fromstring(picture(120, 60, "a & b", parts))  # noqa: S314  our own text

    assert drawn.findtext(f"{SVG}title") == "a & b"
    assert [each.text for each in drawn.iter(f"{SVG}text")] == ["0<", "4<", "5 s"]
    assert [each.get("class") for each in drawn.iter(f"{SVG}path")] == ["axis", "grid", "grid"]
