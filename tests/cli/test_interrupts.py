"""Ctrl-C ends a command on a large cluster soon, once and without a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from what_if.clusters import Item, node, pod

#: Generous, since other tests may use all cores; without care it takes much longer.
SOON = 10.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A cluster that takes every command some seconds."""
    items: list[Item] = []
    for number in range(400):
        name = f"n{number}"
        made = node(name, "abc"[number % 3], cpu="16")
        made["metadata"]["uid"] = name
        items.append(made)
        for place in range(12):
            one = pod(f"p{number}-{place}", nodeName=name)
            reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "w", "uid": "w"}
            one["metadata"] |= {
                "uid": f"{name}/{place}",
                "ownerReferences": [{**reference, "controller": True}],
                "labels": {"app": "w"},
            }
            items.append(one | {"status": {"phase": "Running"}})
    file = tmp_path_factory.mktemp("cluster") / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(file)


@pytest.mark.parametrize("seconds", [1.0, 3.0, 5.0])
@pytest.mark.parametrize(
    "command",
    [
        ["plan", "--drain", "topology.kubernetes.io/zone=a"],
        ["plan", "--consolidate"],
        ["plan", "--lose-each", "node"],
        ["compare", "v1.36", "v1.13"],
    ],
    ids=" ".join,
)
def test_an_interrupt_ends_a_command(cluster: str, command: list[str], seconds: float) -> None:
    program = subprocess.Popen(
        [sys.executable, "-m", "podium", command[0], *command[1:], cluster],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        start_new_session=True,
    )
    time.sleep(seconds)
    if program.poll() is None:
        os.killpg(program.pid, signal.SIGINT)
    _, err = program.communicate(timeout=SOON)

    assert "Traceback" not in err
    assert program.returncode in {0, 1, 130}
    if program.returncode == 130:
        assert err.count("interrupted") == 1
