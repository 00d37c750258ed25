"""A native resource as ARCHITECTURE.md says how to add one: a name in two places is enough."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

SOURCE = Path(__file__).parents[3] / "src"
#: The two places that the recipe names: what is counted, and what a manifest may name.
EDITS = (
    (
        "engine/state/accounting.py",
        'NATIVE = ("cpu", "memory", "ephemeral-storage")',
        'NATIVE = ("cpu", "memory", "ephemeral-storage", "slots")',
    ),
    (
        "lab/kinds/field_checks.py",
        '_CONTAINER_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})',
        '_CONTAINER_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage", "slots"})',
    ),
)


def node(name: str) -> dict[str, object]:
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "20", "slots": "2"}
    return {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": allocatable}}


def pod(name: str) -> dict[str, object]:
    requests = {"cpu": "100m", "slots": "1"}
    container = {"name": "c", "image": "i", "resources": {"requests": requests}}
    return {"kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


@pytest.fixture(scope="module")
def with_slots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source with one more native resource, and a cluster that has it."""
    folder = tmp_path_factory.mktemp("slots")
    shutil.copytree(SOURCE, folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for path, line, changed in EDITS:
        file = folder / "src" / "podium" / path
        text = file.read_text("utf-8")
        assert line in text, path
        file.write_text(text.replace(line, changed), "utf-8")
    items = [node("n0"), node("n1"), *(pod(f"p{number}") for number in range(5))]
    document = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [{"apiVersion": "v1", **i} for i in items],
    }
    (folder / "cluster.yaml").write_text(yaml.safe_dump(document), "utf-8")
    return folder


@pytest.mark.parametrize("profile", ["v1.36", "v1.13"])
def test_a_name_is_enough_for_pods_to_be_counted(with_slots: Path, profile: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "podium", "schedule", "cluster.yaml", "--profile", profile],
        cwd=with_slots,
        env={**os.environ, "PYTHONPATH": str(with_slots / "src")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "4 of 5 pods placed, 1 not" in done.stdout, done.stderr
    assert "2 Insufficient slots" in done.stdout
