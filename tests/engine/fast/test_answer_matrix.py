"""Answers that are brought up to date for many classes together equal fresh ones."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node, pod, taint
from builders_v1_36 import default_profile
from podium.cluster.cache.columns import Columns
from podium.engine.fast.answer_matrix import AnswerMatrix
from podium.engine.fast.class_answers import ClassRowRules
from podium.engine.fast.compiled_rows import RowKernels
from podium.engine.fast.row_answers import RowAnswers
from podium.engine.fast.score_table import GroupLayouts
from podium.engine.framework.tuning import Tuning

#: More batches than any test has.
NEVER = 1 << 30
#: By the kind of pod. The last one asks for more than a node has, the one before for a device.
REQUESTS: tuple[dict[str, Any], ...] = (
    {"cpu": "1", "memory": "1Gi"},
    {"cpu": "500m", "memory": "3Gi"},
    {"cpu": "2", "memory": "1Gi"},
    {"cpu": "100m"},
    {},
    {"cpu": "1", "example.com/gpu": "1"},
    {"cpu": "9", "memory": "1Gi"},
)
KINDS = st.integers(0, len(REQUESTS) - 1)
ROWS = st.integers(0, 3)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), KINDS),
        st.tuples(st.just("ask"), KINDS),
        st.tuples(st.just("place"), KINDS, ROWS),
        st.tuples(st.just("place"), KINDS, ROWS),
        st.tuples(st.just("remove"), st.integers(0, 30)),
        st.tuples(st.just("node"), ROWS, st.sampled_from(["plain", "tainted", "huge", "none"])),
        st.tuples(st.just("add node")),
        st.tuples(st.just("unknown node"), KINDS),
        st.tuples(st.just("drop"), KINDS),
    ),
    max_size=60,
)
NODES: dict[str, dict[str, Any]] = {
    "plain": {"cpu": "4", "memory": "8Gi", "pods": "6"},
    "tainted": {"cpu": "4", "memory": "8Gi", "pods": "6", "taints": [taint("x")]},
    "huge": {"cpu": "4", "memory": str(1 << 60), "pods": "6"},
    "none": {"cpu": "0", "memory": "8Gi", "pods": "6"},
}


class Asked:
    """Kinds of pods whose answers share a matrix."""

    def __init__(self, tuning: Tuning) -> None:
        self.profile = replace(default_profile(), tuning=tuning)
        self.columns = Columns(self.profile.accounting)
        self.matrix = AnswerMatrix(self.columns)
        self.layouts = GroupLayouts(self.columns)
        self.kernels = RowKernels(tuning.batches_to_compile)
        self.kept: dict[int, RowAnswers] = {}
        self.placed: list[str] = []
        self.made = 0
        for number in range(4):
            self.columns.put_node(node(f"n{number}", **NODES["plain"]))

    def ask(self, kind: int) -> None:
        wanted = self.columns.pods.incoming(pod("p", requests=REQUESTS[kind]))
        rules = ClassRowRules(wanted.cls, self.profile).rules
        make = partial(
            RowAnswers,
            wanted,
            self.columns,
            self.profile,
            rules,
            layouts=self.layouts,
            kernels=self.kernels,
        )
        if kind not in self.kept:
            self.kept[kind] = make(matrix=self.matrix)
        found, fresh = self.kept[kind], make()
        found.refresh(wanted)
        order = self.columns.nodes.order
        codes, positions = found.verdicts(order)
        expected = fresh.verdicts(order)
        assert codes.tolist() == expected[0].tolist()
        assert positions.tolist() == expected[1].tolist()
        assert found.sums(order).tolist() == fresh.sums(order).tolist()
        assert found.rejections() == fresh.rejections()
        assert found.feasible(order).tolist() == fresh.feasible(order).tolist()
        assert found.has_scores() == fresh.has_scores()
        listed = found.by_score(order)
        if listed is not None and fresh.has_scores() and len(fresh.feasible(order)):
            sums = fresh.sums(order)
            assert list(listed.best()) == np.flatnonzero(sums == sums.max()).tolist()

    def place(self, kind: int, row: int) -> None:
        name = f"p{self.made}"
        self.made += 1
        self.columns.add_pod(pod(name, requests=REQUESTS[kind]), f"n{row}")
        self.placed.append(name)

    def remove(self, number: int) -> None:
        if self.placed:
            name = self.placed.pop(number % len(self.placed))
            self.columns.remove_pod(pod(name).uid)

    def node(self, row: int, kind: str) -> None:
        self.columns.put_node(node(f"n{row}", **NODES[kind]))

    def add_node(self) -> None:
        self.made += 1
        for number in range(30):
            self.columns.put_node(node(f"more-{self.made}-{number}", **NODES["plain"]))

    def unknown_node(self, kind: int) -> None:
        self.place(kind, 99)

    def drop(self, kind: int) -> None:
        if kind in self.kept:
            self.matrix.drop(self.kept.pop(kind))


@settings(max_examples=200)
@given(
    events=EVENTS,
    few=st.sampled_from([0, 1, 2, 8]),
    rounds=st.sampled_from([0, 3]),
    batches=st.sampled_from([1, NEVER]),
)
def test_answers_brought_up_to_date_together_equal_fresh_ones(
    events: list[tuple[Any, ...]], few: int, rounds: int, batches: int
) -> None:
    """By NumPy for many classes, or by compiled code for one class after the other."""
    asked = Asked(
        Tuning(one_by_one=few, few_changes=few, steady_rounds=rounds, batches_to_compile=batches)
    )
    for name, *arguments in events:
        getattr(asked, name.replace(" ", "_"))(*arguments)
    for kind in range(len(REQUESTS)):
        asked.ask(kind)


def test_compiled_code_is_loaded_when_there_was_much_to_evaluate() -> None:
    """And answers then follow the pods without the rules being asked."""
    asked = Asked(Tuning(few_changes=1, batches_to_compile=3))
    loaded = []
    for turn in range(8):
        asked.ask(0)
        asked.place(1, turn % 4)
        asked.place(2, turn % 4)
        loaded.append(asked.kernels.loops is not None)
    assert loaded == [False] * 3 + [True] * 5
    asked.kept[0]._resources = asked.kept[0]._blocks = None  # type: ignore[assignment]
    asked.ask(0)


def test_rows_are_evaluated_for_all_classes_in_few_calls() -> None:
    """Or a decision would cost as much as all changes since the class was last asked."""
    asked = Asked(Tuning(few_changes=2, batches_to_compile=NEVER))
    rounds = []
    for turn in range(40):
        asked.ask(turn % 4)
        asked.place(turn % 4, turn % 4)
        asked.place(turn % 4, (turn + 1) % 4)
        asked.remove(0)
        rounds.append(asked.matrix.seen)
    assert all(asked.matrix.follows(asked.kept[kind]) for kind in range(3))
    assert rounds[-1] > rounds[5]
