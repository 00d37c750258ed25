"""The chapters of the course."""

from __future__ import annotations

from cli.conftest import Podium


def test_the_chapters_are_listed(podium: Podium) -> None:
    result = podium("help", "course")

    assert result.code == 0
    assert any(line.startswith("nominated-pods ") for line in result.lines)
    found = podium("help", "course", "-o", "json").json
    assert found[0]["name"] == "selectors"
    assert all(each["title"] and each["question"] for each in found)


def test_an_unknown_chapter_is_one_sentence(podium: Podium) -> None:
    result = podium("lab", "--chapter", "nominated")

    assert (result.code, result.err) == (
        2,
        "podium: there is no chapter 'nominated'; did you mean nominated-pods?\n",
    )
