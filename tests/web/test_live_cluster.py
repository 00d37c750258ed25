"""The pages of `podium run` on a real API server, in a browser: they show, and change nothing."""

from __future__ import annotations

import re
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, Page, expect

from control_plane.harness import ADMIN, ControlPlane, free_port
from waiting import until
from web.conftest import PATIENCE

ACCOUNT = "/api/v1/namespaces/default/serviceaccounts"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
NAME = "reads-pages"


class Site(NamedTuple):
    """Pages on a secure port, and a token that may open them."""

    url: str
    token: str
    plane: ControlPlane


def get(url: str, *, token: str = "", method: str = "GET") -> int:
    """The code of an answer; 0 for none. The certificate is self-signed."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, headers=headers, method=method)
    context = ssl._create_unverified_context()  # noqa: S323
    try:
        with urllib.request.urlopen(request, timeout=60, context=context) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


@pytest.fixture
def live(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Site]:
    plane = control_plane
    named: dict[str, Any] = {"metadata": {"name": NAME}}
    plane.post(ACCOUNT, named)
    rule = {"nonResourceURLs": ["/", "/podium/*"], "verbs": ["get", "post", "put"]}
    plane.post(ROLES, named | {"rules": [rule]})
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": "default"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME}
    plane.post(BINDINGS, named | {"roleRef": reference, "subjects": [subject]})
    token = plane.post(f"{ACCOUNT}/{NAME}/token", {"spec": {}})["status"]["token"]
    plane.clear_nodes()
    for name in ("n1", "n2"):
        plane.add_node(name, {}, cpu="2")
    port = free_port()
    url = f"https://127.0.0.1:{port}"
    command = [
        *(sys.executable, "-m", "podium", "run", "--kubeconfig", str(plane.kubeconfig(ADMIN))),
        *("--scheduler-name=podium", "--leader-elect=false", "--port=0", "--pages"),
        f"--secure-port={port}",
        f"--record={tmp_path / 'history'}",
    ]
    try:
        with plane.program("podium-pages", *command) as program:
            program.wait_for("it is ready", lambda: get(f"{url}/readyz") == 200)
            yield Site(url, token, plane)
    finally:
        for path in (BINDINGS, ROLES, ACCOUNT):
            plane.call("DELETE", f"{path}/{NAME}")
        for name in ("small", "big", "meanwhile"):
            plane.delete_pod(name)
        plane.clear_nodes()


def test_the_pages_of_a_live_cluster(browser: Browser, live: Site) -> None:
    assert get(f"{live.url}/") in {401, 403}
    assert get(f"{live.url}/podium/v1/cluster") in {401, 403}
    assert get(f"{live.url}/podium/v1/cluster", token="x.y.z") == 401  # noqa: S106
    assert get(f"{live.url}/podium/v1/cluster", token=live.token) == 200
    assert get(f"{live.url}/podium/v1/profile", token=live.token, method="PUT") == 403

    context = browser.new_context(ignore_https_errors=True, viewport={"width": 1280, "height": 800})
    context.set_default_timeout(PATIENCE)
    try:
        page = context.new_page()
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{live.url}/?token={live.token}")
        assert "token" not in page.url
        expect(page.locator(".tile")).to_have_count(2)
        live.plane.add_pod("small", "podium")
        live.plane.add_pod("big", "podium", containers=[_asks("64")])
        until("a node", lambda: live.plane.node_of("small"))
        expect(page.locator("nav .badge")).to_have_text("1")
        page.goto(f"{live.url}/#/pods/default/big")
        expect(page.locator("main")).to_contain_text("Insufficient cpu")
        page.get_by_text("What would wake it").first.click()
        expect(page.locator(".wakes").first).to_contain_text("NodeResourcesFit")
        page.goto(f"{live.url}/#/timeline?namespace=default&what=unschedulable")
        expect(page.locator("table.timeline tbody tr").first).to_contain_text("default/big")
        expect(page.locator("table.timeline tbody")).not_to_contain_text("default/small")
        page.goto(f"{live.url}/#/policy")
        expect(page.locator("main")).to_contain_text("read-only")
        answer = page.request.put(f"{live.url}/podium/v1/profile", data="{}")
        assert answer.status == 403
        plan(page, live)
        travel(page, live)
        assert complaints == []
    finally:
        context.close()


def plan(page: Page, live: Site) -> None:
    """What a drain would do, drawn on the map; the cluster stays as it is, and is scheduled."""
    node = live.plane.node_of("small")
    page.goto(f"{live.url}/#/plan")
    page.get_by_label("What", exact=True).fill("no-such-node")
    page.get_by_role("button", name="Show what follows").click()
    expect(page.get_by_role("alert")).to_contain_text("there is no node 'no-such-node'")
    page.get_by_label("What", exact=True).fill(node)
    page.get_by_role("button", name="Show what follows").click()
    live.plane.add_pod("meanwhile", "podium")
    until("a node", lambda: live.plane.node_of("meanwhile"))
    expect(page.locator(".outcome h2")).to_contain_text("without a node")
    expect(page.locator(".tile.changed", has_text=node)).to_contain_text(re.compile("pods? leave"))
    gone = page.get_by_role("region", name="Gone and not created anew")
    expect(gone).to_contain_text("default/small")
    assert not live.plane.get(f"/api/v1/nodes/{node}")["spec"].get("unschedulable")
    assert live.plane.node_of("small") == node
    files = {"changes": [["apply", "/etc/hosts"]]}
    answer = page.request.post(f"{live.url}/podium/v1/plan", data=files)
    assert (answer.status, "the pages read no files" in answer.json()["error"]) == (422, True)
    live.plane.delete_pod("meanwhile")


def travel(page: Page, live: Site) -> None:
    """A moment of the past on the map, its decisions, and back to now."""
    page.goto(f"{live.url}/#/timeline?what=placed")
    expect(page.locator(".past .values")).to_contain_text("queue length")
    expect(page.locator(".past .values")).to_contain_text("evictions")
    live.plane.delete_pod("small")
    page.goto(f"{live.url}/#/")
    expect(page.locator(".tile .cell")).to_have_count(0)
    until("the pod is gone for a while", lambda: _seconds_of_history(page) >= 3)
    # The moment at which the pod was placed, from the timeline of the past.
    page.goto(f"{live.url}/#/timeline?what=placed&at={_slider(page, 'max')}")
    page.locator("table.timeline a", has_text="default/small").first.click()
    expect(page.locator("main")).to_contain_text("From the recorded history")
    expect(page.locator("main")).to_contain_text("default/small goes to n")
    page.get_by_role("link", name="The cluster at that moment").click()
    expect(page.locator(".tile .cell")).to_have_count(1)
    expect(page.locator(".notice")).to_contain_text("The cluster as it was at")
    shared = page.url
    assert "at=" in shared
    # The slider, by keyboard: to its begin, where nothing was placed.
    page.locator(".past input[type=range]").press("Home")
    expect(page.locator(".tile .cell")).to_have_count(0)
    page.goto(f"{live.url}/#/pending")
    page.goto(shared)
    expect(page.locator(".tile .cell")).to_have_count(1)
    page.locator(".tile", has=page.locator(".cell")).click()
    expect(page.locator(".panel")).to_contain_text("default/small")
    page.keyboard.press("Escape")
    expect(page.locator(".panel")).to_have_count(0)
    expect(page.locator(".notice")).to_have_count(1)
    page.get_by_role("button", name="Now").click()
    expect(page.locator(".notice")).to_have_count(0)
    expect(page.locator(".tile .cell")).to_have_count(0)


def _slider(page: Page, end: str) -> float:
    return float(page.locator(".past input[type=range]").get_attribute(end) or 0)


def _seconds_of_history(page: Page) -> float:
    return _slider(page, "max") - _slider(page, "min")


def _asks(cpu: str) -> dict[str, object]:
    return {"name": "app", "image": "app", "resources": {"requests": {"cpu": cpu}}}
