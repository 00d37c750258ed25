"""What is said beside an answer: other schedulers, the cluster's own condition, what is absent."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

import builders as b
import podium
from podium.library.pod_notes import PodNotes
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import Pod, PodCondition

SAID = "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available."
AT = "2026-01-01T00:00:00Z"
LATER = "2026-01-01T00:05:00Z"


def notes(*items: Object) -> list[str]:
    return podium.explain(b.objects(*items), "p", podium.default_profile()).notes


def waiting(message: str = SAID, **options: Any) -> Pod:
    found = b.pod("p", **options)
    condition = PodCondition("PodScheduled", "False", "Unschedulable", None, AT, message)
    return replace(found, status=replace(found.status, conditions=[condition]))


def created(item: Any, at: str) -> Any:
    return replace(item, metadata=replace(item.metadata, creation_timestamp=at))


def test_a_condition_that_says_the_same_is_not_mentioned() -> None:
    assert notes(b.node("n1", cpu="1"), waiting(requests={"cpu": "2"})) == []


def test_a_condition_that_says_otherwise_is_told_with_what_changed() -> None:
    found = notes(
        created(b.node("n1", cpu="1"), AT),
        created(b.node("n2", cpu="4"), LATER),
        waiting(requests={"cpu": "2"}),
    )

    assert found == [
        f"its condition in the cluster (since {AT}) says otherwise: {SAID}",
        "since then: the number of nodes went from 1 to 2; 1 node was added (n2)",
    ]


def test_other_reasons_count_and_nothing_visible_is_said_to_be_so() -> None:
    [says, since] = notes(b.node("n1", cpu="1"), waiting("0/1 nodes are available: x."))

    assert says.endswith("says otherwise: 0/1 nodes are available: x.")
    assert since.startswith("since then: the input shows no change;")


def test_pods_that_went_and_came_are_named() -> None:
    gone = b.pod("gone", node="n1", requests={"cpu": "2"})
    gone = replace(gone, metadata=replace(gone.metadata, deletion_timestamp=LATER))
    came = b.pod("came", node="n1")
    bound = PodCondition("PodScheduled", "True", "", None, LATER)
    came = replace(came, status=replace(came.status, conditions=[bound]))

    found = notes(b.node("n1", cpu="4"), gone, came, waiting("0/1 nodes are available: x."))

    assert (
        found[1] == "since then: 1 pod was deleted (default/gone); 1 pod was bound (default/came)"
    )


def test_another_scheduler_is_named_and_its_condition_is_its_own() -> None:
    found = b.pod("p")
    other = replace(found, spec=replace(found.spec, scheduler_name="volcano"))

    [told] = notes(b.node("n1"), other)
    assert told == (
        "it belongs to the scheduler volcano, not to default-scheduler: that one decides, by rules "
        "of its own"
    )
    about = PodNotes(b.objects(b.node("n1"), other), ["default-scheduler"])
    assert about.elsewhere() == [
        "1 pending pod belongs to the scheduler volcano and is left to it: default/p"
    ]


def test_objects_that_a_dump_lacks_are_unknown() -> None:
    near = replace(b.term({"app": "x"}, "zone"), namespace_selector=b.selector({"team": "a"}))
    pod = b.pod("p", uid="u", volumes=[b.claim_volume("data"), b.claim_volume("new")], anti=[near])

    [told] = notes(
        b.node("n1"), pod, b.claim("new", storage_class="fast"), b.pod("r", uid="r", node="n1")
    )

    assert told == (
        "it depends on PersistentVolumeClaim data, StorageClass fast, any Namespace, not in the "
        "input: that is unknown, not absent; `kubectl get persistentvolumeclaims,persistentvolumes,"
        "storageclasses,namespaces -A -o yaml` adds it"
    )


def test_manifests_lack_nothing() -> None:
    found = b.node("n1")
    written = replace(found, metadata=replace(found.metadata, uid=""))

    assert notes(written, b.pod("p", volumes=[b.claim_volume("data")])) == []
