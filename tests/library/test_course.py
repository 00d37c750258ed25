"""The course: every chapter has what it needs, and a lab can be started with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from podium.errors import InputError
from podium.lab.contents.documents import documents
from podium.lab.contents.loader import load
from podium.lab.registry.registry import Registry
from podium.library.documentation import Chapter, chapter, chapters, course_folder
from podium.library.profile_source import ProfileSource

#: What the course must have a chapter about.
MECHANISMS = {
    "selectors", "node-affinity", "pod-affinity", "service-affinity", "service-anti-affinity",
    "selector-spreading", "taints", "resources", "image-locality", "prefer-avoid-pods",
    "ports-and-disks", "volume-limits-and-zones", "predicate-order", "always-check-all", "ties",
    "nominated-pods", "preemption", "extenders", "policy-files", "equivalence-cache",
    "map-and-reduce",
}  # fmt: skip


def test_every_mechanism_has_a_chapter_and_the_index_lists_every_folder() -> None:
    folder = course_folder()
    assert folder is not None

    assert {each.name for each in chapters()} == MECHANISMS
    assert {each.name for each in folder.iterdir() if each.is_dir()} == MECHANISMS
    chinese = (folder.parents[1] / "docs" / "zh" / "README.md").read_text("utf-8")
    assert set(re.findall(r"^\| \[([\w-]+)\]", chinese, re.MULTILINE)) == MECHANISMS


@pytest.mark.parametrize("found", chapters(), ids=lambda each: each.name)
def test_a_chapter_asks_shows_and_changes_something(found: Chapter) -> None:
    page = (found.folder / "README.md").read_text("utf-8")

    assert found.question.endswith((".", "?", ":"))
    assert page.count("```console") >= 2
    assert "**Change it.**" in page


@pytest.mark.parametrize("found", chapters(), ids=lambda each: each.name)
def test_a_lab_takes_the_cluster_and_the_rules_of_a_chapter(found: Chapter) -> None:
    registry = Registry()
    load(registry, documents(Path(found.cluster).read_bytes(), found.cluster))
    rules = (found.rules,) if found.rules else ()
    profile = None if found.policy else "v1.13"

    assert registry.list("Node")
    assert (
        ProfileSource(policy=found.policy, profile=profile, rules=rules)
        .choose()
        .generation.uses_policies
    )


def test_a_chapter_that_is_not_there_suggests_one() -> None:
    with pytest.raises(InputError, match="did you mean nominated-pods"):
        chapter("nominated")
