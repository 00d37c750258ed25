"""Lists: selectors, pages at one version, tables, and versions that are compacted."""

from __future__ import annotations

import random
from typing import Any

import pytest

from lab.serving import LabServer, node, pod
from podium.lab.api.resources import stored
from podium.lab.api.status import StatusError
from podium.lab.http.list_pages import ListOptions, list_page
from podium.lab.registry.registry import Registry
from podium.lab.store.selection import selection
from podium.lab.store.store import Store

PODS = "/api/v1/namespaces/default/pods"
EVERYTHING = selection(stored("pods"))


def names(listed: Any) -> list[str]:
    return [each["metadata"]["name"] for each in listed["items"]]


def filled(count: int, store: Store | None = None) -> Registry:
    registry = Registry(store)
    for number in range(count):
        registry.create("pods", pod(f"p{number:03d}"))
    return registry


def test_nodes_are_listed_in_the_order_of_their_names(lab_server: LabServer) -> None:
    for name in ("b", "a", "c"):
        lab_server.post("/api/v1/nodes", node(name))

    assert names(lab_server.get("/api/v1/nodes")) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("labelSelector=app=web", ["a", "b"]),
        ("labelSelector=app!=web", ["c"]),
        ("labelSelector=app+in+(web,db)", ["a", "b", "c"]),
        ("labelSelector=!tier", ["b", "c"]),
        ("fieldSelector=spec.nodeName=", ["b", "c"]),
        ("fieldSelector=spec.nodeName=n1", ["a"]),
        ("fieldSelector=metadata.name!=a,status.phase=Pending", ["b", "c"]),
        ("fieldSelector=spec.schedulerName=other", ["c"]),
        ("labelSelector=app=web&fieldSelector=spec.nodeName=", ["b"]),
    ],
)
def test_selectors_choose(lab_server: LabServer, query: str, expected: list[str]) -> None:
    for name, labels, spec in (
        ("a", {"app": "web", "tier": "1"}, {"nodeName": "n1"}),
        ("b", {"app": "web"}, {}),
        ("c", {"app": "db"}, {"schedulerName": "other"}),
    ):
        item = pod(name, **spec)
        item["metadata"]["labels"] = labels
        lab_server.post(PODS, item)

    assert names(lab_server.get(f"{PODS}?{query}")) == expected


def test_pages_are_of_one_version_whatever_is_written_in_between(lab_server: LabServer) -> None:
    for number in range(10):
        lab_server.post(PODS, pod(f"p{number}"))

    first = lab_server.get(f"{PODS}?limit=4")
    lab_server.delete(f"{PODS}/p8")
    lab_server.post(PODS, pod("p77"))
    lab_server.patch(f"{PODS}/p9", {"metadata": {"labels": {"new": "yes"}}})
    second = lab_server.get(f"{PODS}?limit=4&continue={first['metadata']['continue']}")
    third = lab_server.get(f"{PODS}?limit=4&continue={second['metadata']['continue']}")

    assert names(first) + names(second) + names(third) == [f"p{each}" for each in range(10)]
    assert first["metadata"]["remainingItemCount"] == 6
    versions = {each["metadata"]["resourceVersion"] for each in (first, second, third)}
    assert len(versions) == 1
    assert "labels" not in third["items"][-1]["metadata"]
    assert "continue" not in third["metadata"]


def test_a_list_at_any_remembered_version_is_what_it_was() -> None:
    registry, chance = Registry(), random.Random(5)  # noqa: S311
    row = stored("pods")
    then: dict[int, list[bytes]] = {}
    for step in range(200):
        name = f"p{chance.randrange(12)}"
        if registry.find("pods", name, "default") is None:
            registry.create("pods", pod(name))
        elif chance.random() < 0.5:
            registry.delete("pods", name, "default")
        else:
            label = {"step": str(step)}
            registry.modify(
                "pods", name, "default",
                change=lambda found, label=label: found | {  # type: ignore[misc]
                    "metadata": found["metadata"] | {"labels": label}
                },
            )  # fmt: skip
        found = list_page(registry.store, row, "", EVERYTHING, ListOptions())
        then[found.version] = [each.data for each in found.records]

    for version, expected in then.items():
        ask = ListOptions(version=str(version), version_match="Exact")
        found = list_page(registry.store, row, "default", EVERYTHING, ask)
        assert [each.data for each in found.records] == expected


def test_a_compacted_list_gets_a_token_to_continue_at_the_current_version() -> None:
    registry = filled(30, Store(history=64))
    row = stored("pods")
    first = list_page(registry.store, row, "", EVERYTHING, ListOptions(limit=10))
    for number in range(100):
        registry.create("pods", pod(f"q{number}"))

    second = ListOptions(limit=10, continue_token=first.continue_token)
    with pytest.raises(StatusError) as error:
        list_page(registry.store, row, "", EVERYTHING, second)

    assert (error.value.code, error.value.reason) == (410, "Expired")
    # The error has a token that lists the rest at the current version.
    options = ListOptions(limit=10, continue_token=error.value.metadata["continue"])
    rest = list_page(registry.store, row, "", EVERYTHING, options)
    assert rest.records[0].key.name == "p010"


def test_a_version_of_the_future_is_refused(lab_server: LabServer) -> None:
    reply = lab_server.call("GET", f"{PODS}?resourceVersion=99999999")

    assert (reply.status, reply.body["reason"]) == (504, "Timeout")
    assert reply.headers["retry-after"] == "1"


def test_tables_have_a_row_for_each_object(lab_server: LabServer) -> None:
    lab_server.post(PODS, pod("web"))
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}

    table = lab_server.call("GET", PODS, headers=accept).body

    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert table["columnDefinitions"][0]["name"] == "Name"
    assert table["rows"][0]["cells"][0] == "web"
    assert table["rows"][0]["object"]["metadata"]["name"] == "web"
    assert int(table["metadata"]["resourceVersion"]) > 0


def test_metadata_alone_is_served(lab_server: LabServer) -> None:
    lab_server.post(PODS, pod("web"))
    accept = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}

    listed = lab_server.call("GET", PODS, headers=accept).body

    assert listed["kind"] == "PartialObjectMetadataList"
    assert "spec" not in listed["items"][0]


def test_a_client_that_accepts_protobuf_only_gets_406(
    lab_server: LabServer,
) -> None:
    accept = {"Accept": "application/vnd.kubernetes.protobuf"}

    assert lab_server.call("GET", PODS, headers=accept).status == 406
