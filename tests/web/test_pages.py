"""Every page in a real browser: what it shows, what can be done there, and that it stays live."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from builders import node, pod
from web.playground import Playground, Served

PAGES = (
    *("#/", "#/pending", "#/timeline", "#/policy", "#/plan", "#/plan/compare", "#/plan/capacity"),
    *("#/try", "#/nodes/a-1", "#/pods/batch/giant", "#/pods/shop/db-0"),
)


def first_web(site: Served) -> str:
    found = site.do(lambda p: p.page_data.find_pods("shop/web"))
    return str(found[0]["pod"])


def manifest(name: str) -> str:
    return f"""\
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec: {{containers: [{{name: c, image: i}}]}}
"""


def test_the_cluster_is_shown_as_zones_nodes_and_pods(page: Page) -> None:
    expect(page.locator(".zone h2")).to_have_text(
        [re.compile("^a"), re.compile("^b"), re.compile("^c")]
    )
    expect(page.locator(".tile")).to_have_count(6)
    expect(page.locator(".tile .cells .cell")).to_have_count(8)
    expect(page.locator(".numbers")).to_contain_text("Nodes")
    tile = page.locator("[data-node='c-2']")
    expect(tile).to_contain_text("cordoned")
    expect(page.locator("[data-node='b-2']")).to_contain_text("dedicated=batch")
    expect(page.locator(".chart svg")).to_be_visible()


def test_a_node_opens_with_its_pods(page: Page) -> None:
    page.click("[data-node='a-1']")

    panel = page.locator(".panel")
    expect(panel).to_contain_text("a-1")
    expect(panel.locator(".room")).to_contain_text("memory")
    assert panel.locator(".pods li").count() > 0
    page.click(".panel-head a")
    expect(panel).to_have_count(0)


def test_pods_appear_as_they_are_placed(page: Page, site: Served) -> None:
    expect(page.locator(".tile .cells .cell")).to_have_count(8)

    def arrive(playground: Playground) -> None:
        playground.create(pod("newcomer", namespace="shop", requests={"cpu": "100m"}))
        playground.work()

    site.do(arrive)

    expect(page.locator(".tile .cells .cell")).to_have_count(9)
    expect(page.locator(".legend")).to_contain_text("shop (single pods)")


def test_nodes_appear_as_they_are_added(page: Page, site: Served) -> None:
    site.do(lambda p: p.cache.put_node(node("d-1")))

    expect(page.locator("[data-node='d-1']")).to_be_visible()


def test_a_search_finds_nodes_and_pods(page: Page) -> None:
    page.fill("input[type=search]", "dedicated")
    expect(page.locator(".tile")).to_have_count(1)
    page.fill("input[type=search]", "db-0")
    expect(page.locator(".matches")).to_contain_text("shop/db-0")
    page.fill("input[type=search]", "no such thing")
    expect(page.get_by_text("No node matches")).to_be_visible()


def test_pending_pods_have_their_reason(page: Page) -> None:
    page.click("nav >> text=Pending")

    row = page.locator("tr", has_text="batch/giant")
    expect(row).to_contain_text("Insufficient cpu")
    expect(row).to_contain_text("waiting for a change")


def test_a_pending_pod_appears_and_leaves_by_itself(page: Page, site: Served) -> None:
    page.click("nav >> text=Pending")
    late = pod("late", namespace="batch", requests={"cpu": "64"})

    def come(playground: Playground) -> None:
        playground.create(late)
        playground.work()

    site.do(come)
    expect(page.locator("tr", has_text="batch/late")).to_be_visible()
    site.do(lambda p: p.delete(late))
    expect(page.locator("tr", has_text="batch/late")).to_have_count(0)


def test_a_cell_shows_its_formula_and_nodes_can_be_found(page: Page, site: Served) -> None:
    page.goto(f"{site.url}#/pods/{first_web(site)}")
    row = page.locator(".heat-map tbody tr").first
    row.locator("td.heat").first.click()
    expect(page.locator(".formula")).to_contain_text("score")
    expect(page.locator(".formula")).to_contain_text(" × ")
    expect(page.locator(".formula")).to_contain_text(row.get_attribute("data-name") or "?")
    name = row.get_attribute("data-name") or ""
    page.get_by_label("Find", exact=True).fill(name)
    expect(page.locator(".heat-map tbody tr")).to_have_count(1)
    page.get_by_label("Find", exact=True).fill("no such node")
    expect(page.locator(".heat-map tbody tr")).to_have_count(0)


def test_a_decision_shows_scores_ties_and_rejections(page: Page, site: Served) -> None:
    key = first_web(site)
    page.goto(f"{site.url}#/pods/{key}")

    expect(page.locator("h1.headline")).to_contain_text(f"{key} goes to")
    expect(page.locator(".heat-map thead")).to_contain_text(
        "LeastRequested \N{MULTIPLICATION SIGN}1"
    )
    expect(page.locator(".heat-map tr.winner")).to_have_count(1)
    expect(page.locator(".rejections")).to_contain_text("PodToleratesNodeTaints")
    expect(page.locator(".rejections")).to_contain_text("CheckNodeUnschedulable")
    expect(page.get_by_text("Attempt 1, decided at")).to_be_visible()
    expect(page.locator(".rejections .causes").first).to_contain_text("is not tolerated")
    page.get_by_text("How the scores come about").click()
    expect(page.locator(".formulas")).to_contain_text("(capacity - requested) * 10 / capacity")


def test_the_heat_map_sorts_and_compares(page: Page, site: Served) -> None:
    page.goto(f"{site.url}#/pods/{first_web(site)}")
    names = page.locator(".heat-map tbody th a")
    expect(names).to_have_count(4)
    before = names.all_inner_texts()

    page.click(".heat-map thead >> text=Node >> nth=0")
    assert names.all_inner_texts() == sorted(before)
    page.click(".heat-map tbody tr:not(.winner) >> nth=0")
    expect(page.locator(".compared")).to_contain_text(re.compile("behind|same total"))
    page.select_option(".decision select", "weighted")
    expect(page.locator(".heat-map")).to_contain_text("100,000")


def test_preemption_names_candidates_and_why(page: Page, site: Served) -> None:
    urgent = pod("urgent", namespace="batch", priority=1000, requests={"cpu": "3500m"})

    def come(playground: Playground) -> None:
        playground.create(urgent)
        playground.work()

    site.do(come)
    page.goto(f"{site.url}#/pods/batch/urgent")

    expect(page.locator("h1.headline")).to_contain_text("evicting pods from")
    expect(page.locator(".list.wide tr.winner")).to_contain_text("chosen")
    expect(page.locator(".list.wide tr.winner")).to_contain_text("with it back, cpu: wants 3500m")
    expect(page.locator("section", has_text="Preemption").first).to_contain_text(
        "Pods are evicted from"
    )


def test_an_unknown_pod_is_said_to_be_unknown(page: Page, site: Served) -> None:
    page.goto(f"{site.url}#/pods/shop/nobody")

    expect(page.get_by_text("There is no pod shop/nobody.")).to_be_visible()


def test_a_changed_weight_shows_its_difference_before_it_is_applied(
    page: Page, site: Served
) -> None:
    page.click("nav >> text=Rules")
    apply = page.get_by_role("button", name="Apply")
    expect(apply).to_be_disabled()

    page.fill("#weight-NodeAffinityPriority", "50")
    page.click("text=See what would change")

    expect(
        page.get_by_role("heading", name=re.compile(r"\d+ placements? would change"))
    ).to_be_visible()
    assert page.locator(".difference tbody tr").count() > 0
    expect(page.locator(".difference tbody tr").first).to_contain_text("→")
    assert weight_of(site) == 1

    apply.click()
    expect(page.locator(".applied")).to_contain_text("Applied")
    expect(page.locator("#weight-NodeAffinityPriority")).to_have_value("50")
    assert weight_of(site) == 50


def weight_of(site: Served) -> int:
    [profile] = site.do(lambda p: list(p.profiles.values()))
    return int(next(w.weight for w in profile.priorities if w.name == "NodeAffinityPriority"))


def test_a_wrong_text_is_refused_in_one_sentence(page: Page) -> None:
    page.click("nav >> text=Rules")
    page.click("role=tab[name='Policy text']")
    page.fill(
        "textarea",
        "kind: Policy\napiVersion: v1\npriorities:\n- {name: LeastRequestd, weight: 1}\n",
    )
    page.click("text=See what would change")

    expect(page.locator(".notice.bad")).to_contain_text("LeastRequestd")
    expect(page.get_by_role("button", name="Apply")).to_be_disabled()


def test_a_configuration_of_the_other_generation_can_be_compared(page: Page) -> None:
    page.click("nav >> text=Rules")
    page.click("role=tab[name='Policy text']")
    text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    page.fill("textarea", text)
    page.click("text=See what would change")

    expect(page.get_by_role("heading", name=re.compile("placements? would change"))).to_be_visible()


def test_a_manifest_is_tried_without_being_created(page: Page, site: Served) -> None:
    page.click("nav >> text=Try a pod")
    page.click("role=button[name=/Decide/]")

    expect(page.locator("h1.headline")).to_contain_text("default/just-a-thought goes to")
    expect(page.get_by_text("Nothing was created.")).to_be_visible()
    assert site.do(lambda p: p.page_data.find_pods("just-a-thought")) == []


def test_a_manifest_with_an_error_is_refused_in_one_sentence(page: Page) -> None:
    page.click("nav >> text=Try a pod")
    page.fill("textarea", "kind: Pod\napiVersion: v1\nmetadata: {name: x}\nspec: {containers: 3}\n")
    page.click("role=button[name=/Decide/]")

    expect(page.locator(".notice.bad")).to_contain_text("spec.containers")


def test_a_file_may_be_dropped_anywhere(page: Page, tmp_path: Path) -> None:
    data = page.evaluate_handle(
        """text => {
          const transfer = new DataTransfer();
          transfer.items.add(new File([text], 'dropped.yaml'));
          return transfer;
        }""",
        manifest("dropped"),
    )
    page.dispatch_event("main", "drop", {"dataTransfer": data})

    expect(page.locator("h1.headline")).to_contain_text("default/dropped goes to")
    expect(page.get_by_text("From dropped.yaml.")).to_be_visible()


def test_a_file_may_be_chosen(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "chosen.yaml"
    file.write_text(manifest("chosen"))
    page.click("nav >> text=Try a pod")
    page.set_input_files("input[type=file]", file)

    expect(page.locator("h1.headline")).to_contain_text("default/chosen goes to")


def test_dark_follows_the_system_and_the_button(page: Page) -> None:
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(ground)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(ground)
    assert dark != light

    page.click("[aria-label='Use light colours']")
    assert page.evaluate(ground) == light
    page.reload()
    page.wait_for_selector(".tile")
    assert page.evaluate(ground) == light, "the choice is remembered"


@pytest.mark.parametrize("width", [390, 800, 1400])
def test_no_page_is_wider_than_the_screen(page: Page, site: Served, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    for where in PAGES:
        page.goto(f"{site.url}{where}")
        page.wait_for_timeout(400)
        assert not is_too_wide(page), where


def is_too_wide(page: Page) -> bool:
    root = "document.documentElement"
    return bool(page.evaluate(f"{root}.scrollWidth > {root}.clientWidth"))


def test_a_lost_server_is_said_to_be_lost(page: Page, site: Served) -> None:
    page.route("**/podium/v1/**", lambda route: route.abort())
    page.click("nav >> text=Pending")

    expect(page.get_by_text("The server does not answer.")).to_be_visible()


def test_earlier_attempts_at_a_pod_can_be_seen(page: Page, site: Served) -> None:
    def help_it(playground: Playground) -> None:
        playground.cache.put_node(node("huge", cpu="64"))
        playground.queue.move_all()
        playground.work()

    site.do(help_it)
    page.goto(f"{site.url}#/pods/batch/giant")
    expect(page.locator("h1.headline")).to_contain_text("goes to huge")

    page.click(".chips >> text=attempt 1")

    expect(page.locator("h1.headline")).to_contain_text("fits nowhere")
    expect(page.locator(".chip.here")).to_contain_text("attempt 1")
