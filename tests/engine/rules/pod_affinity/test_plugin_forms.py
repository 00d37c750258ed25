"""Scores in plain numbers equal those of the arrays."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node, pod, selector, term
from builders_v1_36 import HOST, ZONE, view
from podium.engine.rows.row_groups import RowGroups
from podium.engine.rows.rows import ManyRows, as_array
from podium.engine.rules.pod_affinity import InterPodAffinityScore

ZONES = ("", "east", "west", "south")
TERMS = st.lists(
    st.tuples(st.sampled_from([ZONE, HOST, "rack"]), st.integers(1, 100), st.booleans()),
    max_size=3,
)


@settings(max_examples=300)
@given(
    zones=st.lists(st.sampled_from(ZONES), min_size=1, max_size=8),
    own=TERMS,
    others=TERMS,
    placed=st.lists(st.tuples(st.integers(0, 7), st.sampled_from("ab")), max_size=25),
    left=st.sets(st.integers(0, 7)),
)
def test_scores_in_plain_numbers_equal_those_of_arrays(
    zones: list[str],
    own: list[tuple[str, int, bool]],
    others: list[tuple[str, int, bool]],
    placed: list[tuple[int, str]],
    left: set[int],
) -> None:
    made = []
    for number, zone in enumerate(zones):
        labels = {HOST: f"n{number}", **({ZONE: zone} if zone else {})}
        made.append(node(f"n{number}", labels={**labels, "rack": f"r{number % 3}"}))
    columns = view(*made)
    for number, (row, app) in enumerate(placed):
        wishes = preferring("a", others) if app == "b" else {}
        columns.add_pod(pod(f"p{number}", labels={"app": app}, **wishes), f"n{row % len(zones)}")
    incoming = columns.pods.incoming(pod("p", labels={"app": "a"}, **preferring("b", own)))
    order = columns.nodes.order
    rows = order[[place not in left for place in range(len(order))]]
    at = ManyRows(columns, rows if len(rows) else order, {})
    rule = InterPodAffinityScore()
    if rule.everywhere(incoming, columns) is None:
        final = rule.normalize(incoming, at, as_array(rule.score(incoming, at)))
        few = rule.of_few(incoming, RowGroups(at, list(range(len(at))), {}), len(at))
        assert few == final.tolist()


def preferring(app: str, terms: list[tuple[str, int, bool]]) -> dict[str, Any]:
    """Options of a pod that prefers to be near pods with this label, or far from them."""
    chosen = selector({"app": app})
    return {
        "prefers": [(weight, term(chosen, key)) for key, weight, near in terms if near],
        "avoids": [(weight, term(chosen, key)) for key, weight, near in terms if not near],
    }
