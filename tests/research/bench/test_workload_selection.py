"""Workloads are selected by name, pattern and size."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.errors import InputError
from podium_research.bench.definitions import read_workloads
from podium_research.bench.workload_selection import SizeOverrides, load_workloads, select_workloads

SAMPLE = Path(__file__).parent / "sample" / "performance-config.yaml"


def test_without_a_name_the_short_ones_are_meant() -> None:
    assert [
        each.name for each in select_workloads(read_workloads(SAMPLE), [], SizeOverrides())
    ] == ["Everything/Small"]


def test_shipped_workloads_come_short_first() -> None:
    found = select_workloads(load_workloads(), [], SizeOverrides())

    assert {each.size for each in found} == {"500Nodes"}
    assert len(found) == len({each.case for each in load_workloads()})


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["SchedulingBasic/500Nodes"], ["SchedulingBasic/500Nodes"]),
        (["Preemption"], ["Preemption/500Nodes", "Preemption/5000Nodes"]),
        (["*PodAnti*/500Nodes"], ["PodAntiAffinity", "PreferredPodAntiAffinity"]),
        (["Preemption", "Preemption"], ["Preemption/500Nodes", "Preemption/5000Nodes"]),
    ],
)
def test_workloads_are_named_by_case_size_and_pattern(names: list[str], found: list[str]) -> None:
    named = [each.name for each in select_workloads(load_workloads(), names, SizeOverrides())]

    assert len(named) == len(found)
    assert all(part in name for part, name in zip(found, named, strict=True))


def test_a_workload_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match="there is no workload 'Basic'; known: SchedulingBasic"):
        select_workloads(load_workloads(), ["SchedulingBasic", "Basic"], SizeOverrides())


def test_other_numbers_leave_one_size_of_each_case() -> None:
    [found] = select_workloads(
        load_workloads(), ["SchedulingBasic"], SizeOverrides(nodes=7, pods=3)
    )

    assert found.name == "SchedulingBasic/7Nodes"
    assert found.params == {"initNodes": 7, "initPods": 500, "measurePods": 3}


def test_nodes_of_several_templates_keep_their_proportions(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        """
- name: Mixed
  workloadTemplate:
  - {opcode: createNodes, countParam: $normalNodes}
  - {opcode: createNodes, countParam: $taintNodes}
  - {opcode: createPods, countParam: $measurePods, collectMetrics: true}
  workloads:
  - {name: 50Nodes, params: {taintNodes: 10, normalNodes: 40, measurePods: 5}}
"""
    )

    [found] = select_workloads(read_workloads(path), ["Mixed"], SizeOverrides(nodes=501))

    assert found.name == "Mixed/501Nodes"
    assert found.params == {"taintNodes": 101, "normalNodes": 400, "measurePods": 5}


def test_a_number_that_no_workload_has_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("- {name: X, workloadTemplate: [], workloads: [{name: One}]}")

    with pytest.raises(InputError, match="none of these workloads has a parameter initNodes"):
        select_workloads(read_workloads(path), [], SizeOverrides(nodes=3))
