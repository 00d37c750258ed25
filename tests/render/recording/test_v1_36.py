"""Decisions in the format of recordings of v1.36."""

from __future__ import annotations

import msgspec

from builders import node, objects, pod
from builders_v1_36 import DEFAULT, configured, device_slice, spec_with
from podium.cluster.simulation import Simulation
from podium.objects.kinds.devices import DeviceClass, ResourceClaim
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import PodResourceClaim
from podium.render.recording.v1_36 import step


def test_the_texts_of_an_error_are_sorted() -> None:
    exactly = {"deviceClassName": "gpu", "allocationMode": "All"}
    claim = msgspec.convert(
        {
            "metadata": {"name": "mine", "namespace": "default", "uid": "1"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
        },
        ResourceClaim,
    )
    items: list[Object] = [claim, msgspec.convert({"metadata": {"name": "gpu"}}, DeviceClass)]
    for name in ("b", "c", "a"):
        items += [node(name), device_slice(name, {"name": "a"}, slices=2)]
    run = Simulation(DEFAULT, listed_order=True)
    run.load(objects(*items))
    claims = [PodResourceClaim(name="c", resource_claim_name="mine")]

    [made] = run.run([spec_with(pod("p"), resource_claims=claims)], recording=True)

    assert list(made.decision.node_errors) == ["b", "c", "a"]
    assert step(made)["error"]["reasons"] == [
        'running "DynamicResources" filter plugin: claim default/mine, request r: asks for all '
        f"devices, but resource pool gpu.example.com/{name} is currently being updated"
        for name in "abc"
    ]


def test_an_error_of_a_score_is_an_error_of_the_attempt() -> None:
    # The score of a plugin reads what its preScore wrote, and nothing wrote it here.
    [profile] = configured({"plugins": {"preScore": {"disabled": [{"name": "InterPodAffinity"}]}}})
    run = Simulation(profile, listed_order=True)
    run.load(objects(node("a"), node("b")))

    [made] = run.run([pod("p")], recording=True)

    text = (
        'running Score plugins: plugin "InterPodAffinity" failed with: '
        'failed to read "PreScoreInterPodAffinity" from cycleState: not found'
    )
    assert step(made) == {
        "pod": "default/p",
        "error": {
            "plugin": "",
            "code": "Error",
            "reasons": [text],
        },
        "feasible": ["a", "b"],
    }
