"""Patches of a pod's status: what is written, and what is not written again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from builders import pod
from podium.kube.errors import ApiError
from podium.objects.kinds.pod import Pod, PodCondition
from podium.scheduler.placing.status_writers import FailedAttempt, PodStatusWriter
from scheduler.fakes import LOST, FakeApi, refused

NO_ROOM = FailedAttempt("Unschedulable", "no room")


def writer_to(
    api: FakeApi, *, writes_probe_time: bool = False, now: Any = lambda: 0.0
) -> PodStatusWriter:
    return PodStatusWriter(api, writes_probe_time=writes_probe_time, now=now)


def waiting(**options: Any) -> Pod:
    return pod("a", uid="1", **options)


def statuses(api: FakeApi) -> list[Any]:
    return [status for _, status in api.named("status")]


def write(writer: PodStatusWriter, *outcomes: FailedAttempt) -> Pod:
    """Write outcomes one after the other; the pod as it is afterwards."""

    async def run() -> Pod:
        written = waiting()
        for outcome in outcomes:
            await writer.write(written, outcome)
            written = writer.with_condition(written, outcome)
        return written

    return asyncio.run(run())


def test_an_attempt_that_ends_as_the_one_before_writes_nothing() -> None:
    api = FakeApi()
    outcome = FailedAttempt("Unschedulable", "no room", "")

    write(writer_to(api), outcome, outcome, FailedAttempt("Unschedulable", "less room", "n1"))

    first, second = statuses(api)
    [condition] = first["conditions"]
    assert condition == {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "no room",
        "lastProbeTime": None,
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }
    assert "nominatedNodeName" not in first
    assert second["nominatedNodeName"] == "n1"


async def test_every_attempt_of_v1_13_writes_its_time() -> None:
    api, now = FakeApi(), [0.0]
    writer = writer_to(api, writes_probe_time=True, now=lambda: now[0])

    written = waiting()
    await writer.write(written, NO_ROOM)
    written = writer.with_condition(written, NO_ROOM)
    now[0] = 60.0
    await writer.write(written, NO_ROOM)

    last = statuses(api)[-1]["conditions"][0]
    assert last["lastProbeTime"] == "1970-01-01T00:01:00Z"
    assert last["lastTransitionTime"] == "1970-01-01T00:00:00Z"


def test_a_patch_names_the_uid() -> None:
    class Whole(FakeApi):
        async def patch_pod_status(self, namespace: str, name: str, patch: Any) -> None:
            self.requests.append((namespace, name, patch["metadata"]))

    api = Whole()

    write(writer_to(api), NO_ROOM)

    assert api.requests == [("default", "a", {"uid": "1"})]


def test_a_nomination_is_removed_with_null_and_not_written_twice() -> None:
    api = FakeApi()
    writer, nominated = writer_to(api), waiting(nominated="n1")

    asyncio.run(writer.nominate(nominated, "n1"))
    asyncio.run(writer.nominate(nominated, ""))

    assert statuses(api) == [{"nominatedNodeName": None}]


def test_a_nomination_that_was_written_and_not_seen_yet_is_removed() -> None:
    """The watch is late: the pod is known without its nomination, and must not keep it."""
    api = FakeApi()
    writer, known = writer_to(api), waiting()
    asyncio.run(writer.nominate(known, "n1"))

    asyncio.run(writer.nominate(known, ""))

    assert statuses(api) == [{"nominatedNodeName": "n1"}, {"nominatedNodeName": None}]
    writer.pod_seen(known, waiting(nominated="n1"))
    writer.pod_seen(known, known)
    asyncio.run(writer.nominate(known, ""))
    assert len(statuses(api)) == 2, "the watch has told the last one"


def test_a_nomination_that_was_seen_is_removed_by_an_outcome_of_an_earlier_attempt() -> None:
    """The attempt began before the watch showed the nomination; its outcome comes after."""
    api = FakeApi()
    writer, known = writer_to(api), waiting()
    asyncio.run(writer.nominate(known, "n1"))
    writer.pod_seen(known, waiting(nominated="n1"))

    asyncio.run(writer.nominate(known, ""))

    assert statuses(api) == [{"nominatedNodeName": "n1"}, {"nominatedNodeName": None}]


def test_a_nomination_is_forgotten_with_its_pod() -> None:
    writer, known = writer_to(FakeApi()), waiting()
    asyncio.run(writer.nominate(known, "n1"))
    assert writer._nominated

    writer.pod_seen(known, None)

    assert writer._nominated == {}


def test_other_conditions_stay() -> None:
    ready = PodCondition(type="Ready", status="False")
    before = waiting()
    before = replace(before, status=replace(before.status, conditions=[ready]))

    found = writer_to(FakeApi()).with_condition(before, NO_ROOM)

    assert [each.type for each in found.status.conditions or ()] == ["Ready", "PodScheduled"]


@pytest.mark.parametrize("error", [refused(404), refused(409), refused(500), LOST])
def test_what_could_not_be_written_is_written_the_next_time(error: Exception) -> None:
    api = FakeApi()
    api.script("status", error)
    writer = writer_to(api)
    before = writer.with_condition(waiting(), NO_ROOM)

    with pytest.raises(type(error)):
        asyncio.run(writer.write(before, NO_ROOM))
    asyncio.run(writer.write(before, NO_ROOM))

    assert len(statuses(api)) == 2


@pytest.mark.parametrize("new", [None, pod("a", uid="1", node="n1")], ids=["deleted", "bound"])
def test_the_last_condition_of_a_pod_is_forgotten_with_it(new: Pod | None) -> None:
    api = FakeApi()
    writer = writer_to(api)
    written = write(writer, NO_ROOM)

    writer.pod_seen(written, new)
    asyncio.run(writer.write(written, NO_ROOM))

    assert len(statuses(api)) == 2


def test_a_pod_that_is_deleted_while_its_status_is_written_is_not_remembered() -> None:
    writer = writer_to(FakeApi())

    class Deleting(FakeApi):
        async def patch_pod_status(self, namespace: str, name: str, patch: Any) -> None:
            writer.pod_seen(waiting(), None)

    writer._client = Deleting()

    write(writer, NO_ROOM)

    assert writer._last == {}


@pytest.mark.parametrize("status", [404, 409])
def test_the_nomination_of_a_pod_that_is_gone_is_not_kept(status: int) -> None:
    """The watch told of its end before the write: nobody would tell of it again."""
    api = FakeApi()
    writer = writer_to(api)
    api.script("status", refused(status))

    with pytest.raises(ApiError):
        asyncio.run(writer.nominate(waiting(), "n1"))

    assert writer._nominated == {}
