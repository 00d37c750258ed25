"""Results in a notebook or a shell: short, by name, as HTML and as columns."""

from __future__ import annotations

from pathlib import Path

import pytest

import podium
from podium.library.reading import Paths
from podium.what_if.consolidate.consolidate import consolidate
from what_if.clusters import budget, chosen, documents, node, planned, pod, workload

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
    assert found._repr_html_().startswith("<pre>v1.37 default-scheduler: 1 pod moved")
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
    assert survival["north-a"].value == "north-a"
    for each in (capacity, fixes, compared, survival):
        assert each._repr_html_().startswith("<pre>")


def test_a_name_in_a_page_is_no_markup() -> None:
    found = planned([node("n1"), pod("a", cpu="64")], "cordon n1")
    found.pending[0].message = "<script>"

    assert "<script>" not in found._repr_html_()


def test_a_consolidation_is_short() -> None:
    found = consolidate(documents(ITEMS), chosen())

    assert repr(found) == "<Consolidation: 1 of 2 nodes can be emptied>"
