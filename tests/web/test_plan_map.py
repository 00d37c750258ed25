"""Plans of changes from the map, in a real lab: chosen, named, refused and drawn on one map."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from manifests import deployment, listed, node
from waiting import until
from web.conftest import watched
from web.test_keyboard import tab_to
from web.test_lab import Lab

ZONE = "topology.kubernetes.io/zone"


def world(nodes: int, replicas: int) -> str:
    """Nodes in three zones, and a Deployment whose pods ask for half of one each."""
    made = (node(f"n{i:04}", "2", pods="20", labels={ZONE: "abc"[i % 3]}) for i in range(nodes))
    return json.dumps(listed([*made, deployment("web", replicas, "1")]))


def started(folder: Path, nodes: int, replicas: int) -> Lab:
    file = folder / "world.json"
    file.write_text(world(nodes, replicas), "utf-8")
    lab = Lab(folder, "-f", str(file))
    until("every pod has a node", lambda: len(placed(lab)) == replicas, 120)
    return lab


def placed(lab: Lab) -> list[dict[str, Any]]:
    pods = lab.get("/api/v1/pods")["items"]
    return [each for each in pods if each["spec"].get("nodeName")]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = started(tmp_path_factory.mktemp("small"), 12, 22)
    yield lab
    lab.stop()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = started(tmp_path_factory.mktemp("large"), 1000, 900)
    yield lab
    lab.stop()


@pytest.fixture(params=["small"])
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The page of plans of a lab; a refusal is the one thing that the browser may note."""
    lab = request.getfixturevalue(request.param)
    refusal = "status of 422"
    with watched(browser, lab.page, "body", origin=lab.server, allowed=refusal) as page:
        page.goto(f"{lab.server}/#/plan")
        page.wait_for_selector(".tile, .squares canvas")
        yield page


def show(page: Page) -> None:
    page.get_by_role("button", name="Show what follows").click()


def test_a_node_is_chosen_on_the_map_and_drained_by_keyboard(page: Page) -> None:
    tab_to(page, ".tile")
    page.keyboard.press("ArrowRight")
    name = page.evaluate("document.activeElement.dataset.node")
    page.keyboard.press("Enter")
    expect(page.locator(".choice")).to_contain_text(f"Node {name}")
    expect(page.get_by_role("button", name="Drain", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".choice")).to_have_count(0)
    expect(page.locator(f"[data-node='{name}']")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(page.locator(".chosen")).to_contain_text(f"drain {name}")
    page.keyboard.press("s")

    expect(page.locator(".outcome h2").first).to_contain_text("2 pods moved")
    expect(page.locator(".outcome h2").first).to_be_focused()
    expect(page.locator(".zones")).to_have_count(1)
    drained = page.locator(f"[data-node='{name}']")
    expect(drained).to_contain_text("2 pods leave")
    expect(drained).to_contain_text("100% → 0%")
    expect(drained.locator(".cell.leaving")).to_have_count(2)
    expect(page.locator(".cells .cell.arriving")).to_have_count(2)
    page.get_by_label("Before", exact=True).check()
    expect(page.locator(".cells .cell")).to_have_count(22)
    expect(page.locator(".cells .leaving")).to_have_count(0)
    page.get_by_label("After", exact=True).check()
    page.get_by_label(re.compile("only the . nodes that change")).check()
    expect(page.locator(".tile:not(.changed)")).to_have_count(0)


def test_a_zone_is_lost_and_its_pods_have_no_node(page: Page) -> None:
    page.get_by_role("button", name="a", exact=True).click()
    page.get_by_role("button", name="Lose all of it").click()
    expect(page.locator(".chosen")).to_contain_text(f"lose {ZONE}=a")
    show(page)

    expect(page.locator(".tile.gone")).to_have_count(4)
    homeless = page.get_by_role("region", name="Pods without a node after the changes")
    expect(homeless).to_contain_text("default/web 6")


def test_nodes_are_added_and_workloads_scaled_from_the_map(page: Page, small: Lab) -> None:
    page.goto(f"{small.server}/#/nodes/n0003")
    page.get_by_role("link", name="Plan a change of it").click()
    expect(page.locator(".choice")).to_contain_text("Node n0003")
    page.get_by_role("button", name="Add one like it").click()
    page.locator(".legend button", has_text="default/web").click()
    page.get_by_label("Replicas").fill("26")
    page.get_by_role("button", name="Scale", exact=True).click()
    show(page)

    expect(page.locator("[data-node='n0003-new-1'].added")).to_contain_text("2 pods come")
    expect(page.get_by_role("region", name="Zone a").locator(".tile.added")).to_have_count(1)
    expect(page.locator(".cells .cell.arriving")).to_have_count(4)


def test_presets_and_names_come_from_the_cluster(page: Page) -> None:
    names = page.locator("#plan-names option")
    values = names.evaluate_all("all => all.map(each => each.value)")
    assert {"n0000", "n0011", f"{ZONE}=a"} <= set(values)
    page.locator("form select").select_option("scale")
    expect(names).to_have_count(1)
    expect(names).to_have_attribute("value", "deployment/default/web=22")

    page.get_by_role("group", name="Presets").get_by_role("button", name="Lose zone").click()
    expect(page.locator(".tile.gone")).to_have_count(4)
    expect(page.locator(".chosen li")).to_have_count(1)
    page.get_by_role("button", name="Start again").click()
    expect(page.locator(".tile.changed")).to_have_count(0)
    expect(page.locator(".chosen li")).to_have_count(0)


def test_a_bad_change_is_refused_in_place(page: Page) -> None:
    field = page.get_by_label("What", exact=True)
    field.fill("n0001")
    page.get_by_role("button", name="Add another").click()
    field.fill("n00x1")
    page.keyboard.press("Enter")

    said = page.locator("form").get_by_role("alert")
    expect(said).to_contain_text("there is no node 'n00x1'")
    expect(field).to_have_value("n00x1")
    expect(field).to_be_focused()
    expect(field).to_have_attribute("aria-describedby", "refused")
    expect(page.locator(".chosen li")).to_have_text([re.compile("drain n0001")])
    field.fill("n0002")
    page.keyboard.press("Enter")
    expect(page.locator(".outcome h2").first).to_contain_text("moved")
    expect(page.get_by_role("alert")).to_have_count(0)

    # One that was added before is marked where it stands.
    field.fill("no-such-node")
    page.get_by_role("button", name="Add another").click()
    show(page)
    expect(page.locator(".chosen li.bad")).to_contain_text("drain no-such-node")
    expect(page.locator(".plan-bar").get_by_role("alert")).to_contain_text("there is no node")
    expect(page.locator(".chosen li")).to_have_count(3)


def test_pods_that_are_evicted_by_preemption_are_marked(page: Page, small: Lab) -> None:
    """A drained pod that is more important than the others takes the place of one of them."""
    scheduling = "/apis/scheduling.k8s.io/v1/priorityclasses"
    small.create(scheduling, {"metadata": {"name": "high"}, "value": 1000})
    apps = "/apis/apps/v1/namespaces/default/deployments"
    items = json.loads(world(0, 1).replace('"web"', '"vip"'))["items"]
    items[0]["spec"]["template"]["spec"] |= {"priorityClassName": "high"}
    items[0]["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
    small.create(apps, items[0])
    [pod] = until("a node", lambda: vips(small), 90)

    page.locator(f"[data-node='{pod['spec']['nodeName']}']").click()
    page.get_by_role("button", name="Drain", exact=True).click()
    show(page)

    expect(page.locator(".cells .cell.evicted").first).to_be_visible()
    expect(page.locator(".tile.changed", has_text="evicted").first).to_be_visible()


def vips(lab: Lab) -> list[dict[str, Any]]:
    return [each for each in placed(lab) if each["metadata"]["name"].startswith("vip")]


@pytest.mark.parametrize("width", [390, 800, 1400])
def test_a_plan_fits_the_window(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.locator(".tile").first.click()
    page.get_by_role("button", name="Lose", exact=True).click()
    show(page)
    expect(page.locator(".tile.gone")).to_have_count(1)

    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
@pytest.mark.parametrize("page", ["large"], indirect=True)
def test_a_thousand_nodes_are_planned_on_one_map(page: Page) -> None:
    expect(page.locator(".squares canvas")).to_have_count(3)
    page.locator(".squares canvas").first.click(position={"x": 30, "y": 10})
    expect(page.locator(".choice")).to_contain_text("Node n0003")
    page.get_by_role("button", name="Drain", exact=True).click()
    show(page)

    expect(page.locator(".outcome h2").first).to_contain_text("moved")
    expect(page.locator(".squares canvas")).to_have_count(3)
    canvas = page.locator(".squares canvas").first
    canvas.hover(position={"x": 30, "y": 10})
    expect(page.locator(".tooltip")).to_contain_text("leave")
    page.get_by_label(re.compile("only the . nodes that change")).check()
    expect(page.locator("[data-node='n0003']")).to_contain_text("leave")
    expect(page.locator(".tile.changed")).to_have_count(page.locator(".tile").count())
