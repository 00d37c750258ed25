"""Victims chosen on many rows at once are those chosen on one row after the other.

For both generations: where taking pods away changes nothing but the room on a row, the mass trial
must come to the same candidates, victims, budget violations and reasons as one trial per row, the
place at which the search stops included.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import budget, node, nodes, pod, selector, simulation, taint, term
from plugins.made import DEFAULT, HOST, current, status_with
from podium.cluster.columns import Columns
from podium.engine import mass_trial
from podium.engine.decision import Victims
from podium.engine.mass_trial import MassVictims, applies
from podium.engine.plugins.default_preemption import DefaultPreemption
from podium.engine.post_filter import Scene
from podium.engine.preemption import CRITERIA, choose_by, find_candidates, victims_on
from podium.engine.profile import Profile
from podium.objects.meta import Object
from podium.objects.pod import Pod
from podium.profiles.build import Options, from_provider

CLASSIC = from_provider("DefaultProvider", Options())
LABELS: tuple[dict[str, str] | None, ...] = (
    None,
    {"app": "a"},
    {"app": "b"},
    {"app": "a", "b": "y"},
)
REQUESTS: tuple[dict[str, Any] | None, ...] = (
    None,
    {"cpu": "1"},
    {"cpu": "2", "memory": "1Gi"},
    {"memory": "2Gi", "example.com/gpu": 1},
    {"cpu": "500m", "ephemeral-storage": 3},
)
NODE_KINDS: tuple[dict[str, Any], ...] = (
    {},
    {"cpu": "2", "pods": 3},
    {"memory": "2Gi"},
    {"resources": {"example.com/gpu": 1}},
    {"taints": [taint()]},
    {"labels": {HOST: "some"}, "cpu": "8"},
)
BUDGETS = (
    budget("none", selector({"app": "a"})),
    budget("one", selector({"app": "a"}), allowed=1),
    budget("two", selector(None), allowed=0),
    budget("b", selector({"app": "b"}), allowed=2),
    budget("both", selector({"b": "y"}), allowed=1),
    budget("away", selector({"app": "a"}), namespace="other"),
    msgspec.structs.replace(
        budget("gone", selector({"app": "b"})),
        status=msgspec.structs.replace(
            budget("x", None).status, disrupted_pods={"p0": "", "p3": ""}
        ),
    ),
)
STARTS = (None, "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", "2026-01-01T00:01:00.5Z")


@st.composite
def crowded(draw: st.DrawFn) -> tuple[tuple[Object, ...], Pod]:
    """Nodes full of pods of many priorities, budgets, and a pod that wants room."""
    count = draw(st.integers(2, 7))
    made: list[Object] = [
        node(
            f"n{i}", **{"cpu": "4", "memory": "4Gi", "pods": 6, **draw(st.sampled_from(NODE_KINDS))}
        )
        for i in range(count)
    ]
    for i in range(draw(st.integers(0, 14))):
        placed = pod(
            f"p{i}",
            namespace=draw(st.sampled_from(["default", "default", "other"])),
            node=f"n{draw(st.integers(0, count - 1))}",
            labels=draw(st.sampled_from(LABELS)),
            requests=draw(st.sampled_from(REQUESTS)),
            priority=draw(st.sampled_from([None, -5, 1, 2, 3, 9])),
            terminating=draw(st.sampled_from([False, False, False, True])),
        )
        made.append(status_with(placed, start_time=draw(st.sampled_from(STARTS))))
    budgets = draw(st.lists(st.sampled_from(BUDGETS), max_size=3, unique_by=lambda b: b.name))
    wanted = pod(
        "wanted",
        requests=draw(st.sampled_from([None, {"cpu": "4"}, {"cpu": "3", "memory": "3Gi"}])),
        priority=draw(st.sampled_from([0, 2, 5])),
    )
    return (*made, *budgets), wanted


def spelled_out(found: Any) -> dict[str, Victims]:
    return {name: found[name] for name in found}


def scene_of(columns: Columns, wanted: Pod, profile: Profile) -> Scene:
    active = tuple(
        rule
        for rule in profile.predicates
        if not rule.skips(columns.incoming(wanted), columns)  # type: ignore[attr-defined]
    )
    return Scene(columns.incoming(wanted), columns, profile, active, columns.order, frozenset())


@given(case=crowded())
@settings(max_examples=150)
def test_classic_candidates_are_those_of_one_row_after_the_other(
    case: tuple[tuple[Object, ...], Pod],
) -> None:
    items, wanted = case
    columns = simulation(*items, profile=CLASSIC, listed_order=True).cache.columns
    incoming = columns.incoming(wanted)
    plain = {
        columns.names[row]: victims
        for row in columns.order.tolist()
        if (victims := victims_on(incoming, columns, CLASSIC, row)) is not None
    }

    with patch.object(mass_trial, "WORTH_IT", 1):
        assert applies(incoming, columns, CLASSIC.predicates, columns.order)
        together = find_candidates(incoming, columns, CLASSIC, columns.order)

    assert isinstance(together, MassVictims)
    assert spelled_out(together) == plain
    assert list(together) == list(plain)
    assert choose_by(together, CRITERIA) == choose_by(plain, CRITERIA)


@given(
    case=crowded(),
    percentage=st.sampled_from([0, 10, 50, 100]),
    absolute=st.sampled_from([0, 1, 2, 3, 100]),
)
@settings(max_examples=200)
def test_current_candidates_are_those_of_one_row_after_the_other(
    case: tuple[tuple[Object, ...], Pod], percentage: int, absolute: int
) -> None:
    items, wanted = case
    columns = current(*items).cache.columns
    scene = scene_of(columns, wanted, DEFAULT)
    preemption = DefaultPreemption(percentage, absolute)

    with patch.object(mass_trial, "WORTH_IT", 1000):
        plain, reasons = preemption._candidates(scene)
    with patch.object(mass_trial, "WORTH_IT", 1):
        assert applies(scene.pod, columns, scene.active, scene.potential)
        together, all_reasons = preemption._candidates(scene)

    assert isinstance(together, MassVictims)
    assert spelled_out(together) == dict(plain)
    assert list(together) == list(plain)
    if not plain:
        # With candidates nobody asks why other nodes are none.
        assert (all_reasons.counts, all_reasons.total_nodes) == (
            reasons.counts,
            reasons.total_nodes,
        )


@given(case=crowded())
@settings(max_examples=100)
def test_whole_decisions_are_the_same(case: tuple[tuple[Object, ...], Pod]) -> None:
    items, wanted = case
    told = []
    for worth_it in (1, 1000):
        with patch.object(mass_trial, "WORTH_IT", worth_it):
            decision = current(*items).attempt(wanted, recording=True)
        preemption = decision.preemption
        told.append(
            (
                decision.node,
                decision.message,
                preemption
                and (
                    dict(preemption.candidates),
                    preemption.node,
                    preemption.tie,
                    preemption.criterion,
                    preemption.nomination,
                ),
            )
        )

    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("wanted", "others", "expected"),
    [
        pytest.param(pod(), [], True, id="room is all that counts"),
        pytest.param(pod(ports=[80]), [], False, id="ports depend on who goes"),
        pytest.param(
            pod(anti=[term({"app": "a"}, HOST)]), [], False, id="so does affinity of its own"
        ),
        pytest.param(
            pod(labels={"app": "a"}),
            [pod("shy", node="n000", anti=[term({"app": "a"}, HOST)])],
            False,
            id="and the affinity of others",
        ),
        pytest.param(
            pod(labels={"app": "a"}),
            [pod("shy", node="n000", anti=[term({"app": "b"}, HOST)])],
            True,
            id="unless it means somebody else",
        ),
        pytest.param(
            pod(), [pod("first", nominated="n003")], False, id="a promised node is tried twice"
        ),
    ],
)
def test_when_a_mass_trial_applies(wanted: Pod, others: list[Pod], expected: bool) -> None:
    made = [each for i in range(10) for each in nodes(10, labels={HOST: f"h{i}"})[i : i + 1]]
    for profile, columns in (
        (CLASSIC, simulation(*made, *others, profile=CLASSIC).cache.columns),
        (DEFAULT, current(*made, *others).cache.columns),
    ):
        incoming = columns.incoming(wanted)
        assert applies(incoming, columns, profile.predicates, columns.order) is expected


def test_few_rows_are_tried_one_by_one() -> None:
    columns = current(*nodes(7)).cache.columns

    assert not applies(columns.incoming(pod()), columns, DEFAULT.predicates, columns.order)


@pytest.mark.parametrize(
    ("percentage", "absolute", "expected"),
    [
        pytest.param(10, 100, 100, id="at least a hundred candidates of 120 nodes"),
        pytest.param(100, 1, 120, id="a hundred percent are all of them"),
        pytest.param(10, 1, 12, id="ten percent of 120 nodes"),
        pytest.param(0, 1, 1, id="one is enough when only one is wanted"),
        pytest.param(0, 500, 120, id="no more than there are"),
    ],
)
@pytest.mark.parametrize("worth_it", [8, 10_000], ids=["all at once", "one by one"])
def test_the_search_stops_at_enough_candidates(
    worth_it: int, percentage: int, absolute: int, expected: int
) -> None:
    made = nodes(120, cpu="1")
    placed = [pod(f"p{n.name}", node=n.name, requests={"cpu": "1"}) for n in made]
    columns = current(*made, *placed).cache.columns
    scene = scene_of(columns, pod("wanted", requests={"cpu": "1"}, priority=5), DEFAULT)

    with patch.object(mass_trial, "WORTH_IT", worth_it):
        candidates, _ = DefaultPreemption(percentage, absolute)._candidates(scene)

    assert len(candidates) == expected
    assert list(candidates) == [each.name for each in made[:expected]]


@pytest.mark.parametrize("worth_it", [8, 10_000], ids=["all at once", "one by one"])
def test_the_search_goes_on_while_every_candidate_violates_a_budget(worth_it: int) -> None:
    made = nodes(20, cpu="1")
    placed = [
        pod(
            f"p{i}",
            node=each.name,
            requests={"cpu": "1"},
            labels={"app": "a" if i < 13 else "b"},
        )
        for i, each in enumerate(made)
    ]
    columns = current(*made, *placed, budget("a", selector({"app": "a"}))).cache.columns
    scene = scene_of(columns, pod("wanted", requests={"cpu": "1"}, priority=5), DEFAULT)

    with patch.object(mass_trial, "WORTH_IT", worth_it):
        candidates, _ = DefaultPreemption(0, 2)._candidates(scene)

    assert list(candidates) == [each.name for each in made[:14]]
    assert [candidates[name].violations for name in candidates] == [1] * 13 + [0]
