"""Rules over a block of resource numbers answer as over rows: verdicts and scores of every row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import podium
from builders import node, pod
from builders_v1_36 import default_profile, view
from podium.cluster.cache.columns import Columns
from podium.engine.fast.answer_columns import CODE, FITTING, SHIFT
from podium.engine.fast.row_answers import block_rules
from podium.engine.framework.profile import Weighted
from podium.engine.framework.rule import Positioned
from podium.engine.pipelines.filtering import LAST, run_filters
from podium.engine.pipelines.scoring import run_row_scores
from podium.engine.rows.resource_block import LARGEST
from podium.engine.rows.rows import ManyRows, as_array
from podium.engine.rules.resources.balanced_allocation import NodeResourcesBalancedAllocation
from podium.engine.rules.resources.fit import NodeResourcesFit, NodeResourcesFitScore
from podium.releases import RELEASES

NUMBERS = st.one_of(
    st.integers(0, 12),
    st.integers(0, 1 << 40),
    st.sampled_from([LARGEST, LARGEST + 1, -1, 1 << 62, -(1 << 62)]),
)
ORDINARY = st.one_of(st.integers(1, 12), st.integers(1, LARGEST))
LINES = st.one_of(NUMBERS, ORDINARY, ORDINARY, ORDINARY)
ROWS = st.lists(st.lists(LINES, min_size=10, max_size=10), min_size=1, max_size=6)
REQUESTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "ephemeral-storage", "example.com/gpu"]),
    st.one_of(st.integers(0, 12), st.integers(0, 1 << 40), st.just(LARGEST + 1)),
)
WEIGHTS = st.sampled_from([(1, 1), (1, 3), (5, 0)])
PROFILE = default_profile()


def view_of(rows: list[list[int]]) -> Columns:
    """A cluster with these numbers of pods and nodes, a list for each node."""
    columns = view(*(node(f"n{i}") for i in range(len(rows))))
    numbers = np.array(rows, np.int64).T
    columns.pods.numbers[:, : len(rows)] = numbers[:6]
    columns.nodes.numbers[:, : len(rows)] = numbers[6:]
    columns.nodes._offered.clear()
    return columns


@settings(max_examples=400)
@given(
    rows=ROWS, requests=REQUESTS, weights=WEIGHTS, outer=st.integers(1, 3), of_change=st.booleans()
)
def test_a_block_answers_as_rows(
    rows: list[list[int]],
    requests: dict[str, int],
    weights: tuple[int, int],
    outer: int,
    of_change: bool,
) -> None:
    columns = view_of(rows)
    wanted = columns.pods.incoming(pod("p", requests=requests))
    fit = Positioned(3, NodeResourcesFit())
    weighted = [
        Weighted(NodeResourcesFitScore(resources=(("cpu", weights[0]), ("memory", weights[1]))), 1),
        Weighted(NodeResourcesBalancedAllocation(of_change=of_change), outer),
    ]
    found = block_rules(wanted, columns, [fit], weighted, PROFILE.highest_score)
    order = columns.nodes.order
    if found is None:
        assert (
            "example.com/gpu" in requests
            or "ephemeral-storage" in requests
            or not (
                requests.get("cpu") and requests.get("memory") and max(wanted.cls.wanted) <= LARGEST
            )
        )
        return
    answers = found.answers(columns, order)
    if answers is None:
        numbers = np.array(rows, np.int64).T
        assert not ((numbers >= 0) & (numbers <= LARGEST)).all() or not numbers[6:8].all()
        return
    at = ManyRows(columns, order)
    plain = run_filters(wanted, at, [fit])
    verdicts, sums = answers
    if verdicts is None:
        verdicts = np.full(len(order), FITTING)
    assert (verdicts & CODE).tolist() == plain.codes.tolist()
    assert (verdicts >> SHIFT).tolist() == plain.positions.tolist()
    assert FITTING == LAST << SHIFT
    total, wrong = run_row_scores(wanted, at, weighted, highest=PROFILE.highest_score)
    assert np.broadcast_to(sums, len(order)).tolist() == as_array(total).tolist()
    assert wrong is False
    sums = np.broadcast_to(sums, len(order))
    for place, row in enumerate(order.tolist()):
        assert found.answer_on(columns, row) == (verdicts[place], sums[place])


@pytest.mark.parametrize("release", [each.name for each in RELEASES if not each.providers])
def test_the_rules_of_the_default_profile_read_blocks(release: str) -> None:
    """Or every decision after many changes would cost several times more."""
    profile = podium.default_profile(release)
    columns = view(node("n", cpu="4", memory="8Gi"))
    wanted = columns.pods.incoming(pod("p", requests={"cpu": "1", "memory": "1Gi"}))
    fit = [
        Positioned(i, rule)
        for i, rule in enumerate(profile.predicates)
        if rule.name == "NodeResourcesFit"
    ]
    scores = [each for each in profile.priorities if each.name.startswith("NodeResources")]
    found = block_rules(wanted, columns, fit, scores, profile.highest_score)
    assert len(fit) == 1
    assert len(scores) == 2
    assert found is not None
    assert found.answers(columns, columns.nodes.order) is not None
