"""The page of a pod group in a lab: its pods, what is missing, and its last cycle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from manifests import node
from web.conftest import watched
from web.test_lab import Lab

ROOT = Path(__file__).parents[2]
GATED = ("--profile", "v1.37", "--feature-gates", "GenericWorkload=true")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A lab with a gang of three pods and room for two."""
    made = Lab(tmp_path, "-f", str(ROOT / "examples/pod-groups/cluster.yaml"), *GATED)
    yield made
    made.stop()


@pytest.fixture
def page(browser: Browser, lab: Lab) -> Iterator[Page]:
    with watched(browser, lab.page, ".tile", origin=lab.server) as page:
        yield page


def test_a_group_is_one_thing_on_a_page(page: Page, lab: Lab) -> None:
    page.click("nav >> text=Pending")
    page.click("tr a >> text=default/w2")
    expect(page.get_by_text("preemption is off")).to_have_count(0)  # it is the group that preempts
    page.click("article a >> text=default/train")

    expect(page.locator("h1")).to_have_text("Pod group default/train: 0 of 3 pods have a node")
    expect(page.get_by_text("3 must have a node, or none gets one")).to_be_visible()
    expect(page.get_by_text("3 more pods needed.")).to_be_visible()
    rows, cycle = page.locator("tbody tr"), page.locator("section", has_text="Last cycle")
    expect(rows).to_have_count(3)
    expect(rows.filter(has_text="default/w0")).to_contain_text("fitted on n1, undone")
    expect(rows.filter(has_text="default/w2")).to_contain_text("2 Insufficient cpu")
    expect(cycle).to_contain_text("2 pods of the group fit together: 1 more needed")
    expect(cycle).to_contain_text("undone because the group does not fit")
    expect(cycle).to_contain_text("no event wakes a group")

    lab.create("/api/v1/nodes", node("n3", "2"))

    expect(page.locator("h1")).to_contain_text("3 of 3 pods have a node")
    expect(cycle).to_contain_text("is scheduled: 3 pods get a node")
    expect(page.get_by_text("PodGroupInitiallyScheduled is True: Scheduled.")).to_be_visible()
