"""Cache and queue follow the API server: objects are added, changed and deleted."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from builders import node, pod
from podium.cluster.queue.entities import Pool
from podium.engine.state.pod_class import started_at
from podium.objects.kinds.devices import ClaimMeta, ResourceClaim
from podium.objects.kinds.meta import Object, OwnerReference
from podium.objects.kinds.pod import Pod, PodResourceClaim, PodResourceClaimStatus
from podium.profiles.config.build import default_config, from_config
from podium.profiles.policy.build import Options, from_provider
from podium.scheduler.state.behaviour import OF_CONFIGURATIONS, OF_POLICIES
from podium.scheduler.state.cluster_state import ClusterState
from podium.scheduler.state.observers import Observer

PROFILES = {
    "v1.13": (from_provider("DefaultProvider", Options()), OF_POLICIES),
    "v1.37": (from_config(default_config(), Options())[0], OF_CONFIGURATIONS),
}


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=sorted(PROFILES))
def state(request: pytest.FixtureRequest) -> ClusterState:
    profile, behaviour = PROFILES[request.param]
    return ClusterState({"default-scheduler": profile}, behaviour, Clock())


def version(made: Pod, number: int, **changes: Any) -> Pod:
    """A newer version of a pod."""
    metadata = replace(made.metadata, resource_version=str(number), **changes.pop("metadata", {}))
    spec = replace(made.spec, **changes.pop("spec", {}))
    return replace(made, metadata=metadata, spec=spec, **changes)


def on(made: Pod, name: str, number: int = 2) -> Pod:
    return version(made, number, spec={"node_name": name})


def placed_pods(state: ClusterState) -> dict[str, str]:
    """Pod -> node, as the cache has it."""
    columns = state.cache.columns
    rows = enumerate(columns.pods.residents)
    return {each.key: columns.nodes.names[row] for row, residents in rows for each in residents}


A = version(pod("a", uid="1"), 1)


def test_a_pod_without_a_node_waits(state: ClusterState) -> None:
    state.index("Pod").put(A)

    assert state.queue.pool_of(A) is Pool.ACTIVE
    assert state.pod(A) is A


def test_a_pod_whose_claims_are_missing_is_held_back() -> None:
    profile, behaviour = PROFILES["v1.37"]
    state = ClusterState({"default-scheduler": profile}, behaviour, Clock())
    entry = PodResourceClaim("gpu", resource_claim_template_name="one")
    held = version(pod("held", uid="7"), 1, spec={"resource_claims": [entry]})
    state.index("Pod").put(held)
    assert state.queue.pool_of(held) is Pool.GATED

    made = [PodResourceClaimStatus("gpu", "held-gpu")]
    noted = version(held, 2, status=replace(held.status, resource_claim_statuses=made))
    state.index("Pod").put(noted)
    assert state.queue.pool_of(noted) is Pool.GATED, "its claim is not known yet"

    owner = OwnerReference("Pod", "held", "7", "v1", controller=True)
    about = ClaimMeta(name="held-gpu", namespace="default", uid="8", owner_references=[owner])
    state.index("ResourceClaim").put(ResourceClaim(kind="ResourceClaim", metadata=about))
    assert state.queue.pool_of(noted) is Pool.ACTIVE


def test_a_pod_of_another_scheduler_counts_but_does_not_wait(state: ClusterState) -> None:
    other = version(pod("o", uid="2"), 1, spec={"scheduler_name": "other"})
    state.index("Pod").put(other)
    assert state.queue.pool_of(other) is None

    state.index("Pod").put(on(other, "n"))

    assert placed_pods(state) == {"default/o": "n"}


def test_a_pod_that_somebody_else_bound_does_not_wait_any_more(state: ClusterState) -> None:
    state.index("Pod").put(A)

    state.index("Pod").put(on(A, "n"))

    assert state.queue.pool_of(A) is None
    assert placed_pods(state) == {"default/a": "n"}


def test_our_own_binding_comes_back(state: ClusterState) -> None:
    state.index("Node").put(node("n"))
    state.index("Pod").put(A)
    assert state.queue.pop() is not None
    state.cache.assume(A, "n")

    state.index("Pod").put(on(A, "n"))

    assert not state.cache.is_assumed(A.uid)
    assert placed_pods(state) == {"default/a": "n"}


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"deletion_timestamp": "2026-01-01T00:00:00Z"}},
        {"metadata": {"labels": {"app": "other"}}},
        {"status": replace(A.status, start_time="2026-01-01T00:00:00Z")},
    ],
    ids=["deleted", "labelled", "started"],
)
def test_a_binding_that_is_seen_with_later_changes_brings_them(
    state: ClusterState, change: dict[str, Any]
) -> None:
    """A list after an interrupted watch shows the binding and what followed as one change."""
    state.index("Node").put(node("n"))
    state.index("Pod").put(A)
    state.cache.assume(A, "n")
    seen = version(on(A, "n"), 3, **change)

    state.index("Pod").put(seen)

    assert not state.cache.is_assumed(A.uid)
    assert placed_pods(state) == {A.key: "n"}
    resident = state.cache.columns.pods.by_uid[A.uid]
    assert resident.terminating == seen.terminating
    assert resident.labels.labels == seen.labels
    assert resident.started == started_at(seen.status.start_time)
    assert state.cache.columns.pods.total == 1


def test_a_finished_pod_is_gone(state: ClusterState) -> None:
    state.index("Pod").put(on(A, "n"))

    done = on(A, "n", 3)
    state.index("Pod").put(replace(done, status=replace(done.status, phase="Succeeded")))

    assert placed_pods(state) == {}
    assert state.pod(A) is None


def test_another_pod_of_the_same_name_replaces_a_deleted_one(state: ClusterState) -> None:
    state.index("Pod").put(on(A, "n"))
    again = version(A, 5, metadata={"uid": "9"})

    state.index("Pod").replace([again])

    assert placed_pods(state) == {}
    assert state.queue.pool_of(again) is Pool.ACTIVE
    assert state.pod(A) is None
    assert state.pod(again) is again


def test_a_new_list_tells_of_everything_that_was_missed(state: ClusterState) -> None:
    gone, stays, bound = (version(pod(name, uid=name), 1) for name in ("gone", "stays", "bound"))
    state.index("Pod").replace([gone, stays, bound])

    came = version(pod("came", uid="came"), 7)
    state.index("Pod").replace([stays, on(bound, "n", 8), came])

    assert state.queue.pool_of(gone) is None
    assert state.queue.pool_of(stays) is Pool.ACTIVE
    assert state.queue.pool_of(came) is Pool.ACTIVE
    assert placed_pods(state) == {"default/bound": "n"}


def test_the_same_version_again_is_no_news(state: ClusterState) -> None:
    heard = []

    class Listener(Observer):
        def pod_seen(self, old: Pod | None, new: Pod | None) -> None:
            heard.append((old, new))

    state.set_listener(Listener())
    state.index("Pod").put(A)
    state.index("Pod").replace([A])

    assert heard == [(None, A)]


def test_observers_are_told_of_what_they_look_at() -> None:
    """Those that look at nothing are not called; those that do are, for every change in order."""
    heard: list[tuple[str, str]] = []

    class Pods(Observer):
        def pod_seen(self, old: Pod | None, new: Pod | None) -> None:
            heard.append(("pod", "added" if old is None else "deleted" if new is None else ""))

    class Objects(Pods):
        def object_seen(self, kind: str, old: Object | None, new: Object | None) -> None:
            heard.append((kind, "added" if old is None else "deleted" if new is None else ""))

    profile, behaviour = PROFILES["v1.37"]
    observers = [Observer(), Pods(), Objects(), Observer()]
    state = ClusterState({"default-scheduler": profile}, behaviour, Clock(), observers)
    state.index("Node").put(node("n"))
    state.index("Pod").put(A)
    state.index("Pod").drop(A)
    state.index("Node").drop(node("n"))

    pods = [("pod", "added")] * 2 + [("pod", "deleted")] * 2
    assert heard == [("Node", "added"), *pods, ("Node", "deleted")]


def test_changes_of_a_pod_that_is_being_bound_do_not_queue_it_again(state: ClusterState) -> None:
    state.index("Node").put(node("n"))
    state.index("Pod").put(A)
    turn = state.queue.pop()
    assert turn is not None
    state.cache.assume(A, "n")
    state.queue.done(turn)

    state.index("Pod").put(version(A, 2, metadata={"labels": {"x": "y"}}))

    assert state.queue.pool_of(A) is None
    assert state.cache.is_assumed(A.uid)


def test_a_pod_that_is_deleted_while_it_is_bound_leaves_its_place(state: ClusterState) -> None:
    state.index("Node").put(node("n"))
    state.index("Pod").put(A)
    turn = state.queue.pop()
    assert turn is not None
    state.cache.assume(A, "n")
    state.queue.done(turn)

    state.index("Pod").put(version(A, 2, metadata={"deletion_timestamp": "2026-01-01T00:00:00Z"}))
    assert placed_pods(state) == {}
    state.index("Pod").drop(A)

    assert state.pod(A) is None
    assert state.queue.pool_of(A) is None


def test_nothing_moves_while_an_extender_is_asked(state: ClusterState) -> None:
    state.freeze()
    state.index("Node").put(node("n"))
    state.index("Pod").put(on(A, "n"))
    assert len(state.cache.columns.nodes.order) == 0

    state.thaw()

    assert placed_pods(state) == {"default/a": "n"}
    assert state.node("n") is not None


def test_other_profiles_keep_the_placed_pods(state: ClusterState) -> None:
    profile, behaviour = PROFILES["v1.37"]
    state.index("Node").replace([node("n1"), node("n2")])
    placed = on(version(pod("p", uid="p"), 1), "n1")
    ours = version(pod("ours", uid="ours"), 1)
    theirs = version(pod("theirs", uid="t"), 1, spec={"scheduler_name": "x"})
    state.index("Pod").replace([placed, A, ours, theirs])
    turn = state.queue.pop()
    assert turn is not None
    assert turn.pod is A
    state.cache.assume(A, "n2")
    state.queue.done(turn)

    state.change_profiles({"x": dataclasses.replace(profile, scheduler_name="x")}, behaviour)

    assert placed_pods(state) == {"default/p": "n1", "default/a": "n2"}
    assert state.cache.is_assumed(A.uid)
    assert state.queue.pool_of(theirs) is Pool.ACTIVE
    assert state.queue.pool_of(ours) is None


def test_a_change_that_raises_after_a_freeze_hides_no_other(
    state: ClusterState, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreported: list[str] = []
    state.on_unreported = unreported.append
    put_node = state.cache.put_node
    bad, good = node("bad"), node("good")

    def put(item: Any) -> None:
        if item.name == "bad":
            raise ValueError("a node like no other")
        put_node(item)

    monkeypatch.setattr(state.cache, "put_node", put)
    state.freeze()
    state.index("Node").put(bad)
    state.index("Pod").put(A)
    state.index("Node").put(good)
    state.thaw()

    assert state.node("good") is not None
    assert state.queue.pool_of(A) is Pool.ACTIVE
    assert unreported == ["Node"]
    assert "default/bad" not in state.index("Node").known

    monkeypatch.undo()
    state.index("Node").replace([bad, good])
    assert state.node("bad") is not None


@pytest.mark.parametrize(("generation", "counts"), [("v1.13", True), ("v1.37", False)])
def test_a_report_without_a_change_counts_in_v1_13_while_no_pod_waits(
    generation: str, *, counts: bool
) -> None:
    """There it is a move request all the same, for the pod that is being tried."""
    profile, behaviour = PROFILES[generation]
    state = ClusterState({"default-scheduler": profile}, behaviour, Clock())
    reports = [node("n"), node("n")]
    for number, each in enumerate(reports):
        metadata = replace(each.metadata, resource_version=str(number))
        reports[number] = replace(each, metadata=metadata)
    state.index("Node").put(reports[0])
    state.index("Pod").put(A)
    assert state.queue.pop() is not None
    before = state.queue.move_request_cycle

    state.index("Node").put(reports[1])

    assert (state.queue.move_request_cycle != before) is counts
