"""Results in a notebook or a shell: short, by name, as HTML and as columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import podium
from manifests import budget
from podium.library.frames import frame
from podium.library.reading import Paths
from podium.what_if.consolidate.consolidation import consolidate
from what_if.clusters import chosen, documents, node, planned, pod, workload

EXAMPLE = Path(__file__).parents[2] / "examples" / "cluster"
ITEMS = [node("n1", "a"), node("n2", "b"), workload("StatefulSet", "db", 2)]


@pytest.mark.parametrize("paths", [str(EXAMPLE), EXAMPLE, [EXAMPLE], (str(EXAMPLE),)])
def test_a_path_or_several_are_read(paths: Paths) -> None:
    assert len(podium.read(paths).nodes) == 6
    assert podium.cluster_documents(paths).documents


def test_a_plan_is_short_and_found_by_name() -> None:
    found = planned([*ITEMS, budget("b", "db", maxUnavailable=1)], "drain n1")

    assert repr(found) == "<Plan: 1 pod moved, no pod without a node, after 34.0s>"
    assert [each.pod for each in found["db"]] == [each.pod for each in found.moved]
    assert found[found.moved[0].pod] == found.moved
    with pytest.raises(KeyError, match="nothing became of web"):
        found["web"]
    assert found._repr_html_().startswith("<pre>Plan: 1 pod moved")
    assert list(found.to_frame()["outcome"]) == ["moved"]


def test_other_results_are_short() -> None:
    objects, profile = podium.read(EXAMPLE), podium.default_profile()
    capacity = podium.capacity(objects, objects.pods[0], profile)
    fixes = podium.fix(objects, "shop/search", profile)
    compared = podium.compare(objects, {"a": profile, "b": profile}, seeds=0)
    survival = podium.survive(objects, "zone", chosen())

    assert repr(capacity) == f"<Capacity: {capacity.sentence()}>"
    assert repr(fixes).startswith("<Fixes: 2 for shop/search: Tolerate the taint")
    assert repr(compared).startswith("<Comparison: 0 placements of")
    assert repr(survival).startswith("<Survival: topology.kubernetes.io/zone: ")
    explained = podium.explain(objects, "shop/search", profile)
    assert repr(explained) == "<Explanation: shop/search has no node>"
    results: list[Any] = [capacity, fixes, compared, survival, explained]
    for each in results:
        assert each._repr_html_().startswith("<pre>")
    assert capacity["a-1"] == capacity.per_node["a-1"]
    for each, name in zip(results[1:], ("b-2", "a", "north-a", "a-1"), strict=True):
        assert each[name] is not None
        with pytest.raises(KeyError):
            each["nowhere"]
    frames = [frame(each) for each in results]
    assert all(len({len(column) for column in each.values()}) == 1 for each in frames)
    assert capacity.to_frame()["pods"].sum() == capacity.pods
    assert [str(text) for text in fixes.to_frame()["node"]] == ["b-2", "a-1"]
    assert list(compared.to_frame()) == ["pod", "a", "b"]
    assert set(survival.to_frame()["lost"]) == {each.value for each in survival.domains}


def test_a_name_in_a_page_is_no_markup() -> None:
    found = planned([node("n1"), pod("a", cpu="64")], "cordon n1")
    found.pending[0].message = "<script>"

    assert "<script>" not in found._repr_html_()


def test_a_consolidation_is_short() -> None:
    found = consolidate(documents(ITEMS), chosen())

    assert repr(found) == "<Consolidation: 1 of 2 nodes can be emptied>"


def test_what_was_read_is_counted(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("{apiVersion: v1, kind: Node, metadata: {name: n}}")

    assert repr(podium.read(tmp_path)) == "<Objects: 1 Node>"
