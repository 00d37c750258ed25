"""Half-open connections cannot blind a scheduler, however few descriptors it has."""

from __future__ import annotations

import shlex
import socket
import sys
import urllib.request
from contextlib import ExitStack

from control_plane.bulk import create_many
from control_plane.harness import ADMIN, PODS, ControlPlane, free_port


def test_with_few_descriptors_and_many_strangers_pods_are_bound(plane: ControlPlane) -> None:
    plane.add_node("n1", {})
    port, secure = free_port(), free_port()
    command = [
        *(sys.executable, "-m", "podium", "run", "--kubeconfig", str(plane.kubeconfig(ADMIN))),
        *("--scheduler-name=podium", "--leader-elect=false", f"--port={port}"),
        f"--secure-port={secure}",
    ]
    limited = f"ulimit -n 128; exec {shlex.join(command)}"

    def is_ready() -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    with plane.program("few-descriptors", "sh", "-c", limited) as program, ExitStack() as open_ones:
        program.wait_for("it is ready", is_ready)
        for number in range(300):
            stranger = socket.create_connection(("127.0.0.1", (port, secure)[number % 2]), 10)
            open_ones.enter_context(stranger)
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1m"}}}
        spec = {"schedulerName": "podium", "containers": [container]}
        pods = [{"metadata": {"name": f"p{number}"}, "spec": spec} for number in range(60)]
        create_many(plane, PODS, pods)

        def all_bound() -> bool:
            return all(each["spec"].get("nodeName") for each in plane.get(PODS)["items"])

        program.wait_for("all are bound", all_bound)
        program.wait_for("it answers", is_ready)
