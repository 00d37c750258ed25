"""A trace replayed in time: pods wait for room, and others leave."""

from __future__ import annotations

from podium.library.profile_source import ProfileSource
from podium_research.sweeps.in_time import run_in_time
from podium_research.traces.reading import read_trace
from podium_research.traces.trace import Trace

NODES = "name,cpu,memory,pods,arrives,leaves\nn-1,2,8Gi,110,,\nn-2,2,8Gi,110,200,\n"


def trace(pods: str, nodes: str = NODES) -> Trace:
    return read_trace("csv", "t", [("nodes.csv", nodes.encode()), ("pods.csv", pods.encode())])


def replay(pods: str, seed: int = 0) -> dict[str, float]:
    return run_in_time(trace(pods), ProfileSource(environment={}).choose(), seed)


def test_a_pod_waits_until_another_has_finished() -> None:
    found = replay("name,arrives,seconds,cpu\nfirst,0,60,2\nsecond,10,30,2\n")

    assert (found["pods"], found["placed"], found["finished"]) == (2, 2, 2)
    # It is tried again when the first one has ended, after a minute and the kubelet's start.
    assert 50 <= found["wait_p99_seconds"] <= 70
    assert found["cpu_peak_percent"] == 50.0


def test_a_pod_waits_for_a_node_that_joins() -> None:
    found = replay("name,arrives,leaves,cpu\nfirst,0,500,2\nsecond,100,500,2\n")

    assert found["placed"] == 2
    assert 100 <= found["wait_p99_seconds"] <= 110
    assert found["evicted"] == 0
    assert found["cpu_peak_percent"] == 100.0


def test_a_more_important_pod_evicts_another() -> None:
    found = replay("name,arrives,seconds,cpu,priority\nlow,0,150,2,\nhigh,50,60,2,7\n")

    assert (found["placed"], found["evicted"]) == (2, 1)


def test_a_pod_that_is_deleted_before_it_is_placed() -> None:
    found = replay("name,arrives,leaves,cpu\nfirst,0,150,2\nsecond,10,90,2\n")

    assert (found["pods"], found["placed"], found["evicted"]) == (2, 1, 0)


def test_the_same_seed_gives_the_same_figures() -> None:
    pods = "name,namespace,arrives,seconds,cpu\n" + "".join(
        f"p-{i},shop,{i * 7 % 50},{20 + i},500m\n" for i in range(12)
    )

    assert replay(pods, seed=3) == replay(pods, seed=3)
    assert replay(pods)["placed"] == 12


def test_months_in_which_nothing_happens_are_left_out() -> None:
    found = replay(
        "name,arrives,leaves,seconds,cpu\nfirst,0,5000000,,2\nsecond,10,,,2\nthird,9000000,,60,2\n"
    )

    assert found["placed"] == 3
    assert 189 <= found["wait_mean_seconds"] * 3 <= 210
    assert 9_000_060 <= found["end_seconds"] <= 9_000_070


def test_a_pod_waits_for_months() -> None:
    nodes = "name,cpu,memory,pods\nn-1,2,8Gi,110\n"
    pods = "name,arrives,leaves,cpu\nfirst,0,5000000,2\nsecond,10,,2\n"
    found = run_in_time(trace(pods, nodes), ProfileSource(environment={}).choose(), 0)

    assert 4_999_980 <= found["wait_p99_seconds"] <= 5_000_060
    assert found["evicted"] == 0
