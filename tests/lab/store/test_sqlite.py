"""The journal on disk: versions go on, watches see only committed writes, a full disk is said.

That acknowledged writes survive a kill is in `command/test_killed.py`.
"""

from __future__ import annotations

import os
from pathlib import Path

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


def test_a_full_disk_refuses_writes_until_there_is_room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
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
    assert [record.message.partition("lab.sqlite")[2] for record in caplog.records] == [
        ": database or disk is full; writes are refused until it can be written again",
        " can be written again",
    ]


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
