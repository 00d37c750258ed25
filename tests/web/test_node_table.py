"""The table of the nodes of a decision: the same on the page of a pod and in an exported file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import builders as b
import podium
from podium.render.reports.explanation_page import explanation_page
from web.conftest import WORLD, watched
from web.playground import Served


@pytest.fixture(params=["page", "file"])
def shown(
    browser: Browser, site: Served, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Page]:
    """A decision about a pod of the shop: on its page, and in a file that is opened offline."""
    live = request.param == "page"
    if live:
        pod = site.do(lambda p: p.page_data.find_pods("shop/web"))[0]["pod"]
        url = f"{site.url}#/pods/{pod}"
    else:
        objects = podium.read([WORLD])
        objects.pods.append(b.pod("web", namespace="shop", requests={"cpu": "1"}))
        found = podium.explain(objects, "shop/web", podium.default_profile("v1.13"))
        file = tmp_path / "decision.html"
        file.write_text(explanation_page(found), "utf-8")
        url = file.as_uri()
    size = {"width": 1400, "height": 900}
    origin = site.url if live else url
    winner = ".heat-map tr.winner"
    with watched(browser, url, winner, origin=origin, viewport=size, offline=not live) as page:
        yield page


def test_nodes_are_found_sorted_and_compared(shown: Page) -> None:
    rows, panel = shown.locator(".heat-map tbody tr"), shown.locator(".node-details")
    expect(rows).to_have_count(4)
    expect(panel).to_contain_text("is the one that was chosen")
    rows.nth(3).locator("td.total").click()
    expect(panel).to_contain_text(re.compile("behind|has the same total"))
    expect(panel.locator("table tbody tr")).to_have_count(
        shown.locator(".heat-map thead th").count() - 2
    )

    shown.get_by_role("button", name="Node", exact=True).click()
    heading = shown.locator(".heat-map thead th").first
    expect(heading).to_have_attribute("aria-sort", "ascending")
    expect(rows.first).to_have_attribute("data-name", "a-1")
    shown.get_by_role("button", name="Node", exact=True).click()
    expect(rows.first).to_have_attribute("data-name", "c-1")

    shown.locator("select", has_text="rejected nodes").select_option("rejected nodes")
    expect(rows).to_have_count(2)
    rows.first.locator("td").click()
    expect(panel).to_contain_text("Rejected by")
    shown.get_by_label("Find", exact=True).fill("b-2")
    expect(rows).to_have_count(1)
    expect(panel).to_contain_text("PodToleratesNodeTaints")
    expect(panel).to_contain_text("dedicated")
    shown.get_by_label("Find", exact=True).fill("nobody")
    expect(rows).to_have_count(0)


def test_a_formula_is_shown_by_keyboard(shown: Page) -> None:
    panel = shown.locator(".node-details")
    shown.locator(".heat-map tbody tr").first.focus()
    first = shown.evaluate("document.activeElement.dataset.name")
    shown.keyboard.press("ArrowRight")
    expect(panel.locator(".formula")).to_contain_text(f" on {first}")
    expect(panel.locator(".formula")).to_contain_text(" × ")
    shown.keyboard.press("ArrowDown")
    expect(panel.locator(".formula")).not_to_contain_text(f" on {first}")
    assert shown.evaluate("document.activeElement.tagName") == "TD"
    shown.keyboard.press("ArrowLeft")
    expect(panel.locator(".formula")).to_have_count(0)
    assert shown.evaluate("document.activeElement.tagName") == "TR"


def test_a_pod_that_fits_nowhere_has_the_table_too(page: Page, site: Served) -> None:
    page.goto(f"{site.url}#/pods/batch/giant")
    expect(page.locator(".heat-map tbody tr")).to_have_count(6)
    page.get_by_label("Find", exact=True).fill("b-1")
    expect(page.locator(".node-details")).to_contain_text("Insufficient cpu")
    expect(page.locator(".node-details")).to_contain_text("wants 16")


def test_a_file_with_five_thousand_nodes_has_few_rows(browser: Browser, tmp_path: Path) -> None:
    nodes = [b.node(f"n{i:04}", cpu=str(2 + i % 5)) for i in range(5000)]
    wanted = b.pod("p", requests={"cpu": "1"})
    found = podium.explain(b.objects(*nodes, wanted), "p", podium.default_profile("v1.13"))
    file = tmp_path / "many.html"
    file.write_text(explanation_page(found), "utf-8")
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(file.as_uri())
    page.get_by_role("button", name="Show all").click()
    assert page.locator(".heat-map tbody tr").count() < 100
    page.locator(".heat-map tbody tr").first.focus()
    page.keyboard.press("End")
    last = page.locator(".heat-map .rank").last
    expect(last).to_have_text(f"{len(found.decision.feasible):,}")
    expect(last).to_be_in_viewport()
    context.close()
