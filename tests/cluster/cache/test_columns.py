"""Columns by example: what a row holds, what stays when nodes and pods go, and what is shared."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import container, node, nodes, pod, term, view
from podium.cluster.cache.columns import Columns
from podium.engine.state.accounting import ContainerSums
from podium.engine.state.journal import ChangeLog
from podium.objects.kinds.pod import Pod

X = {"app": "x"}


def row(columns: Columns, name: str) -> int:
    return columns.nodes.row_of[name]


# Rows ---------------------------------------------------------------------------------------------


def test_rows_are_used_again() -> None:
    columns = view(node("a"), node("b"), node("c"))
    columns.drop_node("b")

    columns.put_node(node("d"))

    assert columns.nodes.row_of == {"a": 0, "d": 1, "c": 2}
    assert [columns.nodes.names[r] for r in columns.nodes.order] == ["a", "c", "d"]


def test_columns_grow_and_lose_nothing() -> None:
    columns = Columns(ContainerSums(), capacity=2)
    tally = columns.pods.tally("all", lambda _: True)
    columns.nodes.label_column("zone")
    for number in range(9):
        columns.put_node(node(f"n{number}", cpu=number, labels={"zone": f"z{number % 2}"}))
        columns.add_pod(pod(f"p{number}", node=f"n{number}", requests={"cpu": number}))

    assert columns.nodes.capacity == 16
    assert columns.nodes.allocatable[0][:9].tolist() == [1000 * n for n in range(9)]
    assert columns.pods.requested[0][:9].tolist() == [1000 * n for n in range(9)]
    assert tally.rows[:9].tolist() == [1] * 9
    assert sorted(tally.by_domain("zone")[:3].tolist()) == [0, 4, 5]


def test_a_node_that_changes_keeps_its_place_and_its_pods() -> None:
    columns = view(node("a"), node("b"), pod("x", node="a"))

    columns.put_node(node("a", cpu=1, labels={"new": "label"}))

    assert [columns.nodes.names[r] for r in columns.nodes.order] == ["a", "b"]
    assert columns.nodes.allocatable[0][row(columns, "a")] == 1000
    assert len(columns.pods.residents[row(columns, "a")]) == 1


def test_a_resource_no_longer_offered_is_gone() -> None:
    columns = view(node("a", resources={"example.com/gpu": 4}))

    columns.put_node(node("a"))

    assert columns.nodes.allocatable[columns.pods.resource("example.com/gpu")][0] == 0


def test_dropping_an_unknown_node_is_nothing() -> None:
    columns = view(pod("x", node="ghost"))

    columns.drop_node("ghost")
    columns.drop_node("never")

    assert {columns.nodes.names[r] for r in columns.pods.unknown_nodes} == {"ghost"}


# Order of pods ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("leaving", "left"),
    [
        pytest.param(["a"], "dbc", id="the last takes the place of the first"),
        pytest.param(["b"], "adc", id="or of any other"),
        pytest.param(["d"], "abc", id="the last just leaves"),
        pytest.param(["a", "b"], "dc", id="one after the other"),
        pytest.param(["a", "d"], "cb", id="even of one that has moved"),
        pytest.param(["a", "b", "c", "d"], "", id="until nobody is left"),
    ],
)
def test_who_takes_the_place_of_a_pod_that_leaves(leaving: list[str], left: str) -> None:
    columns = view(node("n"), *(pod(name, node="n") for name in "abcd"))

    for name in leaving:
        columns.remove_pod(f"default/{name}")

    assert "".join(r.key[-1] for r in columns.pods.residents[0]) == left


def test_a_marked_pod_goes_last_and_the_last_one_takes_its_place() -> None:
    columns = view(node("n"), *(pod(name, node="n") for name in "abc"))

    columns.mark_terminating("default/a")
    columns.mark_terminating("default/a")

    assert [(r.key[-1], r.terminating) for r in columns.pods.residents[0]] == [
        ("c", False),
        ("b", False),
        ("a", True),
    ]
    assert columns.pods.total == 3


# Classes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "same"),
    [
        pytest.param(pod("other", uid="o"), True, id="names and uids differ"),
        pytest.param(pod("p", node="n"), True, id="a placed pod and a waiting one"),
        pytest.param(pod("p", nominated="n"), True, id="a promise"),
        pytest.param(pod("p", terminating=True), True, id="an end that is near"),
        pytest.param(pod("p", labels=X), False, id="labels"),
        pytest.param(pod("p", namespace="other"), False, id="the namespace"),
        pytest.param(pod("p", priority=1), False, id="the priority"),
        pytest.param(pod("p", requests={"cpu": 1}), False, id="requests"),
        pytest.param(pod("p", owner=("ReplicaSet", "r")), False, id="the controller"),
        pytest.param(pod("p", anti=[term(X)]), False, id="affinity"),
        pytest.param(pod("p", ports=[80]), False, id="ports"),
        pytest.param(pod("p", image="i"), False, id="images"),
        pytest.param(pod("p", init=[container()]), False, id="init containers"),
        pytest.param(pod("p", preemption_policy="Never"), False, id="the preemption policy"),
        pytest.param(pod("p", node_selector={}), False, id="empty is not the same as absent"),
    ],
)
def test_which_pods_are_alike(other: Pod, same: bool) -> None:
    columns = view()

    assert (columns.pods.class_of(pod("p")) is columns.pods.class_of(other)) == same


def test_a_pod_that_insists_on_a_node_is_of_another_class() -> None:
    columns = view(node("n"))

    assert columns.pods.incoming(pod(node="n")).cls is not columns.pods.incoming(pod()).cls
    assert columns.pods.incoming(pod()).cls is columns.pods.resident(pod(node="n"), 0).cls


# Journal ------------------------------------------------------------------------------------------


def test_the_journal_tells_pods_from_nodes() -> None:
    columns = view(node("a"), node("b"))
    start = len(columns.journal.rows.entries)

    columns.add_pod(pod("x", node="b"))
    columns.put_node(node("a", labels=X))
    columns.mark_terminating("default/x")
    columns.remove_pod("default/x")

    news = columns.journal.rows.entries[start:]
    assert [entry if entry >= 0 else ~entry for entry in news] == [1, 0, 1, 1]
    assert [entry < 0 for entry in news] == [False, True, False, False]


def test_the_journal_is_bounded_and_counts_what_it_dropped() -> None:
    columns = Columns(ContainerSums(), journal_limit=6)
    columns.put_node(node("a"))
    told = columns.journal.rows.end

    for _ in range(20):
        columns.add_pod(pod("x", node="a"))
        columns.remove_pod("default/x")
        told += 2
        assert len(columns.journal.rows.entries) <= 6

    assert columns.journal.rows.start > 0
    assert columns.journal.rows.end == told
    assert list(columns.journal.rows.since(told - 2) or ()) == [0, 0]
    assert columns.journal.rows.since(told) == array("q")
    assert columns.journal.rows.since(columns.journal.rows.start - 1) is None


@given(
    st.integers(0, 9),
    st.lists(st.lists(st.integers(0, 99), max_size=30), max_size=6),
)
def test_entries_added_together_leave_a_log_as_if_they_came_one_by_one(
    limit: int, parts: list[list[int]]
) -> None:
    together, one_by_one = (ChangeLog[int](limit) for _ in range(2))
    for part in parts:
        together.extend(part)
        for entry in part:
            one_by_one.add(entry)
        assert (together.start, together.entries) == (one_by_one.start, one_by_one.entries)


def test_nodes_that_come_or_go_start_a_new_epoch() -> None:
    columns = view(*nodes(2))
    epochs = [columns.journal.epoch]

    for change in (
        lambda: columns.put_node(node("new")),
        lambda: columns.drop_node("new"),
        lambda: columns.add_pod(pod("x", node="ghost")),
        lambda: columns.remove_pod("default/x"),
    ):
        change()
        epochs.append(columns.journal.epoch)

    assert epochs == sorted(set(epochs))


# Domains ------------------------------------------------------------------------------------------


def test_a_value_that_is_new_after_the_sums_were_asked_for() -> None:
    columns = view(node("a", labels={"zone": "1"}), pod("x", node="a", labels=X))
    tally = columns.pods.tally("x", lambda labels: labels.labels == X)
    assert tally.total("zone") == 1

    columns.put_node(node("b", labels={"zone": "2"}))
    columns.add_pod(pod("y", node="b", labels=X))

    column = columns.nodes.label_column("zone")
    sums = tally.by_domain("zone")
    assert {column.values[i]: int(sums[i]) for i in range(len(column.values))} == {
        None: 0,
        "1": 1,
        "2": 1,
    }


@pytest.mark.parametrize(
    ("labels", "sums", "total"),
    [
        pytest.param({"zone": "2"}, {"1": 0, "2": 3}, 3, id="to another domain"),
        pytest.param({"zone": "new"}, {"1": 0, "2": 1, "new": 2}, 3, id="to one of its own"),
        pytest.param({}, {"1": 0, "2": 1}, 1, id="out of all domains"),
        pytest.param({"zone": "1", "x": "y"}, {"1": 2, "2": 1}, 3, id="nowhere"),
    ],
)
def test_pods_move_with_the_labels_of_their_node(
    labels: dict[str, str], sums: dict[str, int], total: int
) -> None:
    columns = view(
        node("a", labels={"zone": "1"}),
        node("b", labels={"zone": "2"}),
        pod("x", node="a", labels=X, anti=[term(X)]),
        pod("y", node="a", labels=X, anti=[term(X)]),
        pod("z", node="b", labels=X, anti=[term(X)]),
    )
    tally = columns.pods.tally("x", lambda found: found.labels == X)
    [carried] = columns.pods.carried
    for each in (tally, carried.tally):
        each.by_domain("zone")

    columns.put_node(node("a", labels=labels))

    column = columns.nodes.label_column("zone")
    for each in (tally, carried.tally):
        found = each.by_domain("zone")
        assert {value: int(found[column.index[value]]) for value in sums} == sums
        assert each.total("zone") == total


def test_pods_of_a_node_that_left_are_in_no_domain() -> None:
    columns = view(node("a", labels={"zone": "1"}), pod("x", node="a", labels=X))
    tally = columns.pods.tally("x", lambda found: found.labels == X)
    tally.by_domain("zone")

    columns.drop_node("a")
    assert (tally.total("zone"), tally.carriers) == (0, 1)

    columns.put_node(node("a", labels={"zone": "1"}))
    assert (tally.total("zone"), tally.carriers) == (1, 1)


def test_leaving_pods_are_counted_apart() -> None:
    columns = view(node("a"), pod("x", node="a", labels=X))
    living = columns.pods.tally("living", lambda found: not found.terminating)
    leaving = columns.pods.tally("leaving", lambda found: found.terminating)

    columns.mark_terminating("default/x")
    assert (living.carriers, leaving.carriers) == (0, 1)

    columns.remove_pod("default/x")
    assert (living.carriers, leaving.carriers) == (0, 0)
