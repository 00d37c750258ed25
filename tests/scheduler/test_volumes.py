"""Binding the claims of a pod: what is written, what is waited for, and every way to fail."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from builders import BIND_COMPLETED, claim, claim_volume, expression, node, node_term, volume
from podium.cluster.queue.entities import Pool
from podium.engine.rules.volumes.binding import SELECTED_NODE
from podium.engine.state.reservation import VolumePlan
from podium.objects.kinds.storage import ObjectReference
from podium.scheduler.placing.volumes import BOUND_BY_CONTROLLER
from scheduler.fakes import LOST, Cluster, cluster, refused, waiting

BIND = VolumePlan({"data": "disk"}, ())
PROVISION = VolumePlan({}, ("data",))
DISK_PATH = "/api/v1/persistentvolumes/disk"
CLAIM_PATH = "/api/v1/namespaces/default/persistentvolumeclaims/data"
#: What a patch returns: the object with its new version.
WRITTEN = {"metadata": {"resourceVersion": "5"}}


def versioned(item: Any, version: str, **metadata: Any) -> Any:
    changed = replace(item.metadata, resource_version=version, **metadata)
    return replace(item, metadata=changed)


def made(**options: Any) -> Cluster:
    """A pod whose claim `data` waits for a volume, and a volume `disk`."""
    found = Cluster(node("n1"), waiting(volumes=[claim_volume("data")]), **options)
    found.put(versioned(claim("data", storage_class="local"), "1"))
    found.put(versioned(volume("disk", storage_class="local"), "2"))
    found.api.script("patch", WRITTEN)
    return found


def bound_claim() -> Any:
    found = versioned(claim("data", volume="disk", storage_class="local"), "7")
    assert BIND_COMPLETED in found.metadata.annotations
    return found


def claimed_disk() -> Any:
    disk = versioned(volume("disk", storage_class="local"), "6")
    reference = ObjectReference("data", "default", uid="data")
    return replace(disk, spec=replace(disk.spec, claim_ref=reference))


def selected_claim(on: str = "n1", **more: Any) -> Any:
    return versioned(
        claim("data", storage_class="local", annotations={SELECTED_NODE: on}, **more), "6"
    )


def run(found: Cluster, plan: VolumePlan, *changes: Any) -> list[str]:
    """Bind the volumes of the pod; each change is reported after one round of waiting."""
    errors: list[str] = []

    async def bind() -> None:
        result = found.attempt(node="n1", volumes=plan)[1]
        found.actions.pre_bind.start(result, lambda error, _: errors.append(error))
        for change in changes:
            rounds = len(found.time.slept)
            while len(found.time.slept) <= rounds and not errors:  # noqa: ASYNC110
                await asyncio.sleep(0)
            change(found)
        await found.finish()

    asyncio.run(bind())
    return errors


def put(item: Any) -> Any:
    return lambda found: found.put(item)


def drop(item: Any) -> Any:
    return lambda found: found.drop(item)


# Success ------------------------------------------------------------------------------------------


def test_a_volume_is_written_for_the_claim_and_waited_for() -> None:
    found = made()

    errors = run(found, BIND, put(claimed_disk()), put(bound_claim()))

    assert errors == [""]
    [[path, patch]] = found.api.named("patch")
    assert path == DISK_PATH
    assert patch["metadata"] == {
        "resourceVersion": "2",
        "annotations": {BOUND_BY_CONTROLLER: "yes"},
    }
    assert patch["spec"]["claimRef"] == {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": "default",
        "name": "data",
        "uid": "data",
        "resourceVersion": "1",
    }
    assert set(found.time.slept) == {0.25}


def test_a_provisioner_is_asked_for_a_volume_on_the_node() -> None:
    found = made()
    done = selected_claim(volume="disk")

    errors = run(found, PROVISION, put(selected_claim()), put(versioned(done, "8")))

    assert errors == [""]
    assert found.api.named("patch") == [
        [CLAIM_PATH, {"metadata": {"resourceVersion": "1", "annotations": {SELECTED_NODE: "n1"}}}]
    ]


def test_the_pod_is_nominated_while_its_volumes_are_bound() -> None:
    found = made()

    run(found, BIND, put(claimed_disk()), put(bound_claim()))

    assert found.api.requests[0] == ("status", "default/a", {"nominatedNodeName": "n1"})


def test_in_v1_13_it_is_not() -> None:
    found = made(version="v1.13")

    run(found, BIND, put(claimed_disk()), put(bound_claim()))

    assert found.api.named("status") == []


def test_a_nomination_that_fails_is_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    found = made()
    found.api.script("status", refused(403, "not allowed"))

    errors = run(found, BIND, put(claimed_disk()), put(bound_claim()))

    assert errors == [""]
    told = "pod default/a: the nomination to n1 was not written: not allowed"
    assert caplog.text.count(told) == 1


# Failures -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [refused(404, "gone"), refused(409, "changed"), refused(500, "broken"), LOST],
    ids=["404", "409", "500", "no answer"],
)
@pytest.mark.parametrize("plan", [BIND, PROVISION], ids=["bind", "provision"])
def test_a_plan_that_cannot_be_written_fails(plan: VolumePlan, error: Exception) -> None:
    found = made()
    found.api.answers["patch"].clear()
    found.api.script("patch", error)

    assert run(found, plan) == [str(error)]


def test_an_exception_fails_like_an_error(caplog: pytest.LogCaptureFixture) -> None:
    found = made()
    found.api.answers["patch"].clear()
    found.api.script("patch", {"an answer": "without metadata"})

    errors = run(found, BIND)

    assert errors == ["KeyError: 'metadata'"]
    assert "binding the volumes of pod default/a" in caplog.text


def test_the_wait_ends_after_a_time() -> None:
    found = made(volume_seconds=0.01)

    assert run(found, BIND) == ["binding volumes: context deadline exceeded"]


@pytest.mark.parametrize(
    ("plan", "change", "error"),
    [
        (BIND, drop(node("n1")), 'binding volumes: failed to get node "n1"'),
        (BIND, drop(waiting()), "binding volumes: pod does not exist any more"),
        (BIND, drop(claim("data")), 'persistentvolumeclaim "default/data" not found'),
        (BIND, drop(volume("disk")), 'persistentvolume "disk" not found'),
        (
            BIND,
            put(versioned(volume("disk", storage_class="local"), "6")),
            'binding volumes: ClaimRef got reset for pv "disk"',
        ),
        (
            BIND,
            put(
                versioned(volume("disk", reachable=[node_term(expression("disk", "Exists"))]), "6")
            ),
            'binding volumes: pv "disk" node affinity doesn\'t match node "n1"',
        ),
        (
            PROVISION,
            put(versioned(claim("data", storage_class="local"), "6")),
            'binding volumes: selectedNode annotation reset for PVC "data"',
        ),
        (
            PROVISION,
            put(selected_claim("n2")),
            'binding volumes: provisioning failed for PVC "data"',
        ),
    ],
    ids=[
        "the node is deleted",
        "the pod is deleted",
        "the claim is deleted",
        "the volume is deleted",
        "the volume loses its claim",
        "the volume cannot be reached any more",
        "the provisioner gives up",
        "another node is selected",
    ],
)
def test_the_wait_ends_when_the_plan_cannot_succeed(
    plan: VolumePlan, change: Any, error: str
) -> None:
    assert run(made(), plan, change) == [error]


def test_an_older_version_of_a_volume_is_waited_out() -> None:
    found = made()
    older = versioned(volume("disk", storage_class="local", labels={"x": "y"}), "3")

    assert run(found, BIND, put(older), put(claimed_disk()), put(bound_claim())) == [""]


async def test_cancelling_ends_the_wait_without_a_result() -> None:
    found, errors = made(), list[str]()

    result = found.attempt(node="n1", volumes=BIND)[1]
    found.actions.pre_bind.start(result, lambda error, _: errors.append(error))
    while not found.time.slept:  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert len(found.actions.pre_bind) == 1
    await found.actions.pre_bind.cancel()

    assert errors == []
    assert len(found.actions.pre_bind) == 0


# With the binder ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "text", "reason"),
    [
        ("v1.13", "gone", "VolumeBindingFailed"),
        ("v1.37", 'running PreBind plugin "VolumeBinding": gone', "SchedulerError"),
    ],
)
def test_failed_volumes_undo_the_placement(version: str, text: str, reason: str) -> None:
    found = made(version=version)
    found.api.answers["patch"].clear()
    found.api.script("patch", refused(404, "gone"))

    found.bind(volumes=BIND)

    assert found.api.named("bind") == []
    assert found.placed() == {}
    assert found.pool(waiting()) is Pool.BACKOFF
    assert found.reports.failures == [("default/a", "n1", "gone")]
    assert found.events.written == [("default/a", "FailedScheduling", text)]
    status = found.api.named("status")[-1][1]
    assert status["conditions"][0]["reason"] == reason


def test_the_pod_is_bound_after_its_volumes() -> None:
    found = made()
    found.put(claimed_disk())
    found.put(bound_claim())

    found.bind(volumes=BIND)

    names = [name for name, *_ in found.api.requests]
    assert names == ["status", "patch", "bind"]
    assert [(pod, on) for pod, on, _ in found.reports.bound_pods] == [("default/a", "n1")]


def test_a_pod_without_a_plan_is_bound_at_once() -> None:
    found = cluster()

    found.bind()

    assert [name for name, *_ in found.api.requests] == ["bind"]
