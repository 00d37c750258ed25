"""Victims kept per row equal those of a search over all rows, after any changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from builders import budget, nodes, pod, selector
from builders_v1_36 import DEFAULT, current
from podium.cluster.cache.columns import Columns
from podium.engine.framework.plan import plan_of
from podium.engine.framework.post_filter import FailedSearch
from podium.engine.framework.profile import Profile
from podium.engine.preemption import plugin, pod_priority
from podium.engine.preemption.criteria import Criterion, TabledCandidates, choose
from podium.engine.preemption.kept_victims import KeptCandidates, KeptVictims, kept_for
from podium.engine.preemption.plugin import reasons_of
from podium.engine.preemption.victim_policy import VictimPolicy
from podium.engine.preemption.victim_search import find_candidates
from podium.engine.state.view import View
from podium.objects.kinds.pod import Pod
from podium.profiles.policy.build import Options, from_provider

SIZE = 6
CLASSIC = from_provider("DefaultProvider", Options())
WANTED = (
    pod("small", requests={"cpu": "1"}, priority=3),
    pod("large", requests={"cpu": "3"}, priority=5),
    pod("port", requests={"cpu": "1"}, priority=5, ports=[80]),
)
POLICIES = (
    (CLASSIC, pod_priority.POLICY, pod_priority.CRITERIA),
    (DEFAULT, plugin.POLICY, plugin.CRITERIA),
)
#: A pod that comes (node, cpu, priority, label, host port), one that goes, a budget, or a label.
STEPS = st.one_of(
    st.tuples(
        st.just("add"),
        st.integers(0, SIZE - 1),
        st.integers(1, 3),
        st.integers(0, 5),
        st.sampled_from(["a", "b"]),
        st.booleans(),
    ),
    st.tuples(st.just("remove"), st.integers(0, 20)),
    st.tuples(st.just("terminate"), st.integers(0, 20)),
    st.tuples(st.just("budget"), st.integers(0, 1)),
    st.tuples(st.just("node"), st.integers(0, SIZE - 1), st.integers(1, 4)),
)


def search(columns: Columns, wanted: Pod, profile: Profile, *, may_keep: bool) -> FailedSearch:
    incoming = columns.pods.incoming(wanted)
    rules = plan_of(incoming.cls, profile).filters
    rows = columns.nodes.order
    return FailedSearch(
        incoming, columns, rules, rows, prepared=frozenset(), min_batch_rows=3, may_keep=may_keep
    )


def change(simulation: Any, step: tuple[Any, ...], number: int) -> None:
    columns, cache = simulation.cache.columns, simulation.cache
    placed = sorted(columns.pods.by_uid)
    match step:
        case ("add", node, cpu, priority, app, port):
            made = pod(
                f"p{number}",
                node=f"n{node:03}",
                requests={"cpu": str(cpu)},
                priority=priority,
                labels={"app": app},
                ports=[80] if port else [],
            )
            cache.add_pod(made)
        case ("remove", index) if placed:
            cache.remove(placed[index % len(placed)])
        case ("terminate", index) if placed:
            columns.mark_terminating(placed[index % len(placed)])
        case ("budget", allowed):
            columns.catalog.budgets.put(budget("b", selector({"app": "a"}), allowed=allowed))
        case ("node", node, cpu):
            cache.put_node(nodes(SIZE, cpu=str(cpu))[node])


def found(failed: FailedSearch, policy: VictimPolicy, wanted: int) -> Any:
    candidates = find_candidates(failed, policy, wanted=wanted)
    return candidates, {name: candidates[name] for name in candidates}


def costs(candidates: TabledCandidates, criteria: Sequence[Criterion]) -> list[list[float]]:
    """What every candidate costs by each criterion; they count only if all evict pods."""
    table = candidates.table() if candidates else None
    if table is None or not table.counts.all():
        return []
    return [criterion.costs(table).tolist() for criterion in criteria]


@settings(max_examples=80)
@given(
    steps=st.lists(st.lists(STEPS, max_size=8), min_size=2, max_size=8),
    generation=st.integers(0, 1),
    wanted=st.integers(1, SIZE),
)
def test_kept_victims_equal_those_of_a_search(
    steps: list[list[tuple[Any, ...]]], generation: int, wanted: int
) -> None:
    compare(steps, generation, wanted)


def compare(steps: list[list[tuple[Any, ...]]], generation: int, wanted: int) -> None:
    """Kept victims are those of a search, after each of the steps."""
    profile, policy, criteria = POLICIES[generation]
    simulation = current(*nodes(SIZE, cpu="4"), profile=profile)
    columns = simulation.cache.columns
    number = 0
    for changes in steps:
        for step in changes:
            change(simulation, step, number)
            number += 1
        for each in WANTED:
            failed = search(columns, each, profile, may_keep=True)
            assert kept_for(failed, policy) is not None
            kept, victims = found(failed, policy, wanted)
            fresh, plain = found(search(columns, each, profile, may_keep=False), policy, wanted)
            assert isinstance(kept, KeptCandidates)
            assert list(kept) == list(fresh)
            assert victims == plain
            assert choose(kept, criteria) == choose(fresh, criteria)
            assert costs(kept, criteria) == costs(fresh, criteria)
            if not kept:
                assert reasons_of(kept, columns.verdicts) == reasons_of(fresh, columns.verdicts)


class Same:
    """Equal to everything."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


def test_victims_that_outlive_a_budget_are_found() -> None:
    """A check of the check: the victims on a row are kept although a budget changed."""
    made = KeptVictims.__init__

    def keyless(self: KeptVictims, view: View, key: Any) -> None:
        made(self, view, key)
        self.key = Same()

    @settings(max_examples=400, phases=[Phase.generate], database=None)
    @given(
        steps=st.lists(st.lists(STEPS, max_size=8), min_size=2, max_size=8),
        generation=st.integers(0, 1),
        wanted=st.just(SIZE),
    )
    def searched(steps: list[list[tuple[Any, ...]]], generation: int, wanted: int) -> None:
        compare(steps, generation, wanted)

    with patch.object(KeptVictims, "__init__", keyless), pytest.raises(AssertionError):
        searched()


@pytest.mark.parametrize("protected", ["a", "b", ""])
@pytest.mark.parametrize("generation", [0, 1])
def test_a_row_that_is_tried_alone_costs_what_a_search_finds(
    generation: int, protected: str
) -> None:
    profile, policy, criteria = POLICIES[generation]
    simulation = current(*nodes(SIZE, cpu="4"), profile=profile)
    columns = simulation.cache.columns
    if protected:
        columns.catalog.budgets.put(budget("b", selector({"app": protected}), allowed=0))
    found(search(columns, WANTED[1], profile, may_keep=True), policy, SIZE)
    for number, (priority, app) in enumerate(((1, "a"), (3, "b"))):
        change(simulation, ("add", 2, 2, priority, app, False), number)
    changed = columns.nodes.rows_named(["n002"])

    one = replace(search(columns, WANTED[1], profile, may_keep=True), potential=changed)
    kept, victims = found(one, policy, SIZE)
    fresh, plain = found(replace(one, may_keep=False), policy, SIZE)

    assert isinstance(kept, KeptCandidates)
    assert victims == plain
    assert len(victims["n002"].pods) == 2
    assert costs(kept, criteria) == costs(fresh, criteria) != []


def test_a_search_tries_only_rows_that_changed() -> None:
    placed = [pod(f"p{n}", node=f"n{n:03}", requests={"cpu": "4"}, priority=1) for n in range(SIZE)]
    simulation = current(*nodes(SIZE, cpu="4"), *placed)
    columns = simulation.cache.columns
    failed = search(columns, WANTED[0], DEFAULT, may_keep=True)
    kept = kept_for(failed, plugin.POLICY)
    assert kept is not None
    assert len(kept.unknown(columns.nodes.order)) == SIZE
    find_candidates(failed, plugin.POLICY)
    simulation.cache.remove(placed[2].uid)
    again = kept_for(failed, plugin.POLICY)
    assert again is kept
    assert columns.nodes.names_of(kept.unknown(columns.nodes.order)) == ("n002",)


def test_nothing_is_kept_where_pods_on_other_nodes_count() -> None:
    simulation = current(*nodes(SIZE, cpu="4"))
    simulation.nominate(WANTED[1], "n001")
    failed = search(simulation.cache.columns, WANTED[0], DEFAULT, may_keep=True)
    assert kept_for(failed, plugin.POLICY) is None
