"""Every edge of the cache's state machine: assumed, confirmed, forgotten, and errors."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from builders import ZONE, claim, node, pod, volume
from podium.cluster.cache.cache import Cache, CacheError
from podium.engine.state.accounting import ContainerSums
from podium.engine.state.reservation import VolumePlan
from podium.objects.kinds.pod import Pod
from view_snapshot import snapshot

P = pod("p", uid="u", labels={"version": "assumed"}, requests={"cpu": 1})


def on(where: str, labels: str = "confirmed") -> Pod:
    """The pod as the API server tells of it."""
    spec = msgspec.structs.replace(P.spec, node_name=where)
    metadata = msgspec.structs.replace(P.metadata, labels={"version": labels})
    return msgspec.structs.replace(P, spec=spec, metadata=metadata)


def cache(*names: str) -> Cache:
    made = Cache(ContainerSums())
    for name in names or ("n", "m"):
        made.put_node(node(name, cpu=4))
    return made


def where(believed: Cache, uid: str = "u") -> str:
    """The node on which the pod is believed to be; empty if nowhere."""
    resident = believed.columns.pods.by_uid.get(uid)
    return "" if resident is None else believed.columns.nodes.names[resident.row]


def version(believed: Cache) -> str:
    resident = believed.columns.pods.by_uid.get("u")
    assert resident is not None
    return resident.labels.labels["version"]


def used(believed: Cache, name: str) -> int:
    return int(believed.columns.pods.requested[0][believed.columns.nodes.row_of[name]])


# States to start from -----------------------------------------------------------------------------


def unknown() -> Cache:
    return cache()


def assumed() -> Cache:
    made = cache()
    made.assume(P, "n")
    return made


def confirmed() -> Cache:
    made = cache()
    made.add_pod(on("n"))
    return made


STATES = {
    "unknown": unknown,
    "assumed": assumed,
    "confirmed": confirmed,
}

Act = Callable[[Cache], object]
ASSUME: Act = lambda c: c.assume(P, "m")  # noqa: E731  a table of verbs
FORGET: Act = lambda c: c.forget(P)  # noqa: E731
ADD: Act = lambda c: c.add_pod(on("n"))  # noqa: E731
ADD_ELSEWHERE: Act = lambda c: c.add_pod(on("m"))  # noqa: E731
UPDATE: Act = lambda c: c.update_pod(on("n"), on("n", "updated"))  # noqa: E731
REMOVE: Act = lambda c: c.remove_pod(on("n"))  # noqa: E731

IN_CACHE = "pod u is in the cache, so can't be assumed"
NOT_ASSUMED = "pod u wasn't assumed so cannot be forgotten"
NOT_ADDED = "pod u is not added to scheduler cache, so cannot be updated"
NOT_FOUND = "pod u is not found in scheduler cache, so cannot be removed from it"
TWICE = "pod u was already in added state"


@pytest.mark.parametrize(
    ("state", "act", "expected"),
    [
        # The pod is then: on which node, whether assumed; or what is wrong.
        pytest.param("unknown", ASSUME, ("m", True), id="assuming an unknown pod"),
        pytest.param("unknown", FORGET, NOT_ASSUMED, id="forgetting an unknown pod"),
        pytest.param("unknown", ADD, ("n", False), id="a pod that somebody else placed"),
        pytest.param("unknown", UPDATE, NOT_ADDED, id="updating an unknown pod"),
        pytest.param("unknown", REMOVE, NOT_FOUND, id="removing an unknown pod"),
        pytest.param("assumed", ASSUME, IN_CACHE, id="assuming twice"),
        pytest.param("assumed", FORGET, ("", False), id="forgetting"),
        pytest.param("assumed", ADD, ("n", False), id="confirming"),
        pytest.param("assumed", ADD_ELSEWHERE, ("m", False), id="confirmed on another node"),
        pytest.param("assumed", UPDATE, NOT_ADDED, id="updating while assumed"),
        pytest.param("assumed", REMOVE, ("", False), id="deleted while assumed"),
        pytest.param("confirmed", ASSUME, IN_CACHE, id="assuming a placed pod"),
        pytest.param("confirmed", FORGET, NOT_ASSUMED, id="forgetting a placed pod"),
        pytest.param("confirmed", ADD, TWICE, id="adding twice"),
        pytest.param("confirmed", ADD_ELSEWHERE, TWICE, id="adding twice, elsewhere"),
        pytest.param("confirmed", UPDATE, ("n", False), id="updating"),
        pytest.param("confirmed", REMOVE, ("", False), id="removing"),
    ],
)
def test_every_edge(state: str, act: Act, expected: tuple[str, bool] | str) -> None:
    believed = STATES[state]()
    before = (where(believed), believed.is_assumed("u"))

    if isinstance(expected, str):
        with pytest.raises(CacheError) as caught:
            act(believed)
        assert str(caught.value) == expected
        expected = before
    else:
        act(believed)

    assert (where(believed), believed.is_assumed("u")) == expected
    assert (used(believed, "n"), used(believed, "m")) == (
        1000 * (expected[0] == "n"),
        1000 * (expected[0] == "m"),
    )


# Which copy is believed ---------------------------------------------------------------------------


def test_confirmed_on_the_same_node_the_assumed_copy_stays_until_an_update() -> None:
    believed = assumed()

    believed.add_pod(on("n"))
    assert version(believed) == "assumed"

    believed.update_pod(on("n"), on("n", "updated"))
    assert version(believed) == "updated"


def test_confirmed_on_another_node_the_new_copy_counts() -> None:
    believed = assumed()

    believed.add_pod(on("m"))

    assert version(believed) == "confirmed"


def test_an_updated_pod_goes_to_the_end_of_its_node() -> None:
    believed = confirmed()
    believed.add_pod(pod("q", uid="q", node="n"))
    believed.add_pod(pod("r", uid="r", node="n"))

    believed.update_pod(on("n"), on("n", "updated"))

    row = believed.columns.nodes.row_of["n"]
    assert [r.uid for r in believed.columns.pods.residents[row]] == ["r", "q", "u"]


def test_an_update_may_only_mark_the_end() -> None:
    believed = confirmed()
    leaving = msgspec.structs.replace(
        on("n"),
        metadata=msgspec.structs.replace(
            on("n").metadata, deletion_timestamp="2020-01-01T00:00:00Z"
        ),
    )

    believed.update_pod(on("n"), leaving)

    resident = believed.columns.pods.by_uid.get("u")
    assert resident is not None
    assert resident.terminating


# Time ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "again"),
    [
        pytest.param(FORGET, ASSUME, id="forgotten, then assumed elsewhere"),
        pytest.param(REMOVE, ADD, id="deleted, then a pod of the same uid"),
    ],
)
def test_what_is_gone_can_come_back(act: Act, again: Act) -> None:
    believed = assumed()

    act(believed)
    assert where(believed) == ""

    again(believed)
    assert where(believed) != ""


def test_a_pod_is_forgotten_only_from_its_own_node() -> None:
    believed = assumed()

    with pytest.raises(CacheError) as caught:
        believed.forget(on("m"))
    assert str(caught.value) == "pod u was assumed on n but assigned to m"
    assert where(believed) == "n"

    believed.forget(on("n"))
    assert where(believed) == ""


# Nodes that come and go ---------------------------------------------------------------------------


def test_a_pod_may_be_known_before_its_node() -> None:
    believed = Cache(ContainerSums())

    believed.add_pod(on("n"))
    assert where(believed) == "n"
    assert len(believed.columns.nodes.order) == 0
    assert {believed.columns.nodes.names[row] for row in believed.columns.pods.unknown_nodes} == {
        "n"
    }

    believed.put_node(node("n", cpu=4))
    assert where(believed) == "n"
    assert believed.columns.pods.unknown_nodes == set()
    assert used(believed, "n") == 1000


@pytest.mark.parametrize("state", ["assumed", "confirmed"])
def test_a_node_may_leave_before_its_pods(state: str) -> None:
    believed = STATES[state]()

    believed.drop_node(node("n"))
    assert where(believed) == "n"
    assert [believed.columns.nodes.names[row] for row in believed.columns.nodes.order] == ["m"]
    assert {believed.columns.nodes.names[row] for row in believed.columns.pods.unknown_nodes} == {
        "n"
    }
    assert believed.order().tolist() == believed.columns.nodes.order.tolist()

    believed.put_node(node("n", cpu=8))
    assert believed.columns.pods.unknown_nodes == set()
    assert used(believed, "n") == 1000
    assert [believed.columns.nodes.names[row] for row in believed.columns.nodes.order] == ["m", "n"]


@pytest.mark.parametrize(
    ("state", "act"),
    [
        pytest.param("assumed", FORGET, id="forgotten"),
        pytest.param("confirmed", REMOVE, id="removed"),
        pytest.param("assumed", ADD_ELSEWHERE, id="moved"),
    ],
)
def test_the_last_pod_of_a_node_that_left_takes_it_along(state: str, act: Act) -> None:
    believed = STATES[state]()
    believed.drop_node(node("n"))

    act(believed)

    assert "n" not in believed.columns.nodes.row_of
    assert believed.columns.pods.unknown_nodes == set()


def test_a_row_is_used_again_and_holds_nothing_of_the_past() -> None:
    believed = Cache(ContainerSums())
    believed.put_node(node("old", labels={"disk": "ssd"}, images={"i": 5}, unschedulable=True))
    row = believed.columns.nodes.row_of["old"]
    believed.columns.nodes.label_column("disk")
    believed.drop_node(node("old"))

    believed.put_node(node("new"))

    columns = believed.columns
    assert columns.nodes.row_of == {"new": row}
    assert columns.nodes.label_column("disk").ids[row] == 0
    assert columns.nodes.images == {}
    assert not columns.nodes.facts.unschedulable.values[columns.nodes.facts.unschedulable.ids[row]]


def test_leaving_twice_is_nothing() -> None:
    believed = cache("n")

    believed.drop_node(node("n"))
    believed.drop_node(node("n"))
    believed.drop_node(node("never"))

    assert len(believed.order()) == 0


def test_a_node_that_changed_its_zone_moves_to_the_end_of_the_new_one() -> None:
    believed = Cache(ContainerSums())
    for name, zone in (("a1", "a"), ("b1", "b"), ("a2", "a"), ("b2", "b")):
        believed.put_node(node(name, labels={ZONE: zone}))

    def order() -> list[str]:
        return [believed.columns.nodes.names[row] for row in believed.order()]

    assert order() == ["a1", "b1", "a2", "b2"]
    believed.put_node(node("a1", labels={ZONE: "b"}))
    assert order() == ["a2", "b1", "b2", "a1"]
    believed.put_node(node("a2", labels={ZONE: "a", "other": "label"}))
    assert order() == ["a2", "b1", "b2", "a1"]


def test_the_listed_order_is_the_order_of_arrival() -> None:
    believed = Cache(ContainerSums(), listed_order=True)
    for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b")):
        believed.put_node(node(name, labels={ZONE: zone}))
    believed.advance(2)

    assert [believed.columns.nodes.names[row] for row in believed.order()] == ["a1", "a2", "b1"]


# Volumes ------------------------------------------------------------------------------------------

PLAN = VolumePlan(bind={"data": "pv"}, provision=("logs",))
RESERVED = {"VolumeBinding": PLAN}


def promising() -> Cache:
    made = cache()
    made.columns.catalog.claims.put(claim("data", storage_class="wait"))
    made.columns.catalog.claims.put(claim("logs", storage_class="wait"))
    made.columns.catalog.volumes.put(volume("pv", storage_class="wait"))
    made.assume(P, "n", RESERVED)
    return made


def promises(believed: Cache) -> tuple[dict[str, str], dict[str, str]]:
    catalog = believed.columns.catalog
    volumes = {name: found.name for name, found in catalog.promised_volumes.items()}
    return volumes, dict(catalog.provisioning)


KEPT = ({"pv": "data"}, {"default/logs": "n"})


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        pytest.param(lambda _: None, KEPT, id="promised with the assumption"),
        pytest.param(FORGET, ({}, {}), id="taken back when the pod is forgotten"),
        pytest.param(ADD, KEPT, id="kept when it is confirmed"),
    ],
)
def test_promises_of_volumes(act: Act, expected: object) -> None:
    believed = promising()

    act(believed)

    assert promises(believed) == expected


def test_a_plan_for_an_unknown_claim_promises_no_volume() -> None:
    believed = cache()

    believed.assume(P, "n", {"VolumeBinding": VolumePlan(bind={"gone": "pv"}, provision=())})

    assert promises(believed) == ({}, {})


def test_two_pods_of_one_claim_share_its_promise() -> None:
    # Forgetting the second must not take from the first what it was promised.
    believed = promising()
    believed.assume(pod("q", uid="q"), "n", RESERVED)

    believed.forget(pod("q", uid="q"))

    assert promises(believed) == KEPT


def test_pods_added_together_count_as_if_they_came_one_by_one() -> None:
    pods = [
        pod(
            f"p{number}",
            uid=f"u{number}",
            node=("n", "m", "unknown")[number % 3],
            labels={"app": str(number % 2)},
            requests={"cpu": number, "memory": 2**62 + number, "gpu": number % 4},
            ports=[8000 + number] if number % 5 == 0 else (),
            terminating=number % 7 == 0,
        )
        for number in range(12)
    ]
    together, one_by_one = cache(), cache()
    tallies = []
    for believed in (together, one_by_one):
        believed.add_pod(pods[0])
        counted = believed.columns.pods
        tallies.append(counted.tally("app 1", lambda each: each.labels["app"] == "1"))
    assert together.add_pods([*pods, pods[1]]) == [pods[0], pods[1]]
    for each in pods[1:]:
        one_by_one.add_pod(each)
    assert snapshot(together.columns) == snapshot(one_by_one.columns)
    assert tallies[0].rows.tolist() == tallies[1].rows.tolist()
    assert tallies[0].carriers == tallies[1].carriers > 0
    first, second = together.columns.pods, one_by_one.columns.pods
    assert first.presence.changes == second.presence.changes
    assert {key: each.rows for key, each in first.label_sets.items()} == {
        key: each.rows for key, each in second.label_sets.items()
    }
