"""`podium lab --data`, killed ten times during writes, loses nothing that it acknowledged."""

from __future__ import annotations

import contextlib
import http.client
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from lab.command.lab_process import LabProcess
from lab.serving import pod
from manifests import deployment

pytestmark = pytest.mark.slow

KILLS = 10
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MERGE = "merge-patch+json"


class Acknowledged:
    """The writes that labs acknowledged, over all restarts."""

    def __init__(self) -> None:
        #: uids of pods that were created and not asked to go.
        self.created: dict[str, str] = {}
        #: Names of pods whose deletion was acknowledged.
        self.deleted: set[str] = set()
        #: The node of every pod that was seen on one, by uid.
        self.bound: dict[str, str] = {}
        self.replicas = 0


def create_and_delete(lab: LabProcess, prefix: str, acknowledged: Acknowledged) -> None:
    for number in range(10_000):
        name = f"{prefix}-{number}"
        made = lab.fine("POST", PODS, pod(name))
        acknowledged.created[name] = made["metadata"]["uid"]
        if number % 4 == 3:
            del acknowledged.created[name]  # from the question on, nobody can know
            lab.fine("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
            acknowledged.deleted.add(name)


def scale(lab: LabProcess, acknowledged: Acknowledged) -> None:
    for _ in range(10_000):
        lab.fine(
            "PATCH", f"{DEPLOYMENTS}/web", {"spec": {"replicas": acknowledged.replicas + 1}}, MERGE
        )
        acknowledged.replicas += 1
        time.sleep(0.05)


def look(lab: LabProcess, acknowledged: Acknowledged) -> None:
    while True:
        for each in lab.fine("GET", PODS)["items"]:
            if each["spec"].get("nodeName"):
                acknowledged.bound[each["metadata"]["uid"]] = each["spec"]["nodeName"]


def until_gone(act: Any, *arguments: Any) -> threading.Thread:
    """Something that is done until the lab no longer answers."""

    def acted() -> None:
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            act(*arguments)

    thread = threading.Thread(target=acted)
    thread.start()
    return thread


def check(lab: LabProcess, acknowledged: Acknowledged) -> None:
    """All acknowledged writes are there, and every bound pod is on its node."""
    found = {each["metadata"]["name"]: each for each in lab.fine("GET", PODS)["items"]}
    uids = {
        name: found[name]["metadata"]["uid"] if name in found else ""
        for name in acknowledged.created
    }
    assert uids == acknowledged.created
    assert not acknowledged.deleted & found.keys()
    nodes = {each["metadata"]["uid"]: each["spec"].get("nodeName", "") for each in found.values()}
    moved = {
        uid: nodes[uid]
        for uid in acknowledged.bound
        if uid in nodes and nodes[uid] != acknowledged.bound[uid]
    }
    assert moved == {}
    assert lab.fine("GET", f"{DEPLOYMENTS}/web")["spec"]["replicas"] >= acknowledged.replicas


def test_a_lab_that_is_killed_ten_times_keeps_its_word_and_goes_on(tmp_path: Path) -> None:
    arguments = ("--data", str(tmp_path / "data"), "--nodes", "40")
    acknowledged, chance = Acknowledged(), random.Random(11)  # noqa: S311
    lab = LabProcess(tmp_path, *arguments)
    lab.fine("POST", DEPLOYMENTS, deployment("web", 0))
    for turn in range(KILLS):
        try:
            check(lab, acknowledged)
            at_work = [
                until_gone(create_and_delete, lab, f"r{turn}-a", acknowledged),
                until_gone(create_and_delete, lab, f"r{turn}-b", acknowledged),
                until_gone(scale, lab, acknowledged),
                until_gone(look, lab, acknowledged),
            ]
            time.sleep(0.2 + chance.random() * 0.6)
        finally:
            lab.end(signal.SIGKILL)
        for each in at_work:
            each.join(30)
        lab = LabProcess(tmp_path, *arguments)
    try:
        check(lab, acknowledged)
        asked = lab.fine("GET", f"{DEPLOYMENTS}/web")["spec"]["replicas"]
        lab.until(
            lambda: lab.fine("GET", f"{DEPLOYMENTS}/web")["status"].get("readyReplicas") == asked,
            seconds=60,
        )
        lab.until(
            lambda: all(
                each["status"]["phase"] == "Running" for each in lab.fine("GET", PODS)["items"]
            ),
            seconds=60,
        )
        check(lab, acknowledged)
        owned = lab.fine("GET", f"{PODS}?labelSelector=app%3Dweb")["items"]
        assert sum("ownerReferences" in each["metadata"] for each in owned) == asked
    finally:
        lab.end(signal.SIGKILL)
    assert len(acknowledged.created) > 50
    assert len(acknowledged.bound) > 50
    assert acknowledged.replicas > 10
