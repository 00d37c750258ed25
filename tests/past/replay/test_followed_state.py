"""The state of a scheduler that is followed: no pod is queued before profiles decide."""

from __future__ import annotations

from msgspec.structs import replace

from builders import node, pod
from podium.past.replay.replay import FollowedState
from scheduler.fakes import PROFILES

PROFILE, BEHAVIOUR = PROFILES["v1.37"]
OWN = {PROFILE.scheduler_name: PROFILE}


def state() -> FollowedState:
    found = FollowedState(OWN, BEHAVIOUR, lambda: 0.0)
    found.index("Node").put(node("n", cpu=4))
    return found


def test_pending_pods_are_queued_once_other_profiles_decide() -> None:
    followed = state()
    for name in ("waits", "placed"):
        followed.index("Pod").put(pod(name, uid=name))
    placed = followed.pod_named("default/placed")
    assert placed is not None
    followed.cache.assume(placed, "n")
    before = sum(followed.queue.counts().values())
    followed.change_profiles(OWN, BEHAVIOUR)
    followed.index("Pod").put(pod("late", uid="late"))
    taken = [followed.queue.pop(), followed.queue.pop(), followed.queue.pop()]

    assert before == 0
    assert [each and each.pod.name for each in taken] == ["waits", "late", None]


def test_an_assumed_pod_that_is_being_deleted_counts_no_more() -> None:
    followed = state()
    waiting = pod("p", uid="p")
    followed.index("Pod").put(waiting)
    followed.cache.assume(waiting, "n")
    metadata = replace(
        waiting.metadata, resource_version="2", deletion_timestamp="2026-01-01T00:00:00Z"
    )
    followed.index("Pod").put(replace(waiting, metadata=metadata))

    assert not followed.cache.is_assumed("p")
    assert followed.cache.columns.pods.total == 0
