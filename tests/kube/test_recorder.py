"""Events reach a real API server, and never get in the way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from control_plane.bulk import delete_all
from control_plane.harness import ADMIN, ControlPlane
from control_plane.proxy import Proxy
from kube.reflecting import PODS, connected
from podium.kube.events import CORE, EVENTS, Reference
from podium.kube.recorder import EventRecorder
from podium.objects.kinds.pod import Pod
from waiting import eventually

BODY = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


@pytest.fixture
def plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    delete_all(control_plane)
    yield control_plane
    delete_all(control_plane)


@pytest.fixture
def pod(plane: ControlPlane) -> Pod:
    return msgspec.convert(plane.post(PODS, BODY), Pod)


def events(plane: ControlPlane, api: str = "/api/v1") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = plane.get(f"{api}/namespaces/default/events")["items"]
    return found


async def test_an_event_in_the_older_api(plane: ControlPlane, pod: Pod) -> None:
    async with (
        connected(plane.kubeconfig(ADMIN)) as client,
        EventRecorder(client, "default-scheduler") as recorder,
    ):
        for _ in range(3):
            recorder.record(pod, "Warning", "FailedScheduling", "no room")
        recorder.record(pod, "Normal", "Scheduled", "Successfully assigned default/web to n1")
        assert await recorder.drain()
        assert recorder.counts == {"written": 4}
    failed, scheduled = sorted(events(plane), key=lambda event: event["reason"])
    assert (failed["count"], scheduled["count"]) == (3, 1)
    assert failed["source"] == {"component": "default-scheduler"}
    assert failed["involvedObject"] == {
        "kind": "Pod",
        "namespace": "default",
        "name": "web",
        "uid": pod.uid,
        "apiVersion": "v1",
        "resourceVersion": pod.metadata.resource_version,
    }
    said = plane.kubectl("describe", "pod", "web")
    assert "default-scheduler  Successfully assigned default/web to n1" in said
    assert "(x3 over " in said


async def test_an_event_in_the_newer_api(plane: ControlPlane, pod: Pod) -> None:
    async with (
        connected(plane.kubeconfig(ADMIN)) as client,
        EventRecorder(client, "podium", api=EVENTS, host="machine") as recorder,
    ):
        for _ in range(3):
            recorder.record(pod, "Warning", "FailedScheduling", "no room")
        node = Reference("Node", "", "n1", "n1")
        recorder.record(pod, "Normal", "Preempted", "Preempted", action="Preempting", related=node)
        assert await recorder.drain()
        assert recorder.counts == {"written": 3, "spared": 1}
    failed, preempted = sorted(events(plane, f"/apis/{EVENTS}"), key=lambda event: event["reason"])
    assert failed["series"]["count"] == 2
    assert failed["note"] == "no room"
    assert failed["reportingController"] == "podium"
    assert failed["reportingInstance"] == "podium-machine"
    assert preempted["action"] == "Preempting"
    assert preempted["related"]["name"] == "n1"
    assert "FailedScheduling" in plane.kubectl("describe", "pod", "web")


@pytest.mark.parametrize("api", [CORE, EVENTS])
async def test_an_event_that_was_deleted_is_written_again(
    plane: ControlPlane, pod: Pod, api: str
) -> None:
    async with (
        connected(plane.kubeconfig(ADMIN)) as client,
        EventRecorder(client, "podium", api=api) as recorder,
    ):
        recorder.record(pod, "Warning", "FailedScheduling", "no room")
        assert await recorder.drain()
        await client.request("DELETE", "/api/v1/namespaces/default/events")
        recorder.record(pod, "Warning", "FailedScheduling", "no room")
        assert await recorder.drain()
        assert recorder.counts == {"written": 2}
    assert len(events(plane)) == 1


async def test_events_wait_for_the_api_server(plane: ControlPlane, pod: Pod) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(300 if seconds == 360 else 0.01)

    with Proxy(plane) as proxy:
        trouble = [
            proxy.answer("POST", "/events", 500, times=1),
            proxy.answer("POST", "/events", 429, times=1, headers={"Retry-After": "3"}),
        ]
        async with (
            connected(plane.kubeconfig(ADMIN, url=proxy.url), sleep=sleep) as client,
            EventRecorder(client, "podium", sleep=sleep) as recorder,
        ):
            recorder.record(pod, "Normal", "Scheduled", "here")
            recorder.record(pod, "Normal", "Scheduled", "here")
            assert await recorder.drain(20)
            assert recorder.counts == {"written": 2}
        assert [fault.hits for fault in trouble] == [1, 1]
    assert [event["count"] for event in events(plane)] == [2]
    assert 3.0 in pauses


async def test_a_right_that_is_missing_is_named_once(plane: ControlPlane, pod: Pod) -> None:
    told: list[str] = []

    async with (
        connected(plane.kubeconfig_of("stranger")) as client,
        EventRecorder(client, "podium", warn=told.append) as recorder,
    ):
        for number in range(5):
            recorder.record(pod, "Normal", "Scheduled", f"n{number}")
        assert await recorder.drain()
        assert recorder.counts == {"failed": 5}
    (sentence,) = told
    assert sentence == (
        'an event could not be written: events is forbidden: User "stranger" cannot create '
        'resource "events" in API group "" in the namespace "default"'
    )


async def test_too_many_are_dropped_and_nobody_waits(plane: ControlPlane, pod: Pod) -> None:
    with Proxy(plane) as proxy:
        proxy.swallow("POST", "/events")
        async with (
            connected(plane.kubeconfig(ADMIN, url=proxy.url)) as client,
            EventRecorder(client, "podium", most=10) as recorder,
        ):
            for number in range(100):
                about = Reference("Pod", "default", f"p-{number}", f"u-{number}")
                recorder.record(about, "Normal", "Scheduled", "here")
            await eventually(lambda: recorder.counts["dropped"] == 90)
            assert not await recorder.drain(0.05)


async def test_many_events_are_all_written(plane: ControlPlane) -> None:
    async with (
        connected(plane.kubeconfig(ADMIN)) as client,
        EventRecorder(client, "podium") as recorder,
    ):
        for number in range(500):
            about = Reference("Pod", "default", f"p-{number}", f"u-{number}")
            recorder.record(about, "Normal", "Scheduled", f"to n{number}")
        assert await recorder.drain(60)
        assert recorder.counts == {"written": 500}
    assert len({event["message"] for event in events(plane)}) == 500
