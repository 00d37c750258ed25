"""A cluster of five thousand nodes and fifty thousand pods: drawn at once, searched, opened."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from builders import node, pod
from podium.objects.reading.collection import Objects
from waiting import until
from web.conftest import watched
from web.playground import Playground, Served

pytestmark = pytest.mark.slow

NODES, PODS = 5_000, 50_000
ZONE = "failure-domain.beta.kubernetes.io/zone"


@pytest.fixture(scope="module")
def large() -> Iterator[Served]:
    playground = Playground(recording=False)
    nodes = [
        node(f"node-{i:04}", cpu="8", memory="32Gi", labels={ZONE: "abc"[i % 3]})
        for i in range(NODES)
    ]
    pods = [
        pod(
            f"app-{i}",
            namespace=f"team-{i % 7}",
            node=f"node-{i % NODES:04}",
            labels={"app": f"app-{i % 40}"},
            requests={"cpu": "100m", "memory": "256Mi"},
        )
        for i in range(PODS)
    ]
    playground.load(Objects({"Node": nodes, "Pod": pods}))
    with Served(playground).running() as served:
        yield served


@pytest.fixture
def page(browser: Browser, large: Served) -> Iterator[Page]:
    with watched(browser, large.url, ".squares canvas") as page:
        yield page


@pytest.mark.parametrize("path", ["", "podium/v1/cluster", "podium/v1/nodes/node-0007"])
def test_every_answer_takes_less_than_a_second_of_cpu(large: Served, path: str) -> None:
    began = time.process_time()  # the server is a thread of this process
    with urllib.request.urlopen(f"{large.url}{path}", timeout=20) as answer:
        answer.read()

    assert time.process_time() - began < 1


def test_all_nodes_are_drawn_as_squares(page: Page) -> None:
    expect(page.locator(".squares canvas")).to_have_count(3)
    expect(page.locator(".zone h2").first).to_contain_text("1,667 nodes")
    expect(page.locator(".squares canvas").first).to_have_css("height", re.compile(r"^\d{3,}"))
    drawn = page.evaluate(
        """() => {
          const canvas = document.querySelector('.squares canvas');
          const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
          return new Set(new Uint32Array(data.buffer)).size;
        }"""
    )
    assert drawn >= 3, "ground, track and load"


def test_a_square_opens_its_node(page: Page) -> None:
    canvas = page.locator(".squares canvas").first
    canvas.hover(position={"x": 30, "y": 10})
    expect(page.locator(".tooltip")).to_contain_text("node-0003")
    canvas.click(position={"x": 30, "y": 10})
    expect(page.locator(".panel")).to_contain_text("node-0003")
    expect(page.locator(".panel .pods li")).to_have_count(10)


def test_squares_are_walked_with_the_keyboard(page: Page) -> None:
    page.keyboard.press("/")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "CANVAS":
            break
    page.keyboard.press("ArrowRight")
    expect(page.locator(".spoken").first).to_contain_text("Node node-0003")
    page.keyboard.press("Enter")
    expect(page.locator(".panel")).to_contain_text("node-0003")


def test_a_search_leaves_what_it_means(page: Page) -> None:
    page.fill("input[type=search]", "node-1234")
    expect(page.locator(".zone h2")).to_have_text(["b 1 of 1,667 nodes"])


def test_a_placed_pod_is_explained_as_of_now_and_all_nodes_scroll(
    page: Page, large: Served
) -> None:
    page.goto(f"{large.url}#/pods/team-0/app-7")

    expect(page.get_by_text("This is what would be decided now")).to_be_visible(timeout=60_000)
    page.click("text=Show all 5,000 nodes")
    rows = page.locator(".heat-map tbody tr:not(.space)")
    assert rows.count() < 100, "only the rows in view are in the document"
    page.locator(".heat-map").evaluate("box => { box.scrollTop = box.scrollHeight; }")
    expect(page.locator(".heat-map .rank", has_text="5,000")).to_be_visible()


def test_a_comparison_tells_its_progress_and_can_be_left(large: Served) -> None:
    """A client that disconnects ends its comparison of 20,000 pods, and another one can begin."""
    wish = json.dumps({"weights": {"LeastRequestedPriority": 2}}).encode()
    request = urllib.request.Request(f"{large.url}podium/v1/what-if", wish, method="POST")
    with urllib.request.urlopen(request, timeout=60) as answer:
        first = json.loads(answer.readline())
        later = json.loads(answer.readline())
    assert first == {"done": 0, "total": 40_000}
    assert later.keys() == {"done", "total"}

    def begins_again() -> bool:
        said = first_line(request)
        assert said == first or "another comparison is running" in said["error"]
        return bool(said == first)

    until("another comparison begins", begins_again)


def first_line(request: urllib.request.Request) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            found: dict[str, Any] = json.loads(answer.readline())
    except urllib.error.HTTPError as refused:
        with refused:
            found = json.loads(refused.read())
    return found
