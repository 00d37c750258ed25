"""Spans of scheduling attempts."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from builders import claim, claim_volume, node, objects, pod, storage_class
from podium.cluster.simulation import Simulation
from podium.engine.cycle.attempt import Attempt
from podium.engine.cycle.cycle import cycle, run
from podium.engine.cycle.ties import First
from podium.errors import InputError
from podium.library.profiles import default_profile
from podium.scheduler.state.observers import AttemptResult
from podium.scheduler.telemetry.tracing import SpanObserver, Tracing
from scheduler.attempts import NOON, attempted

STEPS = (("Basic checks done", 0.001), ("Computing predicates done", 0.002))


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def observer(spans: InMemorySpanExporter) -> SpanObserver:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    return SpanObserver(provider.get_tracer("tests"))


def result(cpu: str = "1") -> AttemptResult:
    world = Simulation(default_profile())
    world.load(objects(node("n1")))
    wanted = pod("p", uid="u", requests={"cpu": cpu})
    return attempted(wanted, world.attempt(wanted), default_profile(), seconds=0.01, steps=STEPS)


def test_a_placed_pod_has_a_span_for_each_part_of_its_attempt(
    observer: SpanObserver, spans: InMemorySpanExporter
) -> None:
    placed = result()
    observer.attempted(placed)
    observer.bound(placed, "n1", 0.5)
    found = {each.name: each for each in spans.get_finished_spans()}
    assert list(found) == [
        *("queue", "RunPreFilterPlugins", "RunFilterPlugins", "schedulingCycle"),
        *("RunBindPlugins", "bindingCycle", "schedulePod"),
    ]
    root = found["schedulePod"]
    assert root.attributes is not None
    assert root.attributes["k8s.pod.name"] == "p"
    assert root.attributes["k8s.node.name"] == "n1"
    assert root.attributes["scheduler.result"] == "placed"
    parents = {
        "queue": "schedulePod",
        "schedulingCycle": "schedulePod",
        "RunPreFilterPlugins": "schedulingCycle",
        "RunFilterPlugins": "schedulingCycle",
        "bindingCycle": "schedulePod",
        "RunBindPlugins": "bindingCycle",
    }
    for child, parent in parents.items():
        context, above = found[parent].context, found[child].parent
        assert context is not None
        assert above is not None
        assert above.span_id == context.span_id
    assert seconds(found["queue"]) == pytest.approx(1.0)
    assert seconds(found["RunFilterPlugins"]) == pytest.approx(0.002)
    assert seconds(found["bindingCycle"]) == pytest.approx(0.5)
    assert seconds(root) == pytest.approx(1.51)


def test_what_a_pod_reserves_is_a_step_of_its_own(
    observer: SpanObserver, spans: InMemorySpanExporter
) -> None:
    steps: list[str] = []
    profile = default_profile()
    world = Simulation(profile)
    later = storage_class("later", provisioner="p.io", mode="WaitForFirstConsumer")
    world.load(objects(node("n1"), claim("data", storage_class="later"), later))
    wanted = pod("p", uid="u", volumes=[claim_volume("data")])
    attempt = Attempt(
        world.cache.columns.pods.incoming(wanted), profile, world.cache.order(), First(),
        mark=steps.append,
    )  # fmt: skip
    decision = run(cycle(world.cache.columns, attempt))
    assert steps[-1] == "Reserving done"
    taken = tuple((step, 0.001) for step in steps)
    observer.attempted(attempted(wanted, decision, profile, seconds=0.01, steps=taken))
    names = [each.name for each in spans.get_finished_spans()]
    assert names[1:-1] == [
        *("RunPreFilterPlugins", "RunFilterPlugins", "selectHost", "RunReservePluginsReserve"),
    ]


def seconds(span: Any) -> float:
    return float(span.end_time - span.start_time) / 1e9


def test_a_pod_that_fits_nowhere_ends_with_its_decision(
    observer: SpanObserver, spans: InMemorySpanExporter
) -> None:
    observer.attempted(result(cpu="2000"))
    root = next(each for each in spans.get_finished_spans() if each.name == "schedulePod")
    assert root.attributes is not None
    assert root.attributes["scheduler.result"] == "unschedulable"
    assert "Insufficient cpu" in str(root.attributes["scheduler.message"])
    assert root.end_time == int((NOON + 0.01) * 1e9)


def test_a_failed_binding_is_an_error(observer: SpanObserver, spans: InMemorySpanExporter) -> None:
    placed = result()
    observer.attempted(placed)
    observer.bind_failed(placed, "n1", "refused")
    found = {each.name: each for each in spans.get_finished_spans()}
    assert found["RunBindPlugins"].status.description == "refused"
    assert not found["schedulePod"].status.is_ok


@pytest.fixture
def collector() -> Iterator[tuple[str, list[str]]]:
    """An endpoint that notes the paths it is sent to."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    thread.join()
    server.server_close()


def test_spans_are_sent_to_the_endpoint(collector: tuple[str, list[str]]) -> None:
    url, asked = collector
    tracing = Tracing(url, 1_000_000, "podium")
    placed = result()
    tracing.observer.attempted(placed)
    tracing.observer.bound(placed, "n1", 0.1)
    tracing.close()
    assert asked == ["/v1/traces"]


def test_without_the_packages_the_flag_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(InputError, match=r"podium\[tracing\]"):
        Tracing("http://127.0.0.1:1", 1, "podium")
