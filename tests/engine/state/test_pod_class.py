"""Classes of pods: a pod that is recognized without encoding it gets the class of its key."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

import podium
from builders import pod
from podium.engine.state.pod_class import class_key, class_parts
from podium.objects.kinds.meta import OwnerReference
from podium.objects.kinds.pod import Pod, PodCondition, PodSpec
from podium.objects.reading.decoding import decode
from random_clusters_v1_36 import ClusterV136, clusters_v1_36

OWNER = OwnerReference("ReplicaSet", "web", "r1", "apps/v1", controller=True)
V1_36 = podium.default_profile("v1.36")
#: A pod with what random ones do not have; the kubelet has given it less than it requests.
RARE = decode(
    b"""{"kind": "Pod", "metadata": {"name": "rare"},
    "spec": {"preemptionPolicy": "Never", "hostUsers": false, "hostNetwork": true,
      "resources": {"requests": {"cpu": "3"}}, "resourceClaims": [{"name": "gpu"}],
      "initContainers": [{"name": "first", "resources": {"requests": {"cpu": "2"}}}],
      "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    "status": {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]}}"""
).pods[0]

#: The same pod, which waits for a resize that its node cannot grant.
PENDING = replace(
    RARE,
    status=replace(
        RARE.status, conditions=[PodCondition("PodResizePending", "True", "Infeasible")]
    ),
)


def owned(each: Pod, owner: OwnerReference = OWNER) -> Pod:
    return replace(each, metadata=replace(each.metadata, owner_references=[owner]))


def mixed(one: Pod, other: Pod) -> Iterator[Pod]:
    """The pod with one part of another: every field of the specification, labels, status."""
    for name in PodSpec.__struct_fields__:
        spec = replace(one.spec, **{name: getattr(other.spec, name)})
        yield replace(one, spec=spec)
    for name in ("labels", "namespace"):
        metadata = replace(one.metadata, **{name: getattr(other.metadata, name)})
        yield replace(one, metadata=metadata)
    yield from (one, replace(one, status=other.status), one)


@settings(max_examples=80, deadline=None)
@given(clusters_v1_36())
def test_a_pod_of_a_known_controller_gets_the_class_of_its_key(cluster: ClusterV136) -> None:
    index = podium.Simulation(V1_36).cache.columns.pods
    wanted = owned(cluster.wanted)
    for other in (*cluster.pods, RARE, PENDING):
        for each in (*mixed(wanted, other), *mixed(owned(other), wanted)):
            changed = owned(each)
            try:
                found = index.class_of(changed)
            except ValueError:
                continue  # a quantity that cannot be read
            assert found is index.classes[class_key(changed, "")]


@settings(max_examples=80, deadline=None)
@given(clusters_v1_36())
def test_a_pod_without_a_controller_gets_the_class_of_its_key(cluster: ClusterV136) -> None:
    index = podium.Simulation(V1_36).cache.columns.pods
    for other in (*cluster.pods, RARE, PENDING):
        for each in (*mixed(cluster.wanted, other), *mixed(other, cluster.wanted), owned(other)):
            try:
                found = index.class_of(each)
            except ValueError:
                continue  # a quantity that cannot be read
            assert found is index.classes[class_key(each, "")]


def test_pods_of_one_template_are_encoded_once() -> None:
    text = (
        '{"kind":"Pod","metadata":{"name":"%s"},"spec":{"nodeName":"%s","containers":[{"name":"c"}],'
        '"volumes":[{"name":"kube-api-access-%s"}]}}'
    )
    both = [owned(decode((text % (name, name, name)).encode()).pods[0]) for name in "ab"]

    assert class_parts(both[0]) == class_parts(both[1])
    assert class_key(both[0], "") == class_key(both[1], "")


def test_pods_with_the_same_reported_resources_are_encoded_once() -> None:
    other = replace(RARE, metadata=replace(RARE.metadata, name="other"))

    assert class_parts(RARE) == class_parts(other)
    assert class_parts(RARE) != class_parts(replace(RARE, status=PENDING.status))
    assert class_key(RARE, "") != class_key(replace(RARE, status=PENDING.status), "")


@pytest.mark.parametrize(
    "owner",
    [
        OwnerReference("ReplicaSet", "other", "r1", "apps/v1", controller=True),
        OwnerReference("ReplicaSet", "web", "r2", "apps/v1", controller=True),
    ],
    ids=["another name", "another uid"],
)
def test_another_controller_is_another_class(owner: OwnerReference) -> None:
    index = podium.Simulation(V1_36).cache.columns.pods
    one = index.class_of(owned(pod("a")))

    assert index.class_of(owned(pod("b"))) is one
    assert index.class_of(owned(pod("c"), owner)) is not one
