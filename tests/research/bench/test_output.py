"""Measurements as a table, as data and as a chart."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from podium_research.bench.chart_page import html, svg
from podium_research.bench.measurement import Result, Window
from podium_research.bench.text_table import result_table, three_digits

SVG = "{http://www.w3.org/2000/svg}"


def made(name: str = "Case/Size") -> Result:
    return Result(
        name,
        "v1",
        nodes=5000,
        existing=10,
        pods=1000,
        placed=999,
        victims=2,
        seconds=0.05,
        cpu_seconds=0.04,
        latencies_ms=(0.045, 1.5, 123.4),
        peak_bytes=48 * 2**20,
        windows=[Window(0.02, 25_000.0), Window(0.05, 16_666.7)],
    )


SKIPPED = Result("Case/Other", "v1", skipped="v1 has no Rule")


def test_a_row_per_workload_and_a_line_for_what_was_skipped() -> None:
    lines = list(result_table([made(), SKIPPED]))

    assert [line.split() for line in lines[1:2]] == [
        ["Case/Size", "5000", "10", "1000", "999", "20,000", "0.040", "0.045", "1.500", "123", "48"]
    ]
    assert lines[0].split()[:5] == ["WORKLOAD", "NODES", "EXISTING", "PODS", "PLACED"]
    assert lines[0].endswith("P99 MS   PEAK MIB")
    assert lines[2] == "Case/Other: skipped, v1 has no Rule"


def test_without_a_measurement_there_is_no_header() -> None:
    assert list(result_table([SKIPPED])) == ["Case/Other: skipped, v1 has no Rule"]


def test_names_cannot_steer_the_terminal() -> None:
    [_, line] = result_table([made("a\x1b[31mb")])

    assert line.startswith("a\\x1b[31mb")


@pytest.mark.parametrize(
    ("number", "text"), [(0.0456, "0.046"), (9.99, "9.990"), (12.34, "12.3"), (1234.5, "1,234")]
)
def test_numbers_are_short(number: float, text: str) -> None:
    assert three_digits(number) == text


def test_data_has_every_figure() -> None:
    assert made().as_dict() == {
        "workload": "Case/Size",
        "profile": "v1",
        "path": "fast",
        "nodes": 5000,
        "existingPods": 10,
        "pods": 1000,
        "placed": 999,
        "victims": 2,
        "seconds": 0.05,
        "podsPerSecond": 20000.0,
        "cpuMsPerPod": 0.04,
        "latencyMs": {"p50": 0.045, "p90": 1.5, "p99": 123.4},
        "peakMemoryMiB": 48.0,
        "throughput": [
            {"seconds": 0.02, "podsPerSecond": 25000.0},
            {"seconds": 0.05, "podsPerSecond": 16666.7},
        ],
    }
    assert SKIPPED.as_dict() == {
        "workload": "Case/Other",
        "profile": "v1",
        "skipped": "v1 has no Rule",
    }


def test_a_result_of_nothing_has_figures_too() -> None:
    assert Result("x", "v1").as_dict()["podsPerSecond"] == 0
    assert Result("x", "v1").as_dict()["cpuMsPerPod"] == 0


def test_a_chart_has_a_panel_per_measured_workload() -> None:
    drawing = ET.fromstring(svg([made("A/1"), SKIPPED, made("<B>/2")]))  # noqa: S314  our own text
    titles = [text.text for text in drawing.iter(f"{SVG}text") if text.get("class") == "title"]
    lines = [line.get("points") for line in drawing.iter(f"{SVG}polyline")]

    assert titles == ["A/1", "<B>/2"]
    # Two stretches of time: a step each.
    assert [len(str(points).split()) for points in lines] == [4, 4]


def test_a_chart_of_nothing_is_still_a_chart() -> None:
    assert ET.fromstring(svg([SKIPPED])).tag == f"{SVG}svg"  # noqa: S314  our own text


def test_a_page_has_the_chart_and_the_figures() -> None:
    text = html([made("<A>"), SKIPPED], "podium & co")

    assert "<title>podium &amp; co</title>" in text
    assert "<td>&lt;A&gt;</td>" in text
    assert "skipped: v1 has no Rule" in text
    assert "<svg" in text
