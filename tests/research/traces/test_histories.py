"""Traces become histories, and histories become traces."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from builders import node, pod
from podium.objects.kinds.pod import Pod
from podium.past.format.reading import History
from podium.past.format.writing import HistoryWriter
from podium_research.traces.histories import trace_of, write_history
from podium_research.traces.reading import read_trace
from podium_research.traces.trace import Trace

NODES = b"name,cpu,pods,arrives,leaves\nn-1,4,110,,\nn-2,4,110,50,90\n"
PODS = b"""name,namespace,arrives,seconds,leaves,cpu,priority
a,shop,0,30,,1,
b,shop,12.5,,70,2,5
c,,12.5,,12.5,1,
d,,60,,,1,
"""


def times(trace: Trace) -> list[tuple[str, float, float | None, float | None]]:
    return [(p.pod.key, p.arrives, p.seconds, p.leaves) for p in trace.pods]


def test_a_trace_comes_back_from_its_history(tmp_path: Path) -> None:
    trace = read_trace("csv", "t", [("nodes.csv", NODES), ("pods.csv", PODS)])
    assert write_history(trace, tmp_path / "h") == 9
    again = trace_of(History(tmp_path / "h"), "t")

    assert times(again) == times(trace)
    assert again.nodes == trace.nodes
    assert [p.pod.spec for p in again.pods] == [p.pod.spec for p in trace.pods]
    assert again.pods[1].pod.metadata.creation_timestamp == "1970-01-01T00:00:12Z"


def on(found: Pod, name: str, phase: str = "") -> Pod:
    placed = replace(found, spec=replace(found.spec, node_name=name))
    return replace(placed, status=replace(found.status, phase=phase))


def test_a_recorded_history_is_what_was_asked_of_the_cluster(tmp_path: Path) -> None:
    there, done, late, gone = (pod(n, uid=n) for n in ("there", "done", "late", "gone"))
    with HistoryWriter(tmp_path) as writer:
        writer.change(100.0, "Node", None, node("n-1"))
        writer.change(100.0, "Pod", None, on(there, "n-1"))
        writer.change(105.0, "Pod", None, done)
        writer.change(107.0, "Pod", done, on(done, "n-1"))
        writer.change(120.0, "Pod", on(done, "n-1"), on(done, "n-1", "Succeeded"))
        writer.change(121.0, "Pod", on(done, "n-1", "Succeeded"), None)
        writer.change(130.0, "Pod", None, on(late, "n-1"))
        writer.change(140.0, "Pod", None, gone)
        writer.change(150.0, "Pod", gone, None)
    found = trace_of(History(tmp_path), "t")

    assert found.start == 100.0
    assert times(found) == [
        ("default/done", 5.0, 13.0, None),
        ("default/late", 30.0, None, None),
        ("default/gone", 40.0, None, 50.0),
    ]
    assert [each.key for each in found.others.pods] == ["default/there"]
    assert {each.pod.spec.node_name for each in found.pods} == {""}
