"""Pods that are kept as text: those of one controller share what is equal, and nothing else."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from msgspec.structs import replace

from podium.lab.store.imported_pods import SharedParts, head_of
from podium.objects.kinds.meta import OwnerReference
from podium.objects.kinds.pod import Pod
from podium.objects.kinds.registry import KINDS
from random_clusters_v1_36 import ClusterV136, clusters_v1_36

OWNERS = [OwnerReference("ReplicaSet", "web", "r1", "apps/v1", controller=True)]


def owned(pod: Pod, node: str) -> Pod:
    metadata = replace(pod.metadata, owner_references=OWNERS, name=f"on-{node}")
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=node))


@settings(max_examples=60, deadline=None)
@given(clusters_v1_36())
def test_a_pod_with_shared_parts_is_equal(cluster: ClusterV136) -> None:
    shared = SharedParts()
    for each in (cluster.wanted, *cluster.pods):
        for node in ("a", "b"):
            read = KINDS["Pod"].decoder.decode(msgspec.json.encode(owned(each, node)))
            head = head_of(msgspec.to_builtins(read))
            assert shared.pod(read) == read
            assert shared.head(head) == head


def test_pods_of_one_template_share_their_containers() -> None:
    text = b'{"metadata":{"name":"%b","labels":{"a":"b"},"ownerReferences":[{"uid":"r"}]},'
    text += b'"spec":{"nodeName":"%b","containers":[{"name":"c"}]}}'
    shared = SharedParts()

    one, other = (shared.pod(KINDS["Pod"].decoder.decode(text % (n, n))) for n in (b"p", b"q"))

    assert one.spec.containers is other.spec.containers
    assert one.metadata.labels is other.metadata.labels
    assert (one.spec.node_name, other.spec.node_name) == ("p", "q")
