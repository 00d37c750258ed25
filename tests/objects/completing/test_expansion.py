"""Workloads become the pods that their controllers would make."""

import pytest

from podium.errors import InputError
from podium.objects.completing.defaults import with_defaults
from podium.objects.completing.expansion import expand
from podium.objects.kinds.pod import Toleration
from podium.objects.reading.collection import Objects
from podium.objects.reading.decoding import decode

TEMPLATE = (
    "template: {metadata: {labels: {app: web}, annotations: {n: x}}, spec: {containers: "
    "[{name: c, image: i, env: [{name: A}], resources: {limits: {cpu: 1}}}]}}"
)


def expanded(*texts: str) -> Objects:
    objects = Objects()
    for text in texts:
        decode(text, "f", objects)
    return expand(with_defaults(objects))


def workload(kind: str, spec: str, metadata: str = "name: web") -> str:
    return f"{{kind: {kind}, metadata: {{{metadata}}}, spec: {{{spec} {TEMPLATE}}}}}"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        pytest.param(workload("ReplicaSet", ""), 1, id="one replica unless told otherwise"),
        pytest.param(workload("ReplicaSet", "replicas: 0,"), 0, id="no replicas"),
        pytest.param(workload("ReplicaSet", "replicas: 3,"), 3, id="a replica set"),
        pytest.param(workload("ReplicationController", "replicas: 3,"), 3, id="a controller"),
        pytest.param(workload("Deployment", "replicas: 3,"), 3, id="a deployment"),
        pytest.param(workload("StatefulSet", "replicas: 3,"), 3, id="a stateful set"),
        pytest.param(workload("Job", ""), 1, id="a job"),
        pytest.param(workload("Job", "parallelism: 4,"), 4, id="a job with a work queue"),
        pytest.param(workload("Job", "parallelism: 4, completions: 3,"), 3, id="few completions"),
        pytest.param(workload("Job", "parallelism: 2, completions: 3,"), 2, id="few at a time"),
        pytest.param(workload("Job", "parallelism: 2, suspend: true,"), 0, id="a suspended job"),
        pytest.param(workload("DaemonSet", ""), 0, id="a daemon set without nodes"),
        pytest.param(
            workload("ReplicaSet", "replicas: 3,", "name: web, uid: u"), 0, id="from a cluster"
        ),
        pytest.param("{kind: ReplicaSet, metadata: {name: web}}", 1, id="without a template"),
    ],
)
def test_how_many_pods(text: str, count: int) -> None:
    assert len(expanded(text).pods) == count


@pytest.mark.parametrize(
    ("kind", "version"),
    [("ReplicaSet", "apps/v1"), ("ReplicationController", "v1"), ("Job", "batch/v1"),
     ("StatefulSet", "apps/v1")],
)  # fmt: skip
def test_pods_know_their_owner(kind: str, version: str) -> None:
    objects = expanded(workload(kind, "", "name: web, namespace: shop"))

    [pod], [owner] = objects.pods, objects.of(kind)
    controller = pod.metadata.controller()
    assert controller
    assert (controller.kind, controller.name, controller.api_version) == (kind, "web", version)
    assert controller.uid == owner.metadata.uid != ""
    assert pod.namespace == "shop"
    assert pod.labels["app"] == "web"
    assert pod.metadata.annotations == {"n": "x"}
    assert pod.spec.containers
    assert pod.spec.containers[0].resources
    assert pod.spec.containers[0].resources.requests == {"cpu": 1}


def test_names_are_the_same_every_time() -> None:
    text = (
        "["
        + ", ".join(workload(kind, "replicas: 2,") for kind in ("ReplicaSet", "StatefulSet"))
        + "]"
    )

    one, other = expanded(text), expanded(text)

    assert [pod.name for pod in one.pods] == [pod.name for pod in other.pods]
    assert len({pod.key for pod in one.pods}) == 4
    assert [pod.name for pod in one.pods[2:]] == ["web-0", "web-1"]


def test_a_deployment_makes_a_replica_set() -> None:
    objects = expanded(workload("Deployment", "replicas: 2, selector: {matchLabels: {app: web}},"))

    [replica_set] = objects.of("ReplicaSet")
    digest = replica_set.labels["pod-template-hash"]
    assert replica_set.name == f"web-{digest}"
    assert replica_set.spec.selector
    assert replica_set.spec.selector.match_labels == {"app": "web", "pod-template-hash": digest}
    assert [pod.name for pod in objects.pods] == [f"web-{digest}-0", f"web-{digest}-1"]
    owner, above = objects.pods[0].metadata.controller(), replica_set.metadata.controller()
    assert owner
    assert above
    assert (owner.kind, owner.uid) == ("ReplicaSet", replica_set.metadata.uid)
    assert (above.kind, above.uid) == ("Deployment", objects.of("Deployment")[0].metadata.uid)


def test_another_template_has_another_hash() -> None:
    [one] = expanded(workload("Deployment", "")).of("ReplicaSet")
    [other] = expanded(workload("Deployment", "").replace("image: i", "image: j")).of("ReplicaSet")

    assert one.name != other.name


def test_a_deployment_whose_replica_set_is_there_makes_none() -> None:
    owner = "ownerReferences: [{kind: Deployment, name: web, controller: true}]"
    replica_set = workload("ReplicaSet", "replicas: 0,", f"name: web-1, uid: u, {owner}")

    assert expanded(f"[{workload('Deployment', '')}, {replica_set}]").pods == []


def test_a_stateful_set_gets_ordinals_and_claims() -> None:
    objects = expanded(
        """
        - {kind: PersistentVolumeClaim, metadata: {name: data-db-5, labels: {kept: "yes"}}}
        - kind: StorageClass
          metadata: {name: fast, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
        - kind: StatefulSet
          metadata: {name: db}
          spec:
            replicas: 2
            ordinals: {start: 5}
            selector: {matchLabels: {app: db}}
            template: {spec: {volumes: [{name: data}, {name: tmp, emptyDir: {}}]}}
            volumeClaimTemplates:
            - {metadata: {name: data}, spec: {resources: {requests: {storage: 1Gi}}}}
        """
    )

    assert [pod.name for pod in objects.pods] == ["db-5", "db-6"]
    assert objects.pods[1].labels == {"statefulset.kubernetes.io/pod-name": "db-6"}
    volumes = objects.pods[1].spec.volumes or []
    assert [volume.name for volume in volumes] == ["tmp", "data"]
    assert volumes[1].persistent_volume_claim
    assert volumes[1].persistent_volume_claim.claim_name == "data-db-6"
    kept, made = objects.of("PersistentVolumeClaim")
    assert kept.labels == {"kept": "yes"}
    assert (made.name, made.labels) == ("data-db-6", {"app": "db"})
    assert made.spec.storage_class_name == "fast"
    assert objects.manifest(objects.pods[0])["spec"]["volumes"] == [
        {"name": "tmp", "emptyDir": {}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-5"}},
    ]


NODES = """
- {kind: Node, metadata: {name: plain}}
- {kind: Node, metadata: {name: gpu, labels: {kind: gpu}}}
- {kind: Node, metadata: {name: tainted}, spec: {taints: [{key: x, effect: NoSchedule}]}}
- {kind: Node, metadata: {name: soft}, spec: {taints: [{key: x, effect: PreferNoSchedule}]}}
- {kind: Node, metadata: {name: cordoned}, spec: {unschedulable: true, taints:
    [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]}}
- {kind: Node, metadata: {name: offline}, spec: {taints:
    [{key: node.kubernetes.io/network-unavailable, effect: NoSchedule}]}}
"""


@pytest.mark.parametrize(
    ("spec", "nodes"),
    [
        pytest.param("{}", ["plain", "gpu", "soft", "cordoned"], id="every node it tolerates"),
        pytest.param("{nodeSelector: {kind: gpu}}", ["gpu"], id="by node selector"),
        pytest.param("{nodeName: soft}", ["soft"], id="by name"),
        pytest.param(
            "{hostNetwork: true}",
            ["plain", "gpu", "soft", "cordoned", "offline"],
            id="on the host's network it does without another",
        ),
        pytest.param(
            "{tolerations: [{operator: Exists}]}",
            ["plain", "gpu", "tainted", "soft", "cordoned", "offline"],
            id="everywhere",
        ),
        pytest.param(
            "{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
            "{nodeSelectorTerms: [{matchExpressions: [{key: kind, operator: DoesNotExist}]}]}}}}",
            ["plain", "soft", "cordoned"],
            id="by affinity",
        ),
    ],
)
def test_a_daemon_set_has_a_pod_for_each_node_it_wants(spec: str, nodes: list[str]) -> None:
    objects = expanded(
        NODES, f"{{kind: DaemonSet, metadata: {{name: d}}, spec: {{template: {{spec: {spec}}}}}}}"
    )

    targets = []
    for pod in objects.pods:
        assert pod.spec.affinity
        assert pod.spec.affinity.node_affinity
        assert pod.spec.affinity.node_affinity.required
        [term] = pod.spec.affinity.node_affinity.required.node_selector_terms or []
        [field] = term.match_fields or []
        assert (field.key, field.operator, term.match_expressions) == ("metadata.name", "In", None)
        targets += field.values or []
    assert targets == nodes


def test_daemons_tolerate_what_their_controller_adds() -> None:
    mine = "{key: x, operator: Exists, tolerationSeconds: 5}"
    objects = expanded(
        "{kind: Node, metadata: {name: n}}",
        "{kind: DaemonSet, metadata: {name: d}, "
        f"spec: {{template: {{spec: {{tolerations: [{mine}]}}}}}}}}",
    )

    [pod] = objects.pods
    added = [
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    ]
    assert pod.spec.tolerations == [
        Toleration("x", "Exists"),
        *(Toleration(f"node.kubernetes.io/{key}", "Exists", "", effect) for key, effect in added),
    ]
    written = objects.manifest(pod)["spec"]["tolerations"]
    assert written[0] == {"key": "x", "operator": "Exists", "tolerationSeconds": 5}
    assert len(written) == 6


def test_pods_that_exist_are_not_made_again() -> None:
    text = workload("ReplicaSet", "replicas: 3,")
    first, second, _ = expanded(text).pods
    owned = "ownerReferences: [{kind: ReplicaSet, name: web, controller: true}]"
    existing = (
        f"[{{kind: Pod, metadata: {{name: {second.name}, {owned}}}}},"
        f" {{kind: Pod, metadata: {{name: other, {owned}}}}},"
        f" {{kind: Pod, metadata: {{name: done, {owned}}}, status: {{phase: Failed}}}}]"
    )

    objects = expanded(existing, text)

    assert [pod.name for pod in objects.pods] == [second.name, "other", "done", first.name]


def test_daemons_that_exist_are_not_made_again() -> None:
    daemon = "{kind: DaemonSet, metadata: {name: d}, spec: {template: {spec: {}}}}"
    existing = (
        "{kind: Pod, metadata: {name: a, ownerReferences: "
        "[{kind: DaemonSet, name: d, controller: true}]}, spec: {nodeName: plain}}"
    )

    objects = expanded(NODES, daemon, existing)

    assert len(objects.pods) == 4
    assert len(expanded(NODES, daemon).pods) == 4


def test_whole_pods_can_be_written_back() -> None:
    objects = expanded(workload("Deployment", ""))

    [pod] = objects.pods
    written = objects.manifest(pod)
    assert written["kind"] == "Pod"
    assert written["metadata"]["name"] == pod.name
    assert written["metadata"]["labels"] == pod.labels
    assert "uid" not in written["metadata"]
    assert written["spec"]["containers"][0]["env"] == [{"name": "A"}]
    assert expanded(str(written)).pods[0].spec == pod.spec


def test_the_collection_that_was_given_stays_as_it_was() -> None:
    objects = with_defaults(decode(workload("Deployment", "")))

    expand(objects)

    assert objects.pods == []
    assert objects.of("ReplicaSet") == []
    assert objects.of("Deployment")[0].metadata.uid == ""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param(
            workload("ReplicaSet", "replicas: 2000000000,"),
            "f: ReplicaSet default/web: asks for 2000000000 pods; at most 1000000 can be simulated",
            id="too many replicas",
        ),
        pytest.param(
            "{kind: StatefulSet, metadata: {name: web}, "
            "spec: {template: {spec: {priorityClassName: top}}}}",
            "f: StatefulSet default/web: spec.priorityClassName: no PriorityClass with name top",
            id="an unknown priority class",
        ),
    ],
)
def test_refusals(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        expanded(text)

    assert str(error.value).startswith(sentence)
