"""`podium history record --anonymize` beside a real API server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from control_plane.harness import ADMIN, ControlPlane
from podium.past.format.frames import SegmentReader
from podium.past.format.reading import History, ObjectChange


def test_a_cluster_is_recorded_under_other_names(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    control_plane.clear_nodes()
    control_plane.add_node("acme-a", {"acme.com/rack": "acme-rack"}, "4")
    control_plane.add_pod("acme-waits", "nobody", cpu="1")
    folder, temporary = tmp_path / "history", tmp_path / "temporary"
    temporary.mkdir()
    kubeconfig = control_plane.kubeconfig(ADMIN)
    command = [
        sys.executable,
        "-m",
        "podium",
        "history",
        "record",
        str(folder),
        "--kubeconfig",
        str(kubeconfig),
    ]
    try:
        done = subprocess.run(
            [*command, "--for", "500ms", "--anonymize", "-o", "json"],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env={**os.environ, "TMPDIR": str(temporary)},
        )
    finally:
        control_plane.clear_nodes()

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["objects"]["Node"] == 1
    history = History(folder)
    content = b""
    for path in history.segments:
        with SegmentReader(path) as reader:
            content += b"".join([repr(reader.header).encode(), *reader.parts()])
    assert b"acme" not in content
    keys = [each.key for each in history.entries() if isinstance(each, ObjectChange)]
    assert "default/node-000000" in keys
    assert "default/pod-000000" in keys
    assert list(temporary.iterdir()) == []
