"""While `PodIndex.presence` stays the same, nothing begins to count pods or ceases to."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from builders import node, pod, term
from podium.cluster.cache.columns import Columns
from podium.engine.rules.pod_affinity import selects_any_pod, term_tally
from podium.engine.state.accounting import ContainerSums
from podium.engine.state.affinity_terms import compiled
from podium.engine.state.tallies import PodTerm, SparseLimits

#: Host names and racks tell all nodes apart, and one node in three has no rack.
KEYS = ("zone", "host", "rack")
NODES = [
    node(
        f"n{i}",
        labels={"host": f"n{i}", "zone": f"z{i % 2}"} | ({"rack": f"r{i}"} if i % 3 else {}),
    )
    for i in range(105)
]
#: Terms select these; no term selects pods of the app c.
APPS = ("a", "b")
#: The app of a pod that comes, the node, and whether it keeps away from its like; or a pod leaves.
STEPS = st.lists(
    st.tuples(st.sampled_from([*APPS, "c", "leave"]), st.integers(0, 5), st.booleans()), max_size=25
)


def present(columns: Columns, terms: list[PodTerm]) -> list[object]:
    """Whether pods are counted: those that terms select, and those that carry a term."""
    found: list[object] = [bool(columns.pods.total)]
    found += [(key, True) for key, each in columns.pods.label_sets.items() if each.rows]
    for number, each in enumerate(terms):
        found.append(selects_any_pod(columns, each))
        if number % 2:
            tally = term_tally(columns, (each,))
            found.append((bool(tally.carriers), bool(tally.total(each.topology_key))))
    for carried in columns.pods.carried:
        total = carried.tally.total(carried.term.topology_key)
        found.append((bool(carried.tally.carriers), bool(total)))
    return found


#: A term that a pod carries again, on a node without a rack, beside a pod with the same labels.
CARRIED_AGAIN = [("a", 1, False), ("a", 0, True), ("leave", 1, False), ("a", 0, True)]
#: A pod with a rack beside one without, where sums per rack are not kept.
FIRST_WITH_RACK = [("b", 0, False), ("b", 1, False), ("leave", 1, False)]


@example(steps=CARRIED_AGAIN, most_rows=0)
@example(steps=FIRST_WITH_RACK, most_rows=64)
@example(steps=[("a", 0, False), ("c", 0, False), ("leave", 1, False)], most_rows=0)
@given(steps=STEPS, most_rows=st.sampled_from([0, 2, 64]))
def test_nothing_begins_or_ceases_to_count_unnoticed(
    steps: list[tuple[str, int, bool]], most_rows: int
) -> None:
    columns = Columns(ContainerSums(), sparse=SparseLimits(min_capacity=8, most_rows=most_rows))
    for each in NODES:
        columns.put_node(each)
    terms = [compiled(term({"app": app}, key), "default") for key in KEYS for app in APPS]
    placed: list[str] = []
    was = present(columns, terms)
    before = columns.pods.presence.changes
    for number, (what, place, avoiding) in enumerate(steps):
        if what != "leave":
            away = [term({"app": what}, "rack")] if avoiding else []
            made = pod(f"p{number}", node=f"n{place}", labels={"app": what}, anti=away)
            columns.add_pod(made)
            placed.append(made.uid)
        elif placed:
            columns.remove_pod(placed.pop(place % len(placed)))
        if columns.pods.presence.changes == before:
            assert present(columns, terms) == was
        was = present(columns, terms)
        before = columns.pods.presence.changes
