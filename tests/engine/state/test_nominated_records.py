"""Records of nominated pods that are kept from one decision to the next equal fresh ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from builders import node, pod
from builders_v1_36 import spec_with, view
from podium.cluster.cache.columns import Columns
from podium.objects.kinds.pod import Pod

NODES = ("n1", "n2", "n3")


def nominated(number: int, priority: int, app: str) -> Pod:
    made = pod(f"p{number}", uid=f"u{number}", labels={"app": app}, requests={"cpu": "100m"})
    return spec_with(made, priority=priority)


PODS = st.builds(nominated, st.integers(0, 2), st.sampled_from([0, 10]), st.sampled_from("ab"))
NOMINATIONS = st.dictionaries(st.sampled_from(NODES), st.lists(PODS, max_size=3))


def told(columns: Columns) -> dict[str, list[tuple[object, ...]]]:
    return {
        name: [
            (each.key, each.uid, each.priority, each.labels.labels, each.row, each.terminating)
            for each in records
        ]
        for name, records in columns.pods.nominated.items()
    }


@given(rounds=st.lists(NOMINATIONS, min_size=1, max_size=6))
def test_kept_records_equal_fresh_ones(rounds: list[dict[str, list[Pod]]]) -> None:
    columns = view(*map(node, NODES))
    for nominations in rounds:
        columns.set_nominated(nominations)
        fresh = view(*map(node, NODES))
        fresh.set_nominated(nominations)
        assert told(columns) == told(fresh)
        assert list(columns.pods.nominated) == list(nominations)


def test_a_pod_that_stays_keeps_its_record() -> None:
    columns = view(*map(node, NODES))
    stays, leaves = nominated(0, 0, "a"), nominated(1, 10, "b")
    columns.set_nominated({"n1": [stays], "n2": [leaves]})
    [record] = columns.pods.nominated["n1"]

    columns.set_nominated({"n1": [stays]})

    assert columns.pods.nominated == {"n1": [record]}
    assert columns.pods.nominated["n1"][0] is record
