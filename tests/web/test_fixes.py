"""What would make a pending pod fit: the data, and the page with its button."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from web.playground import Served
from web.test_data import data, refusal


def test_the_fixes_of_a_pending_pod_can_be_tried(site: Served) -> None:
    found = data(site, "fixes/batch/giant")

    assert found["pod"] == "batch/giant"
    first = found["fixes"][0]
    assert first["sentence"] == "Lower the cpu request of container giant from 16 to 3."
    tried = data(site, "fixes/batch/giant", {"edits": first["edits"]})
    assert tried["node"] == first["node"]
    assert data(site, "pending")["total"] == 1


def test_without_an_edit_it_still_fits_nowhere(site: Served) -> None:
    assert data(site, "fixes/batch/giant", {"edits": []})["node"] is None


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("fixes/shop/none", {"edits": []}, 404, "no pod shop/none is pending"),
        ("fixes/batch/giant", {}, 422, "edits cannot be read"),
        ("fixes/batch/giant", {"edits": [{"action": 1}]}, 422, "edits cannot be read"),
        (
            "fixes/batch/giant",
            {
                "edits": [
                    {
                        "action": "request",
                        "kind": "Pod",
                        "names": ["batch/giant"],
                        "patch": [{"op": "replace", "path": "/spec/nothing/0", "value": 1}],
                    }
                ]
            },
            422,
            "a patch names /spec/nothing/0, which is not there",
        ),
        (
            "fixes/batch/giant",
            {
                "edits": [
                    {"action": "evict", "kind": "Pod", "names": ["batch/giant"], "patch": [{}]}
                ]
            },
            422,
            "the edits remove the pod batch/giant itself",
        ),
    ],
)
def test_what_cannot_be_tried_is_refused(
    site: Served, path: str, body: object, status: int, said: str
) -> None:
    found = refusal(site, path, json.dumps(body).encode())

    assert found[0] == status
    assert said in found[1]


def test_the_page_lists_fixes_and_tries_one(page: Page, site: Served) -> None:
    page.goto(f"{site.url}#/pending")
    row = page.locator("tbody tr", has_text="batch/giant").first
    row.get_by_role("button", name="What would make it fit?").click()

    fixes = page.locator(".fixes li")
    expect(fixes.first).to_contain_text("Lower the cpu request of container giant from 16 to 3.")
    expect(fixes.first.locator(".command")).to_contain_text("kubectl -n batch")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    fixes.first.get_by_role("button", name="Copy the command").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == fixes.first.locator(".command").inner_text()
    fixes.first.get_by_role("button", name="Try it").click()
    expect(fixes.first.locator(".tried")).to_contain_text("It would go to")
    fixes.first.get_by_text("The decision", exact=True).click()
    expect(fixes.first.locator(".decision").first).to_be_visible()
    if folder := os.environ.get("PODIUM_SCREENSHOTS"):
        page.screenshot(path=Path(folder, "fixes.png"), full_page=True)
    row.get_by_role("button", name="What would make it fit?").click()
    expect(page.locator(".fixes")).to_have_count(0)
