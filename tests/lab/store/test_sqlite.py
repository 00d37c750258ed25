"""The journal on disk: acknowledged writes survive a kill, watches see only committed ones."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from lab.serving import LabServer, pod
from podium.errors import InputError
from podium.lab.registry.registry import Registry
from podium.lab.store.sqlite import SqliteJournal, open_store
from podium.lab.store.store import Key
from small_disk import fill, small_disk
from waiting import until

pytestmark = pytest.mark.slow

PODS = "/api/v1/namespaces/default/pods"
WRITERS = 4


class Lab:
    """A lab in a process, with writers that note what was acknowledged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self) -> None:
        port = self.folder / "port"
        port.unlink(missing_ok=True)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        script = Path(__file__).parents[1] / "server_process.py"
        self.process = subprocess.Popen(
            [sys.executable, script, self.folder / "data", port], env=environment
        )
        self.port = int(until("a port", lambda: port.exists() and port.read_text("utf-8")))

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, path, data, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)


def write(lab: Lab, names: str, kept: dict[str, str | None], doubtful: set[str]) -> None:
    """Create and delete pods until the lab is gone; *kept* is what was acknowledged."""
    number = 0
    while True:
        name = f"{names}-{number}"
        number += 1
        try:
            doubtful.add(name)
            status, made = lab.call("POST", PODS, pod(name))
            assert status == 201, made
            kept[name] = made["metadata"]["uid"]
            if number % 3 == 0:
                status, gone = lab.call("DELETE", f"{PODS}/{name}")
                assert status == 200, gone
                kept[name] = None
            doubtful.discard(name)
        except (OSError, http.client.HTTPException, ValueError):
            return


def check(lab: Lab, kept: dict[str, str | None], doubtful: set[str], version: int) -> None:
    """What was acknowledged is there, and what was deleted is not."""
    _, listed = lab.call("GET", PODS)
    found = {each["metadata"]["name"]: each["metadata"]["uid"] for each in listed["items"]}
    sure = {name: uid for name, uid in kept.items() if name not in doubtful}
    assert {name: found.get(name) for name in sure} == sure
    assert int(listed["metadata"]["resourceVersion"]) >= version


def test_nothing_acknowledged_is_lost_by_ten_kills(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    rng = random.Random(7)  # noqa: S311
    kept: dict[str, str | None] = {}
    doubtful: set[str] = set()
    version = 0
    for turn in range(10):
        lab.start()
        try:
            check(lab, kept, doubtful, version)
            writers = [
                threading.Thread(target=write, args=(lab, f"r{turn}-{each}", kept, doubtful))
                for each in range(WRITERS)
            ]
            acknowledged = len(kept)
            for writer in writers:
                writer.start()
            until("some writes", lambda: len(kept) > acknowledged + 2 * WRITERS)  # noqa: B023
            time.sleep(rng.random() * 0.2)
            version = int(lab.call("GET", PODS)[1]["metadata"]["resourceVersion"])
        finally:
            lab.kill()
        for writer in writers:
            writer.join(20)
    lab.start()
    try:
        check(lab, kept, doubtful, version)
    finally:
        lab.kill()
    assert sum(uid is not None for uid in kept.values()) > 50


def test_versions_go_on_after_a_restart_and_older_watches_must_list_again(tmp_path: Path) -> None:
    store, journal = open_store(tmp_path)
    registry = Registry(store)
    registry.create("pods", pod("a"))
    registry.delete("pods", "a", "default")
    before = store.version
    journal.close()

    store, journal = open_store(tmp_path)
    try:
        assert store.version == before
        assert store.table("pods").compacted == before
        made = Registry(store).create("pods", pod("b"))
        assert int(made["metadata"]["resourceVersion"]) == before + 1
    finally:
        journal.close()


def test_watchers_hear_of_what_is_on_disk(tmp_path: Path) -> None:
    store, journal = open_store(tmp_path)
    with LabServer(Registry(store)) as lab:
        events = lab.watch(f"{PODS}?resourceVersion={store.version}")
        for number in range(20):
            lab.post(PODS, pod(f"p{number}"))
            version = int(next(events)["object"]["metadata"]["resourceVersion"])
            assert version <= journal.durable_version
        assert store.version == journal.durable_version
    journal.close()


def test_a_disk_that_fails_is_said_and_nothing_more_is_taken(tmp_path: Path) -> None:
    store, journal = open_store(tmp_path)
    with LabServer(Registry(store)) as lab:
        lab.post(PODS, pod("before"))
        lab.within(lambda: journal._database.execute("DROP TABLE counter"))
        lost = lab.call("POST", PODS, pod("lost"))
        again = lab.call("POST", PODS, pod("again"))
    journal.close()

    assert (lost.status, again.status) == (503, 503)
    assert "cannot write to lab.sqlite" in again.body["message"]


def test_a_full_disk_refuses_writes_until_there_is_room(tmp_path: Path) -> None:
    with small_disk(tmp_path) as folder:
        store, journal = open_store(folder)
        with LabServer(Registry(store)) as lab:
            filler = fill(folder, leave=64 << 10)
            replies = [lab.call("POST", PODS, pod(f"p{number}")) for number in range(200)]
            refused = [each for each in replies if each.status != 201]
            assert refused
            assert {each.status for each in refused} == {503}
            assert refused[-1].body["message"] == (
                "cannot write to lab.sqlite: database or disk is full; "
                "writes are refused until it can be written again"
            )
            assert lab.call("GET", PODS).status == 200, "what is there can be read"
            ready = lab.call("GET", "/readyz")
            assert ready.status == 500
            assert "[-]store failed: cannot write to lab.sqlite" in ready.body
            assert lab.call("GET", "/livez").status == 200

            filler.unlink()
            until("it is ready again", lambda: lab.call("GET", "/readyz").status == 200)
            lab.post(PODS, pod("after"))
            told = {each["metadata"]["name"] for each in lab.get(PODS)["items"]}
        journal.close()
        kept, journal = open_store(folder)
        names = {key.name for key in kept.table("pods").records}
        journal.close()

    made = {f"p{number}" for number, each in enumerate(replies) if each.status == 201}
    assert names == told, "what could be read is on disk"
    assert names >= made | {"after"}, "and all that was acknowledged"


@pytest.mark.parametrize("before", ["", "lab.sqlite", "lab.sqlite-wal"])
def test_only_the_user_can_read_the_files(tmp_path: Path, before: str) -> None:
    """Those that an earlier lab has left open to others are closed."""
    if before:
        (tmp_path / before).touch()
        (tmp_path / before).chmod(0o644)
    before_mask = os.umask(0o022)
    try:
        store, journal = open_store(tmp_path)
    finally:
        os.umask(before_mask)
    item = {"metadata": {"name": "s"}}
    store.put("secrets", Key("default", "s"), item, {})
    modes = {each.name: each.stat().st_mode & 0o777 for each in tmp_path.iterdir()}
    journal.close()

    assert set(modes) >= {"lab.sqlite", "lab.sqlite-wal"}
    assert set(modes.values()) == {0o600}


def test_two_labs_do_not_share_a_folder(tmp_path: Path) -> None:
    _, journal = open_store(tmp_path)
    try:
        with pytest.raises(InputError, match="another lab uses it"):
            SqliteJournal(tmp_path)
    finally:
        journal.close()
