"""PodGroup objects: what is read, what is filled in and what is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.errors import InputError
from podium.objects.completing.defaults import with_defaults
from podium.objects.kinds.pod_group import PodGroup
from podium.objects.reading.decoding import decode
from podium.objects.reading.validation import validate

GANG = {"gang": {"minCount": 2}}


def read(spec: dict[str, Any], version: str = "scheduling.k8s.io/v1beta1") -> PodGroup:

    about = {"apiVersion": version, "kind": "PodGroup", "metadata": {"name": "g"}}
    objects = decode(msgspec.json.encode({**about, "spec": spec}))
    validate(objects)
    [found] = with_defaults(objects).of("PodGroup")
    return found  # type: ignore[no-any-return]


def test_a_gang_needs_its_minimum_and_is_evicted_pod_by_pod() -> None:
    found = read({"schedulingPolicy": GANG})

    assert (found.is_gang, found.min_count, found.priority) == (True, 2, 0)
    assert found.spec.disruption_mode is not None
    assert (found.evicted_together, found.spec.disruption_mode.single is None) == (False, False)


def test_a_basic_group_needs_one_pod() -> None:
    found = read({"schedulingPolicy": {"basic": {}}, "disruptionMode": {"all": {}}})

    assert (found.is_gang, found.min_count, found.evicted_together) == (False, 1, True)


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ({}, "has neither basic nor gang"),
        ({"schedulingPolicy": {**GANG, "basic": {}}}, "has both basic and gang"),
        ({"schedulingPolicy": {"gang": {"minCount": 0}}}, "0 is less than one"),
        ({"schedulingPolicy": GANG, "disruptionMode": {}}, "has neither single nor all"),
        (
            {
                "schedulingPolicy": GANG,
                "schedulingConstraints": {"topology": [{"key": "zone"}]},
            },
            "TopologyAwareWorkloadScheduling, which is not supported",
        ),
        (
            {"schedulingPolicy": GANG, "parentCompositePodGroupName": "root"},
            "CompositePodGroup, which is not supported",
        ),
    ],
)
def test_what_is_refused(spec: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError, match=what):
        read(spec)


def test_the_version_of_an_older_release_is_refused() -> None:
    with pytest.raises(InputError, match=r"v1alpha2 is not the version .* that is read"):
        read({"schedulingPolicy": GANG}, "scheduling.k8s.io/v1alpha2")
