"""A decision that is played: in the file of `explain -o html`, and on the pages of a lab."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import builders as b
import podium
from podium.render.reports.explanation_page import explanation_page
from web.playground import Served

ROOT = Path(__file__).parents[2]
COURSE = ROOT / "examples" / "kube-scheduler"


def written(folder: Path, pod: str, chapter: str, generation: str) -> Path:
    objects = podium.read([str(COURSE / chapter / "cluster.yaml")])
    found = podium.explain(objects, pod, podium.default_profile(generation), traced=True)
    file = folder / "decision.html"
    file.write_text(explanation_page(found), "utf-8")
    return file


@pytest.fixture
def offline(browser: Browser) -> Iterator[Page]:
    """A narrow, dark page without a network; it must ask for nothing and complain of nothing."""
    context = browser.new_context(
        viewport={"width": 390, "height": 800}, color_scheme="dark", offline=True
    )
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
    page.on("request", lambda asked: complaints.append(asked.url))
    yield page
    context.close()
    assert [each for each in complaints if not each.startswith("file:")] == []


def test_a_file_is_played_by_keyboard_alone(offline: Page, tmp_path: Path) -> None:
    offline.goto(written(tmp_path, "follower", "nominated-pods", "v1.36").as_uri())
    player = offline.locator("#player")
    player.get_by_role("button", name="Forward", exact=True).focus()
    said = []
    for _ in range(4):
        said.append(player.locator(".say").inner_text())
        offline.keyboard.press("ArrowRight")

    assert said[0] == "default/follower is to get one of 2 nodes."
    assert "with the pods nominated to it, default/vip: it passes" in said[2]
    assert "without them: InterPodAffinity rejects it" in said[3]
    offline.keyboard.press("ArrowLeft")
    offline.keyboard.press("ArrowLeft")
    expect(player.locator(".guest")).to_have_text("+ default/vip")
    offline.keyboard.press("ArrowRight")
    expect(player.locator(".guest")).to_have_count(0)
    offline.keyboard.press("End")
    expect(player.get_by_role("button", name="Forward", exact=True)).to_be_disabled()
    expect(player.locator(".tile.out")).to_have_count(2)
    assert offline.evaluate("document.documentElement.scrollWidth") <= 390


def test_scores_rescale_and_add_up_to_the_total(offline: Page, tmp_path: Path) -> None:
    offline.goto(written(tmp_path, "p", "map-and-reduce", "v1.13").as_uri())
    player = offline.locator("#player")
    titles: list[str] = []
    forward = player.get_by_role("button", name="Forward", exact=True)
    while True:
        title = player.locator("h3").inner_text()
        titles.append(title)
        n5 = player.locator(".tile", has_text="n5")
        if title == "InterPodAffinityPriority: Map":
            expect(n5).to_contain_text("raw 5")
        if title == "InterPodAffinityPriority: Reduce × 1":
            expect(n5).to_contain_text("score 3")
            expect(player.locator(".say")).to_contain_text("⌊10 × (")
        if title == "The sum":
            expect(n5).to_contain_text("total 100041")
        if forward.is_disabled():
            break
        forward.click()

    assert titles[-1] == "Chosen: n20"
    expect(player.locator(".tile.chosen")).to_contain_text("n20")


def test_playing_goes_on_and_pauses(offline: Page, tmp_path: Path) -> None:
    offline.goto(written(tmp_path, "p", "preemption", "v1.13").as_uri())
    player = offline.locator("#player")
    player.get_by_role("button", name="Play", exact=True).click()
    expect(player.locator(".position")).not_to_have_text("1 / 14")
    player.get_by_role("button", name="Pause", exact=True).click()
    where = player.locator(".position").inner_text()
    offline.keyboard.press("End")

    assert where != "1 / 14"
    expect(player.locator("h3")).to_have_text("Nominated: a")
    expect(player.locator(".tile", has_text="a-low")).to_have_count(1)


def test_five_thousand_nodes_are_grouped(offline: Page, tmp_path: Path) -> None:
    nodes = [b.node(f"n{i:04}", cpu="1" if i % 2 else "4") for i in range(5000)]
    wanted = b.pod("p", requests={"cpu": "2"})
    found = podium.explain(
        b.objects(*nodes, wanted), "p", podium.default_profile("v1.13"), traced=True
    )
    file = tmp_path / "many.html"
    file.write_text(explanation_page(found), "utf-8")
    offline.goto(file.as_uri())
    player = offline.locator("#player")
    player.get_by_role("button", name="Forward", exact=True).focus()
    offline.keyboard.press("End")

    expect(player.locator(".tile.group.out")).to_contain_text("2500 nodes")
    expect(player.locator(".tile.group.out")).to_contain_text("Insufficient cpu")
    assert player.locator(".tile").count() < 40


def test_a_decision_of_a_lab_is_played_on_its_page(page: Page, site: Served) -> None:
    found = site.do(lambda playground: playground.page_data.find_pods("shop/web"))
    page.goto(f"{site.url}#/pods/{found[0]['pod']}")
    page.get_by_text("Step by step").click()
    player = page.locator(".player")
    player.get_by_role("button", name="To the end", exact=True).click()

    expect(player.locator("h3")).to_contain_text("Chosen: ")


def test_a_reason_leads_to_its_page(page: Page, site: Served) -> None:
    page.goto(f"{site.url}#/pods/batch/giant")
    page.locator("a.reason", has_text="Insufficient cpu").first.click()

    expect(page.locator("#insufficient-resource")).to_be_visible()
