"""The pages beside a shadow, behind the proxy of the real API server and a forwarded port."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from control_plane.harness import ADMIN, ControlPlane, Program, free_port
from scheduler.api_server.test_asking import own_address
from waiting import until
from web.test_live_cluster import get

PODS = "/api/v1/namespaces/kube-system/pods"
NAME = "podium-pages"


@contextmanager
def forwarded(port: int) -> Iterator[int]:
    """Another port whose connections reach *port* of loopback, as with `kubectl port-forward`."""
    listener = socket.create_server(("127.0.0.1", 0))

    def copy(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", port))
                opened.extend((client, server))
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=copy, args=pair, daemon=True).start()

    opened: list[socket.socket] = []
    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        for each in (listener, *opened):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@contextmanager
def kubectl_proxy(plane: ControlPlane) -> Iterator[str]:
    """`kubectl proxy`: the API server on a port of loopback, with the credentials of the user."""
    command = ["kubectl", f"--kubeconfig={plane.kubeconfig(ADMIN)}", "proxy", "--port=0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"127\.0\.0\.1:\d+", process.stdout.readline())
        assert found, "kubectl proxy says where it listens"
        yield f"http://{found[0]}"
    finally:
        process.terminate()
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()


@contextmanager
def shadow(plane: ControlPlane, secure: int, plain: int, bind: str) -> Iterator[Program]:
    """`podium run --shadow --pages` on a secure port and on a plain one."""
    command = [
        *(sys.executable, "-m", "podium", "run", "--kubeconfig", str(plane.kubeconfig(ADMIN))),
        *("--shadow", "--pages", f"--bind-address={bind}"),
        *(f"--secure-port={secure}", f"--port={plain}"),
    ]
    with plane.program(f"{NAME}-{bind}", *command) as program:
        port = secure or plain
        url = f"{'https' if secure else 'http'}://127.0.0.1:{port}/readyz"
        program.wait_for("it is ready", lambda: get(url) == 200)
        yield program


@pytest.fixture
def plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    control_plane.clear_nodes()
    for name in ("n1", "n2"):
        control_plane.add_node(name, {}, cpu="2")
    yield control_plane
    for name in ("placed", "big"):
        control_plane.delete_pod(name)
    control_plane.call("DELETE", f"{PODS}/{NAME}", {"gracePeriodSeconds": 0})
    control_plane.clear_nodes()


def replica(plane: ControlPlane, address: str, port: int) -> None:
    """The pod of the scheduler, which the API server passes requests on to."""
    ports = [{"name": "https", "containerPort": port}]
    spec = {"nodeName": "n1", "containers": [{"name": "p", "image": "podium", "ports": ports}]}
    plane.post(PODS, {"metadata": {"name": NAME, "namespace": "kube-system"}, "spec": spec})
    status = {"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}}
    plane.call("PATCH", f"{PODS}/{NAME}/status", status, "merge-patch+json")


def looked_at(page: Page, url: str) -> None:
    """Every kind of page under one address: the map, a pod, the stream, help."""
    expect(page.locator(".tile")).to_have_count(2)
    expect(page.locator("nav .badge")).to_have_text("1")
    page.goto(f"{url}#/pods/default/big")
    expect(page.locator("main")).to_contain_text("Insufficient cpu")
    page.goto(f"{url}#/policy")
    expect(page.locator("main")).to_contain_text("read-only")
    page.get_by_role("link", name="Help").click()
    expect(page.locator("h1")).to_have_text("Documentation by question")
    expect(page.locator("nav a[aria-current]").first).to_have_text("Help")


def test_the_pages_behind_the_api_server_and_behind_a_forwarded_port(
    browser: Browser, plane: ControlPlane, tmp_path: Path
) -> None:
    address, secure, plain = own_address(), free_port(), free_port()
    replica(plane, address, secure)
    waits = {"name": "app", "image": "app", "resources": {"requests": {"cpu": "64"}}}
    plane.add_pod("big", "default-scheduler", containers=[waits])
    with ExitStack() as stack:
        stack.enter_context(shadow(plane, secure, 0, "0.0.0.0"))  # noqa: S104
        stack.enter_context(shadow(plane, 0, plain, "127.0.0.1"))
        server = stack.enter_context(kubectl_proxy(plane))
        behind = f"{server}{PODS}/https:{NAME}:{secure}/proxy/"
        port = stack.enter_context(forwarded(plain))
        assert get(f"{behind}podium/v1/cluster") == 403, "a request without credentials"
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        stack.callback(context.close)
        page = context.new_page()
        failures: list[str] = []
        page.on("pageerror", lambda error: failures.append(str(error)))
        for url, query in ((behind, f"?token={ADMIN}"), (f"http://localhost:{port}/", "")):
            page.goto(f"{url}{query}")
            assert page.url.split("#")[0] == url
            looked_at(page, url)
        # What the other scheduler does is seen at once, and its judgement is told beside the pages.
        page.goto(f"http://localhost:{port}/")
        expect(page.locator(".tile .cell")).to_have_count(1)
        plane.add_pod("placed", "default-scheduler", nodeName="n2")
        expect(page.locator(".tile .cell")).to_have_count(2)
        until("the shadow", lambda: get(f"http://127.0.0.1:{plain}/shadow") == 200)
        page.screenshot(path=str(tmp_path / "behind.png"))
        assert failures == []
