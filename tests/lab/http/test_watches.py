"""Watches: where they begin, which events they send, and when they end."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

import pytest

from lab.serving import LabServer, node, pod
from podium.lab.api.resources import stored
from podium.lab.http.watches import ChangeSignals, Watch, WatchOptions
from podium.lab.registry.registry import Registry
from podium.lab.store.selection import selection
from podium.lab.store.store import Store

PODS = "/api/v1/namespaces/default/pods"


def told(events: Iterator[Any]) -> list[tuple[str, str]]:
    return [(each["type"], each["object"]["metadata"].get("name", "")) for each in events]


def test_a_watch_without_version_begins_with_what_exists(lab_server: LabServer) -> None:
    lab_server.post(PODS, pod("a"))

    events = lab_server.watch(PODS)
    first = next(events)
    lab_server.post(PODS, pod("b"))
    lab_server.delete(f"{PODS}/a")

    assert told(iter([first])) == [("ADDED", "a")]
    assert told(islice(events, 2)) == [("ADDED", "b"), ("DELETED", "a")]


def test_a_watch_goes_on_where_a_list_ended(lab_server: LabServer) -> None:
    lab_server.post(PODS, pod("a"))
    version = lab_server.get(PODS)["metadata"]["resourceVersion"]
    lab_server.post(PODS, pod("b"))
    lab_server.patch(f"{PODS}/a", {"metadata": {"labels": {"x": "y"}}})

    events = lab_server.watch(f"{PODS}?resourceVersion={version}")

    assert told(islice(events, 2)) == [("ADDED", "b"), ("MODIFIED", "a")]


def test_an_object_that_comes_into_a_selection_is_added_and_leaves_it_deleted(
    lab_server: LabServer,
) -> None:
    lab_server.post(PODS, pod("a"))
    version = lab_server.get(PODS)["metadata"]["resourceVersion"]
    events = lab_server.watch(f"{PODS}?labelSelector=on=yes&resourceVersion={version}")
    for value in ("no", "yes", "yes", "no"):
        lab_server.patch(
            f"{PODS}/a", {"metadata": {"labels": {"on": value}, "annotations": {"n": value}}}
        )
    lab_server.patch(f"{PODS}/a", {"metadata": {"labels": {"on": "yes"}}})
    lab_server.delete(f"{PODS}/a")

    found = list(islice(events, 4))

    assert told(iter(found)) == [
        ("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a"), ("DELETED", "a"),
    ]  # fmt: skip
    # What leaves the selection is shown as it was in it, at the version at which it left.
    assert found[1]["object"]["metadata"]["labels"] == {"on": "yes"}


def test_a_watch_of_one_namespace_has_no_events_of_another(lab_server: LabServer) -> None:
    events = lab_server.watch(f"{PODS}?resourceVersion=1")
    lab_server.post("/api/v1/namespaces/kube-system/pods", pod("elsewhere"))
    lab_server.post(PODS, pod("here"))

    assert told(islice(events, 1)) == [("ADDED", "here")]


def test_a_watch_from_a_compacted_version_ends_with_410() -> None:
    registry = Registry(Store(history=32))
    for number in range(100):
        registry.create("nodes", node(f"n{number}"))
    with LabServer(registry) as lab:
        event = next(lab.watch("/api/v1/nodes?resourceVersion=5"))

    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
    assert event["object"]["message"].startswith("too old resource version: 5 (")


def test_a_watch_that_falls_behind_ends_with_410() -> None:
    async def watched() -> list[bytes]:
        registry = Registry(Store(history=32))
        row = stored("nodes")
        watch = Watch(registry.store, ChangeSignals(registry.store), row, "", selection(row))
        stream = watch.stream(WatchOptions(since=1, seconds=5))
        registry.create("nodes", node("first"))
        heard = [await anext(stream)]
        for number in range(100):
            registry.create("nodes", node(f"n{number}"))
        heard += [each async for each in stream]
        return heard

    first, last = asyncio.run(watched())

    assert b'"first"' in first
    assert json.loads(last)["object"]["code"] == 410


def test_a_watch_list_ends_its_beginning_with_a_bookmark(lab_server: LabServer) -> None:
    lab_server.post(PODS, pod("a"))
    lab_server.post(PODS, pod("b"))
    asked = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

    found = list(islice(lab_server.watch(f"{PODS}?{asked}"), 3))

    assert told(iter(found)) == [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", "")]
    about = found[2]["object"]["metadata"]
    assert about["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert about["resourceVersion"] == lab_server.get(PODS)["metadata"]["resourceVersion"]


def test_a_watch_ends_in_time_with_a_bookmark(lab_server: LabServer) -> None:
    lab_server.post(PODS, pod("a"))

    found = list(lab_server.watch(f"{PODS}?timeoutSeconds=1&allowWatchBookmarks=true"))

    assert told(iter(found)) == [("ADDED", "a"), ("BOOKMARK", "")]


def test_rows_of_a_table_are_watched(lab_server: LabServer) -> None:
    lab_server.post(PODS, pod("a"))
    lab_server.post(PODS, pod("b"))
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    reply = lab_server.call("GET", f"{PODS}?watch=1&timeoutSeconds=1", headers={"Accept": table})

    events = [json.loads(line) for line in reply.body.splitlines()]

    assert [each["object"]["rows"][0]["cells"][0] for each in events] == ["a", "b"]
    assert events[0]["object"]["columnDefinitions"]
    assert not events[1]["object"]["columnDefinitions"]


def test_many_watches_have_the_same_events_in_the_same_order(lab_server: LabServer) -> None:
    heard: dict[int, list[str]] = {}

    def listen(number: int) -> None:
        events = lab_server.watch("/api/v1/nodes?resourceVersion=1")
        heard[number] = [each["object"]["metadata"]["name"] for each in islice(events, 200)]

    threads = [threading.Thread(target=listen, args=(each,)) for each in range(20)]
    for thread in threads:
        thread.start()
    for number in range(200):
        made = node(f"n{number:03d}")
        lab_server.within(partial(lab_server.registry.create, "nodes", made))
    for thread in threads:
        thread.join(30)

    assert len(heard) == 20
    assert all(each == [f"n{number:03d}" for number in range(200)] for each in heard.values())


def test_watches_at_the_same_position_share_their_bytes() -> None:
    async def watched() -> list[bytes]:
        registry = Registry()
        signals = ChangeSignals(registry.store)
        row = stored("nodes")
        watches = [Watch(registry.store, signals, row, "", selection(row)) for _ in range(3)]
        streams = [each.stream(WatchOptions(since=1, seconds=5)) for each in watches]
        registry.create("nodes", node("a"))
        registry.create("nodes", node("b"))
        return [await anext(each) for each in streams]

    first, *others = asyncio.run(watched())

    assert first.count(b"\n") == 2
    assert all(each is first for each in others)


@pytest.mark.parametrize(
    "query", ["resourceVersion=x", "sendInitialEvents=true", "fieldSelector=x"]
)
def test_a_malformed_watch_is_rejected(lab_server: LabServer, query: str) -> None:
    assert lab_server.call("GET", f"{PODS}?watch=1&{query}").status == 400
