"""The search for victims, in batches and row by row, finds what a plain search finds.

For both generations, in clusters with every kind of rule that reads the pods on a node: the same
candidates, victims, budget violations and reasons, and the search ends at the same row. The second
run of the filters on nodes with nominated pods is the same in batches and row by row as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
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
from plain_victims import plain_v1_13, plain_v1_36
from podium.cluster.cache.columns import Columns
from podium.engine.framework.plan import plan_of
from podium.engine.framework.post_filter import FailedSearch
from podium.engine.framework.profile import Profile
from podium.engine.framework.rule import Activity
from podium.engine.framework.tuning import Tuning
from podium.engine.preemption import plugin, pod_priority, victim_order
from podium.engine.preemption.batch_filter import batch_rows
from podium.engine.preemption.criteria import choose
from podium.engine.preemption.plugin import DefaultPreemption
from podium.engine.preemption.victim_search import find_candidates
from podium.engine.rows.pod_arrays import PodArrays
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
#: Further fields of pods on nodes and of pods nominated to them.
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
#: Further fields of the incoming pod.
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
#: One row is a batch; and so many rows that there are no batches.
BATCHES, NO_BATCHES = 1, 10_000
STARTS = (None, "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", "2026-01-01T00:01:00.5Z")


Case = tuple[tuple[Object, ...], Pod]


@st.composite
def full_clusters(draw: st.DrawFn, *, rules: bool = True) -> Case:
    """Nodes full of pods of many priorities, budgets, nominations, and a pod that wants room."""
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
                f"nominated{i}",
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


def failed_search(
    columns: Columns, wanted: Pod, profile: Profile, min_batch_rows: int
) -> FailedSearch:
    """A search that found no node, where evicting pods may help on every row."""
    incoming = columns.pods.incoming(wanted)
    skipped = {
        rule.name
        for rule in profile.pre_filters
        if rule.activity(incoming, columns) is Activity.SKIPPED
    }
    return FailedSearch(
        incoming,
        columns,
        [each for each in plan_of(incoming.cls, profile).filters if each.rule.name not in skipped],
        columns.nodes.order,
        min_batch_rows=min_batch_rows,
    )


@pytest.mark.parametrize("min_batch_rows", [BATCHES, NO_BATCHES], ids=["batches", "row by row"])
@given(case=full_clusters())
@settings(max_examples=150)
def test_candidates_of_v1_13(min_batch_rows: int, case: Case) -> None:
    items, wanted = case
    columns = simulation(*items, profile=CLASSIC, listed_order=True).cache.columns
    failed = failed_search(columns, wanted, CLASSIC, min_batch_rows)
    plain = plain_v1_13(failed)

    found = find_candidates(failed, pod_priority.POLICY)

    assert dict(found) == plain
    assert list(found) == list(plain)
    assert choose(found, pod_priority.CRITERIA) == choose(plain, pod_priority.CRITERIA)


@pytest.mark.parametrize("min_batch_rows", [BATCHES, NO_BATCHES], ids=["batches", "row by row"])
@given(
    case=full_clusters(),
    percentage=st.sampled_from([0, 10, 50, 100]),
    absolute=st.sampled_from([0, 1, 2, 3, 100]),
)
@settings(max_examples=200)
def test_candidates_of_v1_36(
    min_batch_rows: int, case: Case, percentage: int, absolute: int
) -> None:
    items, wanted = case
    columns = current(*items).cache.columns
    failed = failed_search(columns, wanted, DEFAULT, min_batch_rows)
    plain = plain_v1_36(failed, percentage, absolute)

    found = DefaultPreemption(percentage, absolute).candidates(failed)

    assert dict(found) == plain.candidates
    assert list(found) == list(plain.candidates)
    assert choose(found, plugin.CRITERIA) == choose(plain.candidates, plugin.CRITERIA)
    if not found:
        # With candidates nothing is reported about the other nodes.
        assert plugin.reasons_of(found, columns.verdicts) == plain.reasons
        assert list(plugin.errors_of(found, columns)) == plain.errors


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
    arrays = PodArrays.on(columns, columns.nodes.order)

    order = victim_order.by_importance(arrays)

    told = [arrays.pods[i].key for i in order.tolist()]
    residents = [
        victim_order.sorted_by_importance(columns.pods.residents[row])
        for row in columns.nodes.order.tolist()
    ]
    assert told == [each.key for row in residents for each in row]


@given(case=full_clusters(rules=False))
@settings(max_examples=50)
def test_where_only_room_counts_all_rows_are_tried_in_a_batch(case: Case) -> None:
    items, wanted = case
    for profile, columns in (
        (CLASSIC, simulation(*items, profile=CLASSIC, listed_order=True).cache.columns),
        (DEFAULT, current(*items).cache.columns),
    ):
        failed = failed_search(columns, wanted, profile, BATCHES)
        found = batch_rows(failed.pod, columns, failed.rules, columns.nodes.order, min_batch_rows=1)
        assert found.all()


@pytest.mark.parametrize("profile", [CLASSIC, CHECK_ALL, DEFAULT], ids=["v1.13", "all", "v1.36"])
@given(case=full_clusters())
@settings(max_examples=120)
def test_whole_decisions_are_the_same(profile: Profile, case: Case) -> None:
    items, wanted = case
    told = []
    for min_batch_rows in (BATCHES, NO_BATCHES):
        rules = replace(profile, tuning=Tuning(min_batch_rows=min_batch_rows))
        made = simulation(*items, profile=rules, listed_order=True)
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


def rows_in_batch(columns: Columns, wanted: Pod, profile: Profile) -> int:
    incoming = columns.pods.incoming(wanted)
    found = batch_rows(
        incoming,
        columns,
        plan_of(incoming.cls, profile).filters,
        columns.nodes.order,
        min_batch_rows=profile.tuning.min_batch_rows,
    )
    return int(found.sum())


@pytest.mark.parametrize(
    ("wanted", "others"),
    [
        pytest.param(pod(), [], id="room is all that counts"),
        pytest.param(pod(ports=[80]), [], id="ports are counted"),
        pytest.param(pod(anti=[term({"app": "a"}, HOST)]), [], id="so are pods its affinity means"),
        pytest.param(
            pod(labels={"app": "a"}),
            [pod("shy", node="n000", anti=[term({"app": "a"}, HOST)])],
            id="and those whose affinity means it",
        ),
        pytest.param(pod(), [pod("first", nominated="n003")], id="a nominated node is tried twice"),
    ],
)
def test_rows_are_tried_in_a_batch(wanted: Pod, others: list[Pod]) -> None:
    made = [each for i in range(10) for each in nodes(10, labels={HOST: f"h{i}"})[i : i + 1]]
    for profile, columns in (
        (CLASSIC, simulation(*made, *others, profile=CLASSIC).cache.columns),
        (DEFAULT, current(*made, *others).cache.columns),
    ):
        assert rows_in_batch(columns, wanted, profile) == 10


def test_a_pod_on_an_unknown_node_keeps_v1_13_from_batches() -> None:
    stranger = pod("stranger", node="unknown")
    columns = simulation(*nodes(10), stranger, profile=CLASSIC).cache.columns

    assert rows_in_batch(columns, pod(), CLASSIC) == 0


def test_few_rows_are_tried_one_by_one() -> None:
    assert rows_in_batch(current(*nodes(7)).cache.columns, pod(), DEFAULT) == 0
    assert rows_in_batch(current(*nodes(8)).cache.columns, pod(), DEFAULT) == 8


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
@pytest.mark.parametrize("min_batch_rows", [8, NO_BATCHES], ids=["batches", "row by row"])
def test_the_search_stops_at_enough_candidates(
    min_batch_rows: int, percentage: int, absolute: int, expected: int
) -> None:
    made = nodes(120, cpu="1")
    placed = [pod(f"p{n.name}", node=n.name, requests={"cpu": "1"}) for n in made]
    columns = current(*made, *placed).cache.columns
    wanted = pod("wanted", requests={"cpu": "1"}, priority=5)
    failed = failed_search(columns, wanted, DEFAULT, min_batch_rows)

    candidates = DefaultPreemption(percentage, absolute).candidates(failed)

    assert len(candidates) == expected
    assert list(candidates) == [each.name for each in made[:expected]]


@pytest.mark.parametrize("min_batch_rows", [8, NO_BATCHES], ids=["batches", "row by row"])
def test_the_search_goes_on_while_every_candidate_violates_a_budget(min_batch_rows: int) -> None:
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
    wanted = pod("wanted", requests={"cpu": "1"}, priority=5)
    failed = failed_search(columns, wanted, DEFAULT, min_batch_rows)

    candidates = DefaultPreemption(0, 2).candidates(failed)

    assert list(candidates) == [each.name for each in made[:14]]
    assert [candidates[name].violations for name in candidates] == [1] * 13 + [0]


@pytest.mark.parametrize(
    ("min_batch_rows", "portions"),
    [
        pytest.param(8, [10, 74], id="batches"),
        pytest.param(NO_BATCHES, [10, 5, 2, 1, 1], id="row by row"),
    ],
)
def test_rows_are_tried_in_portions(min_batch_rows: int, portions: list[int]) -> None:
    # Of 1,000 nodes every other one has a pod that can be evicted; ten candidates are wanted.
    made = nodes(1000, cpu="1")
    placed = [
        pod(f"p{n.name}", node=n.name, requests={"cpu": "1"}, priority=9 * (i % 2))
        for i, n in enumerate(made)
    ]
    columns = current(*made, *placed).cache.columns
    wanted = pod("wanted", requests={"cpu": "1"}, priority=5)
    failed = failed_search(columns, wanted, DEFAULT, min_batch_rows)

    candidates = DefaultPreemption(0, 10).candidates(failed)

    assert list(candidates) == [each.name for each in made[:20:2]]
    assert [len(each.rows) for each in candidates.tried] == portions
