"""The pages of a real `podium lab`: its token, its scheduler, and pods created through its API."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from manifests import pod
from waiting import until
from web.conftest import watched

SOURCES = Path(__file__).parents[2] / "src"


class Lab:
    """A lab in a process of its own, with its world of the start unless arguments say otherwise."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "podium", "lab", "--listen", "127.0.0.1:0", "-o", "json"]
        self.process = subprocess.Popen(
            [*command, "--write-kubeconfig", str(folder / "kubeconfig"), *arguments],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(SOURCES)},
        )
        assert self.process.stdout is not None
        text = ""
        for line in self.process.stdout:
            text += line
            if line.startswith("}"):
                break
        told = json.loads(text)
        self.server, self.token, self.page = told["server"], told["token"], told["page"]

    def create(self, path: str, value: dict[str, Any]) -> None:
        request = urllib.request.Request(
            f"{self.server}{path}",
            json.dumps(value).encode(),
            {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert answer.status == 201

    def create_placed(self, name: str) -> None:
        """A small pod; it has a node when this returns, so pages know it and its decision."""
        self.create(PODS, small(name))
        until("a node", lambda: self.get(f"{PODS}/{name}")["spec"].get("nodeName"), 90)

    def get(self, path: str) -> Any:
        request = urllib.request.Request(
            f"{self.server}{path}", headers={"Authorization": f"Bearer {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab(tmp_path_factory.mktemp("lab"))
    yield made
    made.stop()


@pytest.fixture
def page(browser: Browser, lab: Lab) -> Iterator[Page]:
    with watched(browser, lab.page, ".tile", origin=lab.server) as page:
        yield page


def small(name: str, **spec: Any) -> dict[str, Any]:
    return pod(name, "10m", **spec)


PODS = "/api/v1/namespaces/default/pods"


def test_without_the_token_nothing_is_shown(browser: Browser, lab: Lab) -> None:
    context = browser.new_context()
    answer = context.request.get(f"{lab.server}/podium/v1/cluster")

    assert answer.status == 401
    context.close()


def test_a_pod_created_through_the_api_appears_with_its_decision(page: Page, lab: Lab) -> None:
    lab.create(PODS, small("visitor"))

    page.fill("input[type=search]", "visitor")
    page.click(".matches a >> text=default/visitor")

    expect(page.locator("h1.headline")).to_contain_text("default/visitor goes to")
    expect(page.get_by_text(re.compile("Attempt 1, decided at"))).to_be_visible()
    expect(page.locator(".heat-map tr.winner")).to_have_count(1)


def test_a_pod_that_fits_nowhere_appears_among_the_pending(page: Page, lab: Lab) -> None:
    page.click("nav >> text=Pending")
    lab.create(PODS, small("homeless", nodeSelector={"no": "where"}))

    row = page.locator("tr", has_text="default/homeless")
    expect(row).to_contain_text("didn't match Pod's node affinity/selector")


def apply_rules(page: Page, applied: str) -> None:
    """Compare the rules of the form with those that run, and apply them."""
    page.click("text=See what would change")
    expect(page.locator(".counts")).to_be_visible(timeout=90_000)
    page.get_by_role("button", name="Apply").click()
    expect(page.locator(".applied")).to_contain_text(applied)


def test_weights_are_compared_and_applied_while_it_runs(page: Page, lab: Lab) -> None:
    page.click("nav >> text=Rules")
    page.fill("#weight-NodeResourcesFit", "7")
    apply_rules(page, "Applied")

    lab.create_placed("after")
    page.goto(f"{lab.server}/#/pods/default/after")
    expect(page.locator("h1.headline")).to_contain_text("goes to")
    heading = page.locator(".heat-map thead th", has_text="Fit")
    expect(heading).to_contain_text("\N{MULTIPLICATION SIGN}7")


def test_rules_of_the_other_generation_are_applied_while_it_runs(page: Page, lab: Lab) -> None:
    page.click("nav >> text=Rules")
    page.click("role=tab[name=/text/]")
    page.fill("textarea", "kind: Policy\napiVersion: v1\n")
    apply_rules(page, "v1.13 policy")

    lab.create_placed("classic")
    page.goto(f"{lab.server}/#/pods/default/classic")
    expect(page.get_by_text("with v1.13 policy")).to_be_visible()
    expect(page.locator(".heat-map thead")).to_contain_text("LeastRequested")


def test_a_plan_is_shown_on_the_map_and_changes_nothing(lab: Lab, page: Page) -> None:
    before = lab.get("/api/v1/pods")["items"]
    node = next(pod["spec"]["nodeName"] for pod in before if pod["spec"].get("nodeName"))
    page.goto(f"{lab.server}/#/plan")

    page.get_by_label("What", exact=True).fill(node)
    page.get_by_role("button", name="Show what follows").click()

    expect(page.locator(".outcome h2")).to_contain_text("after", timeout=60_000)
    assert page.locator(".tile.changed").count() > 0
    assert not lab.get(f"/api/v1/nodes/{node}")["spec"].get("unschedulable")


def test_a_change_that_cannot_be_made_is_one_sentence(lab: Lab, browser: Browser) -> None:
    context = browser.new_context()
    answer = context.request.post(
        f"{lab.server}/podium/v1/plan",
        headers={"Authorization": f"Bearer {lab.token}"},
        data={"changes": [["drain", "no-such-node"]]},
    )
    status, found = answer.status, answer.json()
    context.close()

    assert status == 422
    assert "there is no node 'no-such-node'" in found["error"]
