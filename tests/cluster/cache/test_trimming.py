"""Trimming changes no decision, and bounds what is remembered.

The random histories of the tests that compare remembered answers with fresh ones are lived through
once more: one of the two simulations is trimmed after every event, the other never.
"""

from __future__ import annotations

from collections.abc import Sized

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node, pod, simulation, term
from engine.fast.test_equals_plain_v1_13 import GROUND as CLASSIC
from engine.fast.test_equals_plain_v1_36 import GROUND as CURRENT
from engine.fast.twins import History, histories
from podium.cluster.cache.columns import Trimmer
from podium.cluster.simulation import Simulation

FEW = 64


def live(history: History, *, remembers: bool) -> None:
    """Live through a history; the simulation that *remembers* answers, or the other, is trimmed."""
    twins = history.twins()
    trimmed: Simulation = twins.both[0 if remembers else 1]
    for name, *arguments in [*history.start, *history.events]:
        getattr(twins, name)(*arguments)
        trimmed.cache.columns.trim()
    for kind in history.pods:
        twins.ask(kind)


@settings(max_examples=60)
@given(history=histories(CLASSIC), remembers=st.booleans())
def test_trimming_changes_no_decision_of_predicates(history: History, remembers: bool) -> None:
    live(history, remembers=remembers)


@settings(max_examples=60)
@given(history=histories(CURRENT), remembers=st.booleans())
def test_trimming_changes_no_decision_of_plugins(history: History, remembers: bool) -> None:
    live(history, remembers=remembers)


@pytest.mark.soak
@settings(max_examples=5000)
@given(history=histories(CURRENT, longest=80), remembers=st.booleans())
def test_trimming_changes_no_decision_in_long_histories(history: History, remembers: bool) -> None:
    live(history, remembers=remembers)


def test_pods_that_are_all_different_come_and_go_within_bounds() -> None:
    world = simulation(node("n1"), node("n2"))
    columns, trimmer = world.cache.columns, Trimmer(min_classes=FEW)

    sizes = []
    for number in range(5 * FEW):
        labels = {"number": str(number)}
        made = pod(f"p{number}", labels=labels, anti=[term(labels, "kubernetes.io/hostname")])
        world.place(made, world.attempt(made))
        world.remove(made.uid)
        trimmer.tidy(columns)
        kept: list[Sized] = [
            columns.pods.classes,
            columns.pods.classes_by_id,
            columns.pods.label_sets,
        ]
        kept += [columns.pods.carried, columns.pods.tallies]
        sizes.append(max(map(len, kept)))

    assert max(sizes) <= FEW + 2
    assert columns.pods.class_total == 5 * FEW


def test_nodes_that_come_and_go_leave_no_words_behind() -> None:
    world = simulation(node("n1", labels={"host": "n1"}))
    columns = world.cache.columns
    columns.nodes.label_column("host")
    for number in range(50):
        other = node(f"m{number}", labels={"host": f"m{number}"})
        world.cache.put_node(other)
        world.cache.drop_node(other)
    assert len(columns.nodes.label_column("host").values) > 50

    columns.trim()

    assert columns.nodes.label_column("host").values == [None, "n1"]


def test_what_pods_on_nodes_need_stays() -> None:
    world = simulation(node("n1"))
    stays = pod("stays", labels={"app": "a"}, anti=[term({"app": "a"}, "host")], node="n1")
    world.cache.add_pod(stays)
    columns = world.cache.columns
    resident = columns.pods.by_uid.get(stays.uid)
    assert resident is not None

    columns.trim()

    assert columns.pods.classes_by_id == {resident.cls.id: resident.cls}
    assert list(columns.pods.label_sets.values()) == [resident.cls.labels]
    assert [carried.tally.carriers for carried in columns.pods.carried] == [1]
    again = columns.pods.class_of(stays)
    assert again is resident.cls
