"""Versions of nodes that are decoded one after the other equal those that are decoded alone."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.objects.kinds import node as node_module
from podium.objects.kinds.node import NodeReports
from podium.objects.kinds.registry import KINDS

ALONE = KINDS["Node"].decoder
IMAGES = st.lists(
    st.fixed_dictionaries(
        {},
        optional={"names": st.lists(st.sampled_from("abü"), max_size=2), "sizeBytes": st.just(7)},
    ),
    max_size=3,
)
STATUS = st.fixed_dictionaries(
    {},
    optional={
        "images": st.none() | IMAGES,
        "capacity": st.just({"cpu": "1"}),
        "allocatable": st.sampled_from([{"cpu": "1"}, {"cpu": 2}]),
        "conditions": st.just([{"type": "Ready", "status": "True", "lastHeartbeatTime": "now"}]),
        "declaredFeatures": st.just(["F"]),
        "addresses": st.just([{"images": [{"names": ["other"]}]}]),
    },
)
NODES = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"name": st.sampled_from("nm")},
            optional={"labels": st.just({"a": "b"}), "annotations": st.just({"images": "[]"})},
        )
    },
    optional={
        "kind": st.just("Node"),
        "apiVersion": st.just("v1"),
        "spec": st.just({"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]}),
        "status": STATUS,
    },
)


@given(versions=st.lists(NODES, min_size=1, max_size=8), most=st.sampled_from((1, 1000)))
def test_every_version_is_decoded_as_if_it_were_the_only_one(
    versions: list[dict[str, Any]], most: int
) -> None:
    reports = NodeReports()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(node_module, "_MOST_IMAGES", most)
        for version in versions:
            text = json.dumps(version).encode()
            assert reports.decode(memoryview(text)) == ALONE.decode(text)


def node(*sizes: object, name: str = "n") -> bytes:
    images = [{"names": ["x"], "sizeBytes": size} for size in sizes]
    return json.dumps({"metadata": {"name": name}, "status": {"images": images}}).encode()


def test_images_that_did_not_change_are_not_decoded_again() -> None:
    reports = NodeReports()
    first, again, other = (reports.decode(node(*sizes)) for sizes in ((1, 2), (1, 2), (1, 3)))

    assert again.status.images is first.status.images
    assert other == ALONE.decode(node(1, 3))
    assert other.status.images is not None
    assert first.status.images is not None
    assert other.status.images[0] is first.status.images[0]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(node("much"), id="an image that is none"),
        pytest.param(node(1).replace(b"{", b"[", 1), id="no object"),
        pytest.param(node(1)[:-1], id="cut off"),
        pytest.param(b'{"status":{"images":[null]}}', id="no image"),
        pytest.param(b'{"status":{"images":{}}}', id="no list"),
        pytest.param(b'{"status":{"images":[{"names":["\xff"]}]}}', id="no text"),
    ],
)
def test_what_cannot_be_decoded_is_refused_with_the_same_words(text: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)) as alone:
        ALONE.decode(text)
    with pytest.raises(type(alone.value)) as found:
        NodeReports().decode(text)

    assert str(found.value) == str(alone.value)


def test_nodes_that_are_gone_are_forgotten() -> None:
    reports = NodeReports()
    for number in range(3):
        gone = reports.decode(node(number, name=f"n{number}"))
    reports.forget(gone)
    assert sorted(reports._known) == ["n0", "n1"]

    reports.clear()
    assert not reports._known
    assert not reports._images
