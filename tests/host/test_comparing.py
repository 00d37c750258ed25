"""The page "Compare rules" and `podium compare` give one answer about one cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from host.conftest import ROOT, Lab
from waiting import until


def test_the_page_and_the_command_agree_on_a_fresh_lab(programs: Callable[..., Any]) -> None:
    lab: Lab = programs(Lab, "--ties", "first")
    until("a lab at rest", lambda: len(lab.pods()) > 40 and _is_at_rest(lab.pods()))

    before = after = None
    while before is None or before != after:  # pods of a job may have ended meanwhile
        before = _names(lab)
        page, listed = _of_page(lab), _of_command(lab)
        after = _names(lab)

    shown = {each["pod"]: each["nodes"] for each in page["differences"]}
    assert page["differing"] == len(shown) > 0
    assert shown == listed


def _names(lab: Lab) -> set[str]:
    return {each["metadata"]["name"] for each in lab.pods()}


def _of_page(lab: Lab) -> dict[str, Any]:
    wish = {"name": "v1.13", "seeds": 0}
    answer = lab.request("/podium/v1/compare", wish, "POST").splitlines()[-1]
    found: dict[str, Any] = json.loads(answer)["result"]
    return found


def _of_command(lab: Lab) -> dict[str, list[Any]]:
    command = ["compare", "v1.36", "v1.13", "--kubeconfig", str(lab.kubeconfig)]
    done = subprocess.run(
        [sys.executable, "-m", "podium", *command, "--seeds", "0", "-o", "json"],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        check=False,
    )
    found = json.loads(done.stdout)["differences"]
    return {each["pod"]: list(each["nodes"].values()) for each in found}


def _is_at_rest(pods: list[Any]) -> bool:
    """Whether every pod runs, or was tried and has no node."""
    return all(
        pod["status"].get("phase") == "Running"
        or any(
            each["type"] == "PodScheduled" and each["status"] == "False"
            for each in pod["status"].get("conditions") or ()
        )
        for pod in pods
    )
