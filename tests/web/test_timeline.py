"""The timeline, the filters that are part of the address, and the help."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest
from msgspec.structs import replace
from playwright.sync_api import Page, expect

from builders import pod
from podium.objects.kinds.meta import OwnerReference
from web.playground import Playground, Served


def data(site: Served, path: str) -> dict[str, object]:
    with urllib.request.urlopen(f"{site.url}{path}", timeout=60) as answer:
        found: dict[str, object] = json.load(answer)
        return found


def test_a_link_shows_the_same_part_of_the_timeline(page: Page, site: Served) -> None:
    page.goto(f"{site.url}#/timeline")
    rows = page.locator("table.timeline tbody tr")
    expect(rows.first).to_be_visible()
    page.get_by_label("What").select_option("unschedulable")
    expect(page.locator("table.timeline tbody")).not_to_contain_text("bound")
    assert "what=unschedulable" in page.url
    shared = page.url
    page.goto(f"{site.url}#/")
    page.goto(shared)
    expect(page.get_by_label("What")).to_have_value("unschedulable")
    expect(rows.first).to_contain_text("unschedulable")


def test_filters_by_namespace_and_labels_hold_for_the_data(page: Page, site: Served) -> None:
    everything = data(site, "podium/v1/timeline")
    namespaces = everything["namespaces"]
    assert isinstance(namespaces, list)
    for namespace in namespaces:
        found = data(site, f"podium/v1/timeline?namespace={namespace}")
        entries = found["entries"]
        assert isinstance(entries, list)
        assert entries
        assert all(each["pod"].startswith(f"{namespace}/") for each in entries)
    assert data(site, "podium/v1/timeline?labels=no-such%3Dlabel")["entries"] == []
    assert data(site, "podium/v1/pending?labels=no-such%3Dlabel")["pods"] == []
    page.goto(f"{site.url}#/pending?namespace=nowhere")
    expect(page.locator("main")).to_contain_text("No waiting pod matches")


def test_the_documentation_is_served_under_help(page: Page, site: Served) -> None:
    page.get_by_role("link", name="Help").click()
    expect(page.locator("h1")).to_have_text("Documentation by question")
    page.get_by_role("link", name="How do I get a cluster to try things on?").click()
    expect(page.locator("h1")).to_have_text("A cluster in one process")
    page.get_by_role("link", name="few differences").click()
    expect(page.locator("h1")).to_contain_text("Where the lab differs")
    with pytest.raises(urllib.error.HTTPError) as caught:
        data(site, "podium/help/..%2f..%2fpyproject.toml")
    assert caught.value.code == 404
    caught.value.close()


def test_the_timeline_has_pages_and_counts_equal_attempts(page: Page, site: Served) -> None:
    crowd = [pod(f"many-{i:03}", namespace="crowd", requests={"cpu": "900"}) for i in range(60)]

    def come(playground: Playground) -> None:
        for each in crowd:
            playground.create(each)
        playground.work()
        for _ in range(2):
            playground.queue.activate(crowd[-1])
            playground.work()

    site.do(come)
    page.goto(f"{site.url}#/timeline?namespace=crowd")
    rows = page.locator("table.timeline tbody tr")
    expect(rows).to_have_count(50)
    expect(rows.first).to_contain_text("3 times")
    buttons = page.get_by_role("navigation", name="Pages of the timeline").first
    expect(buttons).to_contain_text("page 1 of 3")
    buttons.get_by_role("button", name="Older").click()
    expect(buttons).to_contain_text("page 2 of 3")
    assert page.evaluate("document.documentElement.scrollHeight") < 8_000
    site.do(lambda playground: list(map(playground.delete, crowd)))


def test_pending_pods_of_one_workload_are_one_group(page: Page, site: Served) -> None:
    owner = OwnerReference(kind="Job", name="import", uid="import", controller=True)
    made = [pod(f"import-{i}", namespace="crowd", requests={"cpu": "900"}) for i in range(4)]
    crowd = [replace(p, metadata=replace(p.metadata, owner_references=[owner])) for p in made]

    def come(playground: Playground) -> None:
        for each in crowd:
            playground.create(each)
        playground.work()

    site.do(come)
    page.goto(f"{site.url}#/pending?namespace=crowd")
    links = page.locator("tbody th a")
    expect(links).to_have_count(1)
    page.get_by_role(
        "button", name="3 more pods of Job crowd/import wait for the same reason"
    ).click()
    expect(links).to_have_count(4)
    site.do(lambda playground: list(map(playground.delete, crowd)))
