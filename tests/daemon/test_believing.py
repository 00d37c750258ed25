"""From what the API server says to what is believed: objects come, change and go."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from builders import node, pod
from podium.cluster.queue.queued_pod import Pool
from podium.daemon.behaviour import CLASSIC, CURRENT
from podium.daemon.cluster_state import Beliefs
from podium.daemon.observers import Observer
from podium.objects.kinds.pod import Pod
from podium.profiles.config.build import default_config, from_config
from podium.profiles.policy.build import Options, from_provider

PROFILES = {
    "v1.13": (from_provider("DefaultProvider", Options()), CLASSIC),
    "v1.36": (from_config(default_config(), Options())[0], CURRENT),
}


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=sorted(PROFILES))
def beliefs(request: pytest.FixtureRequest) -> Beliefs:
    profile, manners = PROFILES[request.param]
    return Beliefs({"default-scheduler": profile}, manners, Clock())


def version(made: Pod, number: int, **changes: Any) -> Pod:
    """A newer version of a pod."""
    metadata = replace(made.metadata, resource_version=str(number), **changes.pop("metadata", {}))
    spec = replace(made.spec, **changes.pop("spec", {}))
    return replace(made, metadata=metadata, spec=spec, **changes)


def on(made: Pod, name: str, number: int = 2) -> Pod:
    return version(made, number, spec={"node_name": name})


def there(beliefs: Beliefs) -> dict[str, str]:
    """Which pod is believed to be where."""
    columns = beliefs.cache.columns
    rows = enumerate(columns.residents)
    return {each.key: columns.names[row] for row, residents in rows for each in residents}


A = version(pod("a", uid="1"), 1)


def test_a_pod_without_a_node_waits(beliefs: Beliefs) -> None:
    beliefs.sink("Pod").put(A)

    assert beliefs.queue.pool_of(A) is Pool.ACTIVE
    assert beliefs.pod(A) is A


def test_a_pod_of_another_scheduler_counts_but_does_not_wait(beliefs: Beliefs) -> None:
    other = version(pod("o", uid="2"), 1, spec={"scheduler_name": "other"})
    beliefs.sink("Pod").put(other)
    assert beliefs.queue.pool_of(other) is None

    beliefs.sink("Pod").put(on(other, "n"))

    assert there(beliefs) == {"default/o": "n"}


def test_a_pod_that_somebody_else_bound_does_not_wait_any_more(beliefs: Beliefs) -> None:
    beliefs.sink("Pod").put(A)

    beliefs.sink("Pod").put(on(A, "n"))

    assert beliefs.queue.pool_of(A) is None
    assert there(beliefs) == {"default/a": "n"}


def test_our_own_binding_comes_back(beliefs: Beliefs) -> None:
    beliefs.sink("Node").put(node("n"))
    beliefs.sink("Pod").put(A)
    assert beliefs.queue.pop() is not None
    beliefs.cache.assume(A, "n")

    beliefs.sink("Pod").put(on(A, "n"))

    assert not beliefs.cache.is_assumed(A.uid)
    assert there(beliefs) == {"default/a": "n"}


def test_a_finished_pod_is_gone(beliefs: Beliefs) -> None:
    beliefs.sink("Pod").put(on(A, "n"))

    done = on(A, "n", 3)
    beliefs.sink("Pod").put(replace(done, status=replace(done.status, phase="Succeeded")))

    assert there(beliefs) == {}
    assert beliefs.pod(A) is None


def test_another_pod_of_the_same_name_takes_the_place_of_one_that_is_gone(beliefs: Beliefs) -> None:
    beliefs.sink("Pod").put(on(A, "n"))
    again = version(A, 5, metadata={"uid": "9"})

    beliefs.sink("Pod").replace([again])

    assert there(beliefs) == {}
    assert beliefs.queue.pool_of(again) is Pool.ACTIVE
    assert beliefs.pod(A) is None
    assert beliefs.pod(again) is again


def test_a_new_list_tells_of_everything_that_was_missed(beliefs: Beliefs) -> None:
    gone, stays, bound = (version(pod(name, uid=name), 1) for name in ("gone", "stays", "bound"))
    beliefs.sink("Pod").replace([gone, stays, bound])

    came = version(pod("came", uid="came"), 7)
    beliefs.sink("Pod").replace([stays, on(bound, "n", 8), came])

    assert beliefs.queue.pool_of(gone) is None
    assert beliefs.queue.pool_of(stays) is Pool.ACTIVE
    assert beliefs.queue.pool_of(came) is Pool.ACTIVE
    assert there(beliefs) == {"default/bound": "n"}


def test_the_same_version_again_is_no_news(beliefs: Beliefs) -> None:
    heard = []

    class Listener(Observer):
        def pod_seen(self, old: Pod | None, new: Pod | None) -> None:
            heard.append((old, new))

    beliefs.listen(Listener())
    beliefs.sink("Pod").put(A)
    beliefs.sink("Pod").replace([A])

    assert heard == [(None, A)]


def test_changes_of_a_pod_that_is_being_bound_do_not_queue_it_again(beliefs: Beliefs) -> None:
    beliefs.sink("Node").put(node("n"))
    beliefs.sink("Pod").put(A)
    turn = beliefs.queue.pop()
    assert turn is not None
    beliefs.cache.assume(A, "n")
    beliefs.queue.done(turn)

    beliefs.sink("Pod").put(version(A, 2, metadata={"labels": {"x": "y"}}))

    assert beliefs.queue.pool_of(A) is None
    assert beliefs.cache.is_assumed(A.uid)


def test_a_pod_that_is_deleted_while_it_is_bound_leaves_its_place(beliefs: Beliefs) -> None:
    beliefs.sink("Node").put(node("n"))
    beliefs.sink("Pod").put(A)
    turn = beliefs.queue.pop()
    assert turn is not None
    beliefs.cache.assume(A, "n")
    beliefs.queue.done(turn)

    beliefs.sink("Pod").put(version(A, 2, metadata={"deletion_timestamp": "2026-01-01T00:00:00Z"}))
    assert there(beliefs) == {}
    beliefs.sink("Pod").drop(A)

    assert beliefs.pod(A) is None
    assert beliefs.queue.pool_of(A) is None


def test_nothing_moves_while_an_extender_is_asked(beliefs: Beliefs) -> None:
    beliefs.hold()
    beliefs.sink("Node").put(node("n"))
    beliefs.sink("Pod").put(on(A, "n"))
    assert len(beliefs.cache.columns.order) == 0

    beliefs.release()

    assert there(beliefs) == {"default/a": "n"}
    assert beliefs.node("n") is not None


def test_other_rules_believe_the_same(beliefs: Beliefs) -> None:
    profile, manners = PROFILES["v1.36"]
    beliefs.sink("Node").replace([node("n1"), node("n2")])
    placed = on(version(pod("p", uid="p"), 1), "n1")
    ours = version(pod("ours", uid="ours"), 1)
    theirs = version(pod("theirs", uid="t"), 1, spec={"scheduler_name": "x"})
    beliefs.sink("Pod").replace([placed, A, ours, theirs])
    turn = beliefs.queue.pop()
    assert turn is not None
    assert turn.pod is A
    beliefs.cache.assume(A, "n2")
    beliefs.queue.done(turn)

    beliefs.change_profiles({"x": dataclasses.replace(profile, scheduler_name="x")}, manners)

    assert there(beliefs) == {"default/p": "n1", "default/a": "n2"}
    assert beliefs.cache.is_assumed(A.uid)
    assert beliefs.queue.pool_of(theirs) is Pool.ACTIVE
    assert beliefs.queue.pool_of(ours) is None
