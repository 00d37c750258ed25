"""Rules compared and pods counted on the page of plans: the data, the forms and their answers."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from playwright.sync_api import Page, expect

from podium.library.reading import read
from podium.profiles.policy.build import Options, from_policy, parse_policy
from podium.what_if.compare.comparison import compare
from web.conftest import WORLD
from web.playground import Served, default_profile
from web.test_data import ask, data, refusal

PACK = """
kind: Policy
apiVersion: v1
predicates:
- {name: GeneralPredicates}
- {name: CheckNodeUnschedulable}
- {name: PodToleratesNodeTaints}
priorities: [{name: MostRequestedPriority, weight: 1}]
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: more}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}
"""


def compared(site: Served, wish: dict[str, Any]) -> dict[str, Any]:
    url = f"{site.url}podium/v1/compare"
    status, _, answer = ask(url, method="POST", body=json.dumps(wish).encode())
    assert status == 200, answer
    lines = [json.loads(line) for line in answer.splitlines()]
    assert all({"done", "total"} == line.keys() for line in lines[:-1])
    found: dict[str, Any] = lines[-1]["result"]
    return found


def test_a_comparison_says_what_the_library_says(site: Served) -> None:
    found = compared(site, {"text": PACK, "seeds": 2})

    packing = from_policy(parse_policy(PACK, "text"), Options())
    given = {"today's rules": default_profile(), "the other rules": packing}
    expected = compare(read([WORLD]), given, seeds=2)
    assert found["measures"] == [list(row) for row in expected.measures()]
    assert found["summary"] == expected.summary()
    assert found["hopeless"] == ["batch/giant"]
    pairs = [(each["pod"], tuple(each["nodes"])) for each in found["differences"]]
    assert pairs == expected.differences()
    assert pairs
    for shown, outcome in zip(found["configurations"], expected.outcomes, strict=True):
        assert shown["nodes"] == msgspec.to_builtins(outcome.nodes)


def test_a_comparison_and_a_count_change_nothing(site: Served) -> None:
    before = [data(site, path) for path in ("cluster", "pending", "profile")]

    compared(site, {"name": "v1.36"})
    data(site, "capacity", {"manifest": POD})

    assert [data(site, path) for path in ("cluster", "pending", "profile")] == before


def test_a_count_fills_the_nodes_that_take_pods(site: Served) -> None:
    found = data(site, "capacity", {"manifest": POD})

    nodes, pods = site.playground.cache.columns.nodes, site.playground.cache.columns.pods
    room = {
        name: (nodes.allocatable[0].item(row) - pods.requested[0].item(row)) // 1000
        for name, row in nodes.row_of.items()
        if name not in {"b-2", "c-2"}  # one with a taint, one that is cordoned
    }
    assert found["perNode"] == {name: count for name, count in room.items() if count}
    assert found["pods"] == sum(room.values())
    assert found["names"] == ["a-1", "a-2", "b-1", "b-2", "c-1", "c-2"]


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("compare", {}, 422, "expected another configuration"),
        ("compare", {"name": "/etc/hosts"}, 422, "expected another configuration"),
        ("compare", {"text": "kind: Nothing"}, 422, "neither a Policy nor a KubeSchedulerConfig"),
        ("compare", {"text": PACK.replace("Most", "Fullest")}, 422, "FullestRequestedPriority"),
        ("compare", {"text": PACK, "seeds": -1}, 422, "seeds: -1 is no number"),
        ("compare", {"text": PACK, "seeds": "two"}, 422, "seeds: 'two' is no number"),
        ("compare", {"text": PACK, "seeds": 1000}, 422, "from 0 to 20"),
        ("capacity", {}, 422, "expected a manifest"),
        ("capacity", {"manifest": " "}, 422, "expected a manifest"),
        ("capacity", {"manifest": "kind: [}"}, 422, "the manifest"),
        ("capacity", {"manifest": "kind: Pod"}, 422, "the manifest: "),
        ("capacity", {"manifest": POD.replace('"1"', "much")}, 422, "'much' is not a quantity"),
        ("plan", {"changes": [["drain", "a-1"]]}, 422, "plans are not made here"),
        ("plan", {"changes": [["drain"]]}, 422, "expected a list of changes"),
    ],
)
def test_a_bad_form_is_refused_in_one_sentence(
    site: Served, path: str, body: dict[str, Any], status: int, said: str
) -> None:
    got, sentence = refusal(site, path, json.dumps(body).encode())

    assert got == status
    assert said in sentence
    assert "\n" not in sentence


def test_rules_of_your_own_are_compared_on_the_map(site: Served, page: Page) -> None:
    page.goto(f"{site.url}#/plan/compare")
    text = page.get_by_label("A Policy or a KubeSchedulerConfiguration")
    expect(text).to_have_value(data(site, "profile")["text"])

    text.fill("kind: Nothing")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("alert")).to_contain_text("neither a Policy nor a KubeScheduler")

    text.fill(PACK)
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".outcome h2")).to_have_text("6 placements of 9 differ")
    maps = page.locator(".plan-map")
    expect(maps).to_have_count(2)
    expect(maps.last.locator("li")).to_have_count(6)
    expect(maps.last.locator("li.changed").first).to_contain_text("of cpu")
    rows = page.locator("table.measures tbody tr")
    expect(rows.first).to_contain_text("placed")
    expect(rows.filter(has_text="nodes needed")).to_have_count(1)
    expect(page.get_by_role("region", name="Placements that differ")).to_contain_text("shop/web")


def test_a_known_configuration_is_chosen_by_its_name(site: Served, page: Page) -> None:
    page.goto(f"{site.url}#/plan")
    page.get_by_role("link", name="Compare rules").click()
    page.get_by_label("Compare what runs now with").select_option("the default of v1.36")
    page.get_by_label("Orders of arrival").fill("0")

    page.get_by_role("button", name="Compare").click()

    expect(page.locator(".plan-maps")).to_contain_text("the other rules (v1.36 default-scheduler)")
    needed = page.locator("table.measures tbody tr", has_text="nodes needed")
    expect(needed).to_have_count(0)


def test_pods_that_fit_are_counted_on_the_map(site: Served, page: Page) -> None:
    page.goto(f"{site.url}#/plan/capacity")
    page.get_by_label("A Pod, or anything that makes pods").fill(POD)

    page.get_by_role("button", name="Count").click()

    count = data(site, "capacity", {"manifest": POD})["pods"]
    expect(page.locator(".outcome h2")).to_contain_text(f"{count} more of default/more fit")
    expect(page.locator(".plan-map li")).to_have_count(6)
    expect(page.locator(".plan-map li.missing")).to_have_count(2)
    expect(page.get_by_role("region", name="What runs out first")).to_contain_text("cpu")

    page.get_by_label("A Pod, or anything that makes pods").fill("kind: Service")
    page.get_by_role("button", name="Count").click()
    expect(page.get_by_role("alert")).to_contain_text("the manifest")
