"""Scores in plain numbers equal those of the arrays."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node, pod, selector
from builders_v1_36 import HOST, SOFT, ZONE, spec_with, spread, view
from podium.engine.rows.row_groups import RowGroups
from podium.engine.rows.rows import ManyRows, as_array
from podium.engine.rules.spreading import PodTopologySpreadScore

ZONES = ("", "east", "west", "south")
CONSTRAINTS = st.lists(
    st.tuples(st.sampled_from([ZONE, HOST, "rack"]), st.integers(0, 6)), min_size=1, max_size=3
)


@settings(max_examples=300)
@given(
    zones=st.lists(st.sampled_from(ZONES), min_size=1, max_size=8),
    racked=st.booleans(),
    constraints=CONSTRAINTS,
    placed=st.lists(st.tuples(st.integers(0, 7), st.sampled_from("ab")), max_size=25),
    left=st.sets(st.integers(0, 7)),
)
def test_scores_in_plain_numbers_equal_those_of_arrays(
    zones: list[str],
    racked: bool,
    constraints: list[tuple[str, int]],
    placed: list[tuple[int, str]],
    left: set[int],
) -> None:
    made = []
    for number, zone in enumerate(zones):
        labels = {HOST: f"n{number}", **({ZONE: zone} if zone else {})}
        if racked or number % 2:
            labels["rack"] = f"r{number % 3}"
        made.append(node(f"n{number}", labels=labels))
    columns = view(*made)
    for number, (row, app) in enumerate(placed):
        columns.add_pod(pod(f"p{number}", labels={"app": app}), f"n{row % len(zones)}")
    chosen = selector({"app": "a"})
    wishes = [spread(key, skew, chosen, when=SOFT) for key, skew in constraints]
    wanted = spec_with(pod("p", labels={"app": "a"}), topology_spread_constraints=wishes)
    incoming = columns.pods.incoming(wanted)
    order = columns.nodes.order
    rows = order[[place not in left for place in range(len(order))]]
    if not len(rows):
        rows = order
    rule = PodTopologySpreadScore()
    at = ManyRows(columns, rows, {})
    raw = as_array(rule.score(incoming, at))
    final = rule.normalize(incoming, at, raw)
    tallied = {
        each: as_array(at.on_row(each)).tolist() for each in rule.group_tallies(incoming, columns)
    }
    few = rule.of_few(incoming, RowGroups(at, list(range(len(at))), tallied), len(at))
    if few is not None:
        assert few == final.tolist()
    everywhere = all(columns.nodes.all_have(key) for key, _ in constraints)
    if everywhere and min(skew for _, skew in constraints) > 0:
        assert few is not None
