"""Pods that stay text until they are needed: the same as pods that are decoded at once."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from manifests import listed
from podium.engine.state.pod_class import class_key
from podium.errors import InputError
from podium.lab.contents.documents import Document
from podium.objects.kinds.registry import KINDS
from podium.virtual_cluster.cluster import SimulatedCluster
from podium.what_if.plan.changes import parse_change
from podium.what_if.plan.inputs import cluster_documents
from podium.what_if.plan.plan import plan
from what_if.clusters import chosen, node, owned
from what_if.random_clusters import random_case

SEEDS = range(3)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_is_the_same_for_text_and_for_dictionaries(seed: int, tmp_path: Path) -> None:
    case = random_case(seed, tmp_path)
    texts = cluster_documents([str(case.file)]).documents
    assert any(each.text is not None for each in texts if each.kind == "Pod")
    read = [Document("", each.item) for each in cluster_documents([str(case.file)]).documents]
    wanted = [parse_change(case.flag[0].removeprefix("--"), case.flag[1])]
    assert msgspec.to_builtins(plan(texts, wanted, chosen())) == msgspec.to_builtins(
        plan(read, wanted, chosen())
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_a_completed_text_is_what_would_have_been_stored(seed: int, tmp_path: Path) -> None:
    file = str(random_case(seed, tmp_path).file)
    with SimulatedCluster(seed=seed) as lazy, SimulatedCluster(seed=seed) as eager:
        lazy.load(cluster_documents([file]).documents)
        eager.load(Document("", each.item) for each in cluster_documents([file]).documents)
        assert without_versions(lazy) == without_versions(eager)


def without_versions(cluster: SimulatedCluster) -> list[object]:
    found: list[object] = []
    for record in cluster.registry.store.table("pods").ordered():
        item = record.object()
        assert item["metadata"].pop("resourceVersion") == str(record.version)
        found.append((record.key, record.labels, record.fields, item))
    return found


def running(name: str, **container: object) -> dict[str, object]:
    made = owned("Job", "sum", name, "batch/v1", nodeName="a")
    made["spec"]["containers"][0] |= container
    made["metadata"]["resourceVersion"] = "3"
    return made


def loaded(folder: Path, cluster: SimulatedCluster, *pods: dict[str, object]) -> None:
    file = folder / "cluster.json"
    file.write_text(json.dumps(listed([node("a"), *pods])))
    cluster.load(cluster_documents([str(file)]).documents)


def test_a_scheduler_sees_the_defaults_of_a_text(tmp_path: Path) -> None:
    limits = {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}
    ports = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
    with SimulatedCluster() as cluster:
        loaded(
            tmp_path, cluster, running("plain"), running("limits", **limits), running("p", **ports)
        )
        for record in cluster.registry.store.table("pods").ordered():
            seen = record.pod()  # type: ignore[attr-defined]
            assert seen.metadata.resource_version != "3"
            assert class_key(seen, "") == class_key(KINDS["Pod"].decoder.decode(record.data), "")


def test_a_pod_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    with (
        SimulatedCluster() as cluster,
        pytest.raises(InputError, match=r"Pod default/p: is there twice"),
    ):
        loaded(tmp_path, cluster, running("p"), running("p"))


def test_a_name_that_is_no_name_is_refused(tmp_path: Path) -> None:
    with SimulatedCluster() as cluster, pytest.raises(InputError, match=r"metadata\.name"):
        loaded(tmp_path, cluster, running("No_Name"))


def test_a_wrong_type_that_scheduling_reads_is_refused_at_once(tmp_path: Path) -> None:
    with SimulatedCluster() as cluster, pytest.raises(InputError, match="cannot unmarshal"):
        loaded(tmp_path, cluster, running("p", resources={"requests": 5}))


def test_another_wrong_type_is_refused_when_the_pod_is_read_whole(tmp_path: Path) -> None:
    with SimulatedCluster() as cluster:
        loaded(tmp_path, cluster, running("p", command=5))
        with pytest.raises(InputError, match=r"cluster\.json: Pod default/p: .*cannot unmarshal"):
            cluster.registry.get("Pod", "p", "default")
