"""The timeline, the filters that are part of the address, and the help."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest
from playwright.sync_api import Page, expect

from web.playground import Served


def data(site: Served, path: str) -> dict[str, object]:
    with urllib.request.urlopen(f"{site.url}{path}", timeout=10) as answer:
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
    expect(page.locator("h1")).to_have_text("Help")
    page.get_by_role("link", name="A cluster in one process").click()
    expect(page.locator("h1")).to_have_text("A cluster in one process")
    page.get_by_role("link", name="few differences").click()
    expect(page.locator("h1")).to_contain_text("Where the lab differs")
    with pytest.raises(urllib.error.HTTPError) as caught:
        data(site, "podium/help/..%2f..%2fpyproject.toml")
    assert caught.value.code == 404
    caught.value.close()
