"""Traces of SimKube: owners that are applied, scaled and deleted become pods that come and go."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.errors import InputError
from podium_research.traces.reading import read_trace
from podium_research.traces.trace import Trace

NODES = b"name,cpu,pods,label:disk\nn-1,4,110,ssd\nn-2,4,110,\n"


def spec(cpu: str = "1", **more: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {"containers": [container], **more}


def owner(kind: str, name: str = "web", cpu: str = "1", **more: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": spec(cpu)}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"template": template, **more},
    }


def trace(*events: tuple[int, list[Any], list[Any]], **more: Any) -> Trace:
    document = {
        "version": 2,
        "config": {"trackedObjects": {}},
        "events": [
            {"ts": 1_000 + time, "applied_objs": applied, "deleted_objs": deleted}
            for time, applied, deleted in events
        ],
        "index": {},
        "pod_lifecycles": {},
        **more,
    }
    content = msgspec.msgpack.encode(document)
    return read_trace("simkube", "t", [("nodes.csv", NODES), ("t.sktrace", content)])


def times(found: Trace) -> list[tuple[str, float, float | None]]:
    return [(each.pod.key, each.arrives, each.leaves) for each in found.pods]


def test_a_deployment_is_scaled_and_deleted() -> None:
    found = trace(
        (0, [owner("Deployment", replicas=1)], []),
        (10, [owner("Deployment", replicas=3)], []),
        (20, [owner("Deployment", replicas=2)], []),
        (30, [], [owner("Deployment", replicas=2)]),
    )

    assert times(found) == [
        ("shop/web-0", 0, 30),
        ("shop/web-1", 10, 30),
        ("shop/web-2", 10, 20),
    ]
    assert found.pods[0].pod.labels == {"app": "web"}
    assert found.start == 1_000
    assert [each.node.name for each in found.nodes] == ["n-1", "n-2"]


def test_another_template_replaces_the_pods() -> None:
    found = trace(
        (0, [owner("ReplicaSet", replicas=2)], []),
        (5, [owner("ReplicaSet", cpu="2", replicas=2)], []),
    )

    assert times(found) == [
        ("shop/web-0", 0, 5),
        ("shop/web-1", 0, 5),
        ("shop/web-2", 5, None),
        ("shop/web-3", 5, None),
    ]


def test_jobs_daemons_and_pods_of_their_own() -> None:
    daemon = owner("DaemonSet", "agent")
    daemon["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "one"},
        "spec": spec(nodeName="x"),
    }
    found = trace((0, [owner("Job", "job", parallelism=3, completions=2), daemon, pod], []))

    assert times(found) == [
        ("shop/job-0", 0, None),
        ("shop/job-1", 0, None),
        ("shop/agent-0", 0, None),
        ("default/one", 0, None),
    ]
    agent = found.pods[2].pod
    assert agent.spec.affinity is not None
    assert found.pods[3].pod.spec.node_name == ""


def test_lifecycles_say_how_long_pods_run() -> None:
    cron = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "tick", "namespace": "shop"},
        "spec": {"jobTemplate": {"spec": {"template": {"spec": spec()}}}},
    }
    lifecycles = {
        ("batch/v1.CronJob", "shop/tick"): {7: [{"Finished": [1060, 1090]}, {"Running": 1120}]},
        ("apps/v1.Deployment", "shop/web"): {1: [{"Finished": [1000, 1040]}]},
    }
    found = trace(
        (0, [owner("Deployment"), cron], []), (200, [cron], []), pod_lifecycles=lifecycles
    )

    assert [(p.pod.name, p.arrives, p.seconds) for p in found.pods] == [
        ("web-0", 0, 40),
        ("tick-0", 60, 30),
        ("tick-1", 120, None),
    ]


def test_the_tracer_says_where_templates_are() -> None:
    custom = {
        "apiVersion": "x.io/v1",
        "kind": "Farm",
        "metadata": {"name": "f", "namespace": "shop"},
        "spec": {"replicas": 2, "worker": {"spec": spec()}},
    }
    config = {"trackedObjects": {"x.io/v1.Farm": {"podSpecTemplatePaths": ["/spec/worker"]}}}

    assert len(trace((0, [custom], []), config=config).pods) == 2
    assert trace((0, [custom], [])).pods == ()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"\xc1", "t.sktrace: is no trace of SimKube: "),
        (msgspec.msgpack.encode([1]), "t.sktrace: is no trace of SimKube: it has no events"),
        (
            msgspec.msgpack.encode({"version": 1, "events": []}),
            "t.sktrace: is of version 1 of SimKube's traces; version 2 can be read",
        ),
        (
            msgspec.msgpack.encode({"version": 2, "events": [{"ts": "noon"}]}),
            (
                "t.sktrace: is no trace of SimKube: Expected `int | float`, got `str` - at "
                "`$.events[0].ts`"
            ),
        ),
        (
            msgspec.msgpack.encode({"version": 2, "events": [{}]}),
            (
                "t.sktrace: is no trace of SimKube: Object missing required field `ts` - at "
                "`$.events[0]`"
            ),
        ),
        (
            msgspec.msgpack.encode({"version": 2, "events": [{"ts": 1, "deleted_objs": [{}]}]}),
            (
                "t.sktrace: is no trace of SimKube: Object missing required field `apiVersion` - "
                "at `$.events[0].deleted_objs[0]`"
            ),
        ),
        (
            msgspec.msgpack.encode({"version": 2, "events": [], "config": 3}),
            (
                "t.sktrace: is no trace of SimKube: Expected `object | null`, got `int` - at "
                "`$.config`"
            ),
        ),
    ],
)
def test_what_is_no_trace_is_one_sentence(content: bytes, sentence: str) -> None:
    with pytest.raises(InputError) as raised:
        read_trace("simkube", "t", [("nodes.csv", NODES), ("t.sktrace", content)])

    assert str(raised.value).startswith(sentence)


def test_an_object_that_cannot_be_read_is_named() -> None:
    broken = owner("Deployment")
    broken["spec"]["template"]["spec"]["priority"] = "high"
    with pytest.raises(InputError, match=r"^t\.sktrace: Deployment shop/web: Expected `int"):
        trace((0, [broken], []))


def test_a_number_of_pods_that_is_none_is_named() -> None:
    broken = owner("Deployment", replicas="many")
    sentence = r"^t\.sktrace: Deployment shop/web: spec\.replicas: is no whole number"
    with pytest.raises(InputError, match=sentence):
        trace((0, [broken], []))
