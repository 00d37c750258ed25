"""Victims chosen on many rows at once are those chosen on one row after the other.

For both generations, in clusters with every kind of rule that reads the pods on a node: the mass
trial must come to the same candidates, victims, budget violations and reasons as one trial per row,
the place at which the search stops included. The second look at nodes promised to others is held
together likewise.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import (
    budget,
    claim,
    claim_volume,
    gce,
    node,
    nodes,
    pod,
    selector,
    simulation,
    taint,
    term,
    volume,
)
from builders_v1_36 import (
    DEFAULT,
    HOST,
    ZONE,
    csi_node,
    current,
    exclusive,
    spec_with,
    spread,
    status_with,
)
from podium.cluster.cache.columns import Columns
from podium.engine.cycle.post_filter import Scene
from podium.engine.framework.decision import Victims
from podium.engine.framework.profile import Profile
from podium.engine.preemption import batch_filter as lockstep
from podium.engine.preemption import victim_order
from podium.engine.preemption.batch_filter import in_lockstep
from podium.engine.preemption.v1_13 import (
    CRITERIA,
    choose_by,
    find_candidates,
    victims_on,
)
from podium.engine.preemption.v1_36 import LATEST_START, DefaultPreemption
from podium.engine.preemption.victim_search import MassVictims
from podium.engine.rows.pod_arrays import Crowd
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import Pod, TopologySpreadConstraint
from podium.profiles.policy.build import Options, from_policy, from_provider

CLASSIC = from_provider("DefaultProvider", Options())
CHECK_ALL = from_policy(
    {"apiVersion": "v1", "kind": "Policy", "alwaysCheckAllPredicates": True}, Options()
)
LIMIT = "attachable-volumes-csi-d.example.com"
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
    {"labels": {ZONE: "z0"}},
    {"labels": {}},
    {"resources": {LIMIT: 1}},
)
#: What pods on nodes, and pods promised to them, are like besides.
OTHER_KINDS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"anti": [term({"app": "a"}, HOST)]},
    {"anti": [term({"app": "w"}, HOST)]},
    {"anti": [term({"app": "w"}, ZONE), term({"app": "b"}, HOST)]},
    {"anti": [term({"app": "w"}, ZONE, ["other"])]},
    {"affinity": [term({"app": "a"}, ZONE)]},
    {"ports": [80]},
    {"ports": [80, 81]},
    {"ports": [("10.0.0.1", "TCP", 80)]},
    {"ports": [("10.0.0.2", "TCP", 80), ("", "UDP", 80)]},
    {"volumes": [gce("d")]},
    {"volumes": [gce("d", read_only=True)]},
    {"volumes": [claim_volume("one")]},
    {"volumes": [claim_volume("two"), claim_volume("alone")]},
    {"volumes": [claim_volume("missing")]},
)
#: What the pod that wants room is like besides.
WANTED_KINDS: tuple[dict[str, Any], ...] = (
    {},
    {"labels": {"app": "w"}},
    {"labels": {"app": "w"}, "anti": [term({"app": "a"}, HOST)]},
    {"labels": {"app": "w"}, "anti": [term({"app": "a"}, ZONE), term({"b": "y"}, HOST)]},
    {"anti": [term({"app": "b"}, "missing"), term({"app": "a"}, HOST)]},
    {"labels": {"app": "a"}, "affinity": [term({"app": "a"}, ZONE)]},
    {"labels": {"app": "w"}, "affinity": [term({"app": "a"}, HOST), term({"app": "a"}, ZONE)]},
    {"affinity": [term({"app": "b"}, ZONE)], "anti": [term({"app": "a"}, HOST)]},
    {"labels": {"app": "w"}, "ports": [80]},
    {"ports": [("10.0.0.1", "TCP", 80)]},
    {"ports": [("10.0.0.3", "TCP", 80), ("", "TCP", 81)], "labels": {"app": "w"}},
    {"volumes": [gce("d")]},
    {"volumes": [gce("d", read_only=True)]},
    {"volumes": [claim_volume("mine")], "labels": {"app": "w"}},
    {"volumes": [claim_volume("alone")]},
)
CONSTRAINTS: tuple[tuple[TopologySpreadConstraint, ...], ...] = (
    (),
    (spread(ZONE, 1, selector({"app": "a"})),),
    (spread(ZONE, 1, selector({"app": "w"})), spread(HOST, 2, selector({"app": "a"}))),
    (spread(HOST, 1, selector(None)), spread(ZONE, 2, selector({"app": "b"}), least=3)),
    (spread(ZONE, 1, selector({"app": "a"}), taints="Honor"),),
)
STORAGE: tuple[Object, ...] = (
    volume("v1", claimed_by="one", csi=("d.example.com", "h1")),
    volume("v2", claimed_by="two", csi=("d.example.com", "h2")),
    volume("v3", claimed_by="mine", csi=("d.example.com", "h3")),
    volume("v4", claimed_by="alone", csi=("d.example.com", "h4")),
    claim("one", volume="v1"),
    claim("two", volume="v2"),
    claim("mine", volume="v3"),
    exclusive(claim("alone", volume="v4")),
    csi_node("n0", d=1),
    csi_node("n1", d=2),
    csi_node("n2"),
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


Case = tuple[tuple[Object, ...], Pod]


@st.composite
def crowded(draw: st.DrawFn, *, rules: bool = True) -> Case:
    """Nodes full of pods of many priorities, budgets, promises, and a pod that wants room."""
    count = draw(st.integers(2, 7))
    made: list[Object] = []
    for i in range(count):
        given = {
            "cpu": "4",
            "memory": "4Gi",
            "pods": 6,
            "labels": {HOST: f"n{i}", ZONE: f"z{i % 3}"},
        }
        made.append(node(f"n{i}", **(given | draw(st.sampled_from(NODE_KINDS)))))
    if rules:
        made += STORAGE
    for i in range(draw(st.integers(0, 14))):
        placed = pod(
            f"p{i}",
            namespace=draw(st.sampled_from(["default", "default", "other"])),
            node=f"n{draw(st.integers(0, count - 1))}",
            labels=draw(st.sampled_from(LABELS)),
            requests=draw(st.sampled_from(REQUESTS)),
            priority=draw(st.sampled_from([None, -5, 1, 2, 3, 9])),
            terminating=draw(st.sampled_from([False, False, False, True])),
            **(draw(st.sampled_from(OTHER_KINDS)) if rules else {}),
        )
        made.append(status_with(placed, start_time=draw(st.sampled_from(STARTS))))
    budgets = draw(st.lists(st.sampled_from(BUDGETS), max_size=3, unique_by=lambda b: b.name))
    for i in range(draw(st.integers(0, 3)) if rules else 0):
        made.append(
            pod(
                f"promised{i}",
                nominated=f"n{draw(st.integers(0, count))}",
                labels=draw(st.sampled_from(LABELS)),
                requests=draw(st.sampled_from(REQUESTS)),
                priority=draw(st.sampled_from([1, 4, 9])),
                **draw(st.sampled_from(OTHER_KINDS)),
            )
        )
    wanted = pod(
        "wanted",
        requests=draw(st.sampled_from([None, {"cpu": "4"}, {"cpu": "3", "memory": "3Gi"}])),
        priority=draw(st.sampled_from([0, 2, 5])),
        **(draw(st.sampled_from(WANTED_KINDS)) if rules else {}),
    )
    constraints = list(draw(st.sampled_from(CONSTRAINTS))) if rules else None
    return (*made, *budgets), spec_with(wanted, topology_spread_constraints=constraints or None)


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
    case: Case,
) -> None:
    items, wanted = case
    columns = simulation(*items, profile=CLASSIC, listed_order=True).cache.columns
    incoming = columns.incoming(wanted)
    plain = {
        columns.names[row]: victims
        for row in columns.order.tolist()
        if (victims := victims_on(incoming, columns, CLASSIC, row)) is not None
    }

    with patch.object(lockstep, "WORTH_IT", 1):
        together = find_candidates(incoming, columns, CLASSIC, columns.order)

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
    case: Case, percentage: int, absolute: int
) -> None:
    items, wanted = case
    columns = current(*items).cache.columns
    scene = scene_of(columns, wanted, DEFAULT)
    preemption = DefaultPreemption(percentage, absolute)

    with patch.object(lockstep, "WORTH_IT", 1000):
        plain, reasons = preemption._candidates(scene)
    with patch.object(lockstep, "WORTH_IT", 1):
        together, all_reasons = preemption._candidates(scene)

    assert spelled_out(together) == dict(plain)
    assert list(together) == list(plain)
    criteria = (*CRITERIA, LATEST_START)
    assert choose_by(together, criteria) == choose_by(dict(plain), criteria)
    if not plain:
        # With candidates nobody asks why other nodes are none.
        assert (all_reasons.counts, all_reasons.total_nodes, all_reasons.errors) == (
            reasons.counts,
            reasons.total_nodes,
            reasons.errors,
        )


@given(
    rows=st.lists(
        st.lists(
            st.tuples(st.sampled_from([0, 1]), st.sampled_from(STARTS)), min_size=0, max_size=40
        ),
        max_size=6,
    )
)
@settings(max_examples=200)
def test_pods_of_equal_importance_are_ordered_as_on_one_row(
    rows: list[list[tuple[int, str | None]]],
) -> None:
    columns = current(*nodes(len(rows))).cache.columns
    for number, pods in enumerate(rows):
        for i, (priority, started) in enumerate(pods):
            made = pod(f"p{number}-{i}", node=f"n{number:03}", priority=priority)
            columns.add_pod(status_with(made, start_time=started))
    crowd = Crowd.on(columns, columns.order)
    times = np.array([each.started for each in crowd.pods], np.float64)

    order = victim_order.by_importance(crowd.place, crowd.priority, times)

    told = [crowd.pods[i].key for i in order.tolist()]
    residents = [
        victim_order.sorted_by_importance(columns.residents[row]) for row in columns.order.tolist()
    ]
    assert told == [each.key for row in residents for each in row]


@given(case=crowded(rules=False))
@settings(max_examples=50)
def test_where_only_room_counts_all_rows_are_tried_together(case: Case) -> None:
    items, wanted = case
    with patch.object(lockstep, "WORTH_IT", 1):
        columns = simulation(*items, profile=CLASSIC, listed_order=True).cache.columns
        incoming = columns.incoming(wanted)
        found = find_candidates(incoming, columns, CLASSIC, columns.order)
        scene = scene_of(current(*items).cache.columns, wanted, DEFAULT)
        told, _ = DefaultPreemption()._candidates(scene)

    assert isinstance(found, MassVictims)
    assert isinstance(told, MassVictims)


@pytest.mark.parametrize("profile", [CLASSIC, CHECK_ALL, DEFAULT], ids=["v1.13", "all", "v1.36"])
@given(case=crowded())
@settings(max_examples=120)
def test_whole_decisions_are_the_same(profile: Profile, case: Case) -> None:
    items, wanted = case
    told = []
    for worth_it in (1, 1000):
        with patch.object(lockstep, "WORTH_IT", worth_it):
            made = simulation(*items, profile=profile, listed_order=True)
            decision = made.attempt(wanted, recording=True)
        preemption = decision.preemption
        told.append(
            (
                decision.node,
                decision.message,
                decision.error,
                decision.feasible,
                [made.cache.columns.verdicts[code] for code in decision.codes.tolist()],
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
        pytest.param(pod(ports=[80]), [], True, id="ports are counted"),
        pytest.param(
            pod(anti=[term({"app": "a"}, HOST)]), [], True, id="so are pods its affinity means"
        ),
        pytest.param(
            pod(labels={"app": "a"}),
            [pod("shy", node="n000", anti=[term({"app": "a"}, HOST)])],
            True,
            id="and those whose affinity means it",
        ),
        pytest.param(
            pod(), [pod("first", nominated="n003")], True, id="a promised node is tried twice"
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
        found = in_lockstep(incoming, columns, profile.predicates, columns.order)
        assert (found is not None) is expected


def test_the_slow_rule_tries_one_row_after_the_other() -> None:
    stranger = pod("stranger", node="nobody-knows")
    columns = simulation(*nodes(10), stranger, profile=CLASSIC).cache.columns

    assert in_lockstep(columns.incoming(pod()), columns, CLASSIC.predicates, columns.order) is None


def test_few_rows_are_tried_one_by_one() -> None:
    columns = current(*nodes(7)).cache.columns

    assert in_lockstep(columns.incoming(pod()), columns, DEFAULT.predicates, columns.order) is None


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

    with patch.object(lockstep, "WORTH_IT", worth_it):
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

    with patch.object(lockstep, "WORTH_IT", worth_it):
        candidates, _ = DefaultPreemption(0, 2)._candidates(scene)

    assert list(candidates) == [each.name for each in made[:14]]
    assert [candidates[name].violations for name in candidates] == [1] * 13 + [0]
