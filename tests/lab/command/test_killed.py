"""`podium lab --data`, killed ten times during writes, loses nothing that it acknowledged."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from lab.command.lab_process import LabProcess
from lab.serving import pod
from manifests import deployment

pytestmark = pytest.mark.slow

KILLS = 10
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MERGE = "application/merge-patch+json"


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


class Client:
    """Requests to one lab."""

    def __init__(self, lab: LabProcess) -> None:
        self._address = urlsplit(lab.told["server"]).netloc
        self._token = lab.told["token"]

    def call(self, method: str, path: str, body: Any = None, form: str = "application/json") -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": form}
        data = None if body is None else json.dumps(body)
        with contextlib.closing(http.client.HTTPConnection(self._address, timeout=20)) as wire:
            wire.request(method, path, data, headers)
            response = wire.getresponse()
            answer = json.loads(response.read())
        assert response.status < 300, answer
        return answer


def create_and_delete(client: Client, prefix: str, acknowledged: Acknowledged) -> None:
    for number in range(10_000):
        name = f"{prefix}-{number}"
        made = client.call("POST", PODS, pod(name))
        acknowledged.created[name] = made["metadata"]["uid"]
        if number % 4 == 3:
            del acknowledged.created[name]  # from the question on, nobody can know
            client.call("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
            acknowledged.deleted.add(name)


def scale(client: Client, acknowledged: Acknowledged) -> None:
    for _ in range(10_000):
        client.call(
            "PATCH", f"{DEPLOYMENTS}/web", {"spec": {"replicas": acknowledged.replicas + 1}}, MERGE
        )
        acknowledged.replicas += 1
        time.sleep(0.05)


def look(client: Client, acknowledged: Acknowledged) -> None:
    while True:
        for each in client.call("GET", PODS)["items"]:
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


def check(client: Client, acknowledged: Acknowledged) -> None:
    """All acknowledged writes are there, and every bound pod is on its node."""
    found = {each["metadata"]["name"]: each for each in client.call("GET", PODS)["items"]}
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
    assert client.call("GET", f"{DEPLOYMENTS}/web")["spec"]["replicas"] >= acknowledged.replicas


def test_a_lab_that_is_killed_ten_times_keeps_its_word_and_goes_on(tmp_path: Path) -> None:
    arguments = ("--data", str(tmp_path / "data"), "--nodes", "40")
    acknowledged, chance = Acknowledged(), random.Random(11)  # noqa: S311
    lab = LabProcess(tmp_path, *arguments)
    Client(lab).call("POST", DEPLOYMENTS, deployment("web", 0))
    for turn in range(KILLS):
        try:
            check(Client(lab), acknowledged)
            at_work = [
                until_gone(create_and_delete, Client(lab), f"r{turn}-a", acknowledged),
                until_gone(create_and_delete, Client(lab), f"r{turn}-b", acknowledged),
                until_gone(scale, Client(lab), acknowledged),
                until_gone(look, Client(lab), acknowledged),
            ]
            time.sleep(0.2 + chance.random() * 0.6)
        finally:
            lab.end(signal.SIGKILL)
        for each in at_work:
            each.join(30)
        lab = LabProcess(tmp_path, *arguments)
    try:
        client = Client(lab)
        check(client, acknowledged)
        asked = client.call("GET", f"{DEPLOYMENTS}/web")["spec"]["replicas"]
        lab.until(
            lambda: (
                client.call("GET", f"{DEPLOYMENTS}/web")["status"].get("readyReplicas") == asked
            ),
            seconds=60,
        )
        lab.until(
            lambda: all(
                each["status"]["phase"] == "Running" for each in client.call("GET", PODS)["items"]
            ),
            seconds=60,
        )
        check(client, acknowledged)
        owned = client.call("GET", f"{PODS}?labelSelector=app%3Dweb")["items"]
        assert sum("ownerReferences" in each["metadata"] for each in owned) == asked
    finally:
        lab.end(signal.SIGKILL)
    assert len(acknowledged.created) > 50
    assert len(acknowledged.bound) > 50
    assert acknowledged.replicas > 10
