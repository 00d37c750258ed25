"""Whether all nodes offer a resource, kept as nodes come, change and go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from builders import node, view

CHANGES = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(("2", "0", None))), max_size=12)


@given(CHANGES)
def test_says_what_the_columns_say(changes: list[tuple[int, str | None]]) -> None:
    """Asked after every change, so that each change meets an answer that is kept."""
    columns = view()
    for number, cpu in changes:
        name = f"n{number}"
        if cpu is None:
            columns.drop_node(name)
        else:
            columns.put_node(node(name, cpu=cpu, memory="4Gi"))
        nodes = columns.nodes
        for column, amounts in enumerate(nodes.allocatable):
            assert nodes.all_offer(column) == bool(amounts[nodes.order].all())
