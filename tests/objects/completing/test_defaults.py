"""What the API server would have filled in."""

import pytest

from cases import cases
from podium.errors import InputError
from podium.objects.completing.defaults import with_defaults
from podium.objects.kinds.meta import LabelSelector, LabelSelectorRequirement
from podium.objects.kinds.pod import Pod
from podium.objects.reading.collection import Objects
from podium.objects.reading.decoding import decode


def completed(text: str) -> Objects:
    return with_defaults(decode(text, "f"))


def only_pod(text: str) -> Pod:
    [pod] = completed(text).pods
    return pod


def test_requests_are_the_limits_where_they_are_not_given() -> None:
    pod = only_pod(
        """
        kind: Pod
        metadata: {name: a}
        spec:
          containers: [{resources: {limits: {cpu: 2, memory: 1Gi}, requests: {cpu: 1}}}, {}]
          initContainers: [{resources: {limits: {cpu: 3}}}]
        """
    )

    containers = (pod.spec.containers or []) + (pod.spec.init_containers or [])
    requests = [each.resources.requests if each.resources else None for each in containers]
    assert requests == [{"cpu": 1, "memory": "1Gi"}, None, {"cpu": 3}]


@pytest.mark.parametrize(
    ("written", "stored"),
    [("100m", "100m"), ("0.1m", "1m"), ("1.5", "1.5"), ("1500u", "2m"), (0.0001, "1m")],
)
def test_quantities_are_stored_in_thousandths(written: str | float, stored: str) -> None:
    [node] = completed(
        f"{{kind: Node, metadata: {{name: n}}, status: {{capacity: {{cpu: '{written}'}}}}}}"
    ).nodes

    assert node.status.capacity == {"cpu": stored}


def test_ports_of_the_host_network_are_host_ports() -> None:
    text = (
        "{{kind: Pod, metadata: {{name: a}}, spec: {{hostNetwork: {}, containers: "
        "[{{ports: [{{containerPort: 80}}, {{containerPort: 81, hostPort: 82}}]}}]}}}}"
    )

    def host_ports(pod: Pod) -> list[int]:
        [container] = pod.spec.containers or []
        return [port.host_port for port in container.ports or []]

    assert host_ports(only_pod(text.format("true"))) == [80, 82]
    assert host_ports(only_pod(text.format("false"))) == [0, 82]


CLASSES = """
- {kind: PriorityClass, metadata: {name: high}, value: 100, preemptionPolicy: Never}
- {kind: PriorityClass, metadata: {name: usual}, value: 7, globalDefault: true}
- {kind: PriorityClass, metadata: {name: lower}, value: 5, globalDefault: true}
"""


@cases(
    ("classes", "spec", "expected"),
    {
        "no classes at all": ("", "{}", (0, "", None)),
        "the lowest of the default classes": (CLASSES, "{}", (5, "lower", None)),
        "the class it names": (CLASSES, "{priorityClassName: high}", (100, "high", "Never")),
        "a priority that is given stays": (
            CLASSES,
            "{priorityClassName: high, priority: 3}",
            (3, "high", None),
        ),
        "a class that always exists": (
            "",
            "{priorityClassName: system-node-critical}",
            (2000001000, "system-node-critical", None),
        ),
    },
)
def test_priority(classes: str, spec: str, expected: tuple[int, str, str | None]) -> None:
    pod = only_pod(f"{classes}\n- {{kind: Pod, metadata: {{name: a}}, spec: {spec}}}")

    found = (pod.spec.priority, pod.spec.priority_class_name, pod.spec.preemption_policy)
    assert found == expected


def test_an_unknown_priority_class_is_refused() -> None:
    with pytest.raises(InputError) as error:
        completed("{kind: Pod, metadata: {name: a}, spec: {priorityClassName: top}}")

    assert str(error.value) == (
        "f: Pod default/a: spec.priorityClassName: no PriorityClass with name top was found; "
        "add it to the input, or use one of system-cluster-critical, system-node-critical"
    )


def test_what_has_a_uid_is_taken_as_it_is() -> None:
    text = (
        "{kind: Pod, metadata: {name: a, uid: u}, "
        "spec: {priorityClassName: top, containers: [{resources: {limits: {cpu: 1}}}]}}"
    )

    assert completed(text).pods == decode(text).pods


def test_small_defaults() -> None:
    objects = completed(
        """
        - {kind: Pod, metadata: {name: a}, spec: {schedulerName: '', volumes: [{rbd: {image: i}}]}}
        - {kind: Node, metadata: {name: n}, status: {capacity: {cpu: 4}}}
        - {kind: Node, metadata: {name: m}, status: {capacity: {cpu: 4}, allocatable: {}}}
        - kind: StorageClass
          metadata: {name: s, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
        - {kind: PersistentVolumeClaim, metadata: {name: p}}
        - {kind: PersistentVolumeClaim, metadata: {name: q}, spec: {storageClassName: ''}}
        - kind: ReplicationController
          metadata: {name: r}
          spec: {template: {metadata: {labels: {a: b}}}}
        - {kind: DaemonSet, metadata: {name: d}, spec: {template: {metadata: {labels: {a: b}}}}}
        """
    )

    [pod] = objects.pods
    assert (pod.metadata.namespace, pod.uid) == ("default", "default/a")
    assert pod.spec.scheduler_name == "default-scheduler"
    assert pod.spec.volumes
    assert pod.spec.volumes[0].rbd
    assert pod.spec.volumes[0].rbd.pool == "rbd"
    assert [node.status.allocatable for node in objects.nodes] == [{"cpu": 4}, {}]
    assert objects.of("StorageClass")[0].volume_binding_mode == "Immediate"
    claims = [claim.spec.storage_class_name for claim in objects.of("PersistentVolumeClaim")]
    assert claims == ["s", ""]
    assert objects.of("ReplicationController")[0].spec.selector == {"a": "b"}
    assert objects.of("DaemonSet")[0].spec.selector == LabelSelector(match_labels={"a": "b"})


def test_label_keys_of_affinity_terms_become_expressions() -> None:
    pod = only_pod(
        """
        kind: Pod
        metadata: {name: a, labels: {app: web, rev: "2"}}
        spec:
          affinity:
            podAffinity:
              preferredDuringSchedulingIgnoredDuringExecution:
              - podAffinityTerm: {labelSelector: {matchLabels: {x: y}}, matchLabelKeys: [rev, none]}
            podAntiAffinity:
              requiredDuringSchedulingIgnoredDuringExecution:
              - {labelSelector: {}, mismatchLabelKeys: [app]}
              - {matchLabelKeys: [app]}
        """
    )

    affinity = pod.spec.affinity
    assert affinity
    assert affinity.pod_affinity
    assert affinity.pod_anti_affinity
    [preferred] = affinity.pod_affinity.preferred or []
    assert preferred.pod_affinity_term.label_selector == LabelSelector(
        {"x": "y"}, [LabelSelectorRequirement("rev", "In", ["2"])]
    )
    folded, absent = affinity.pod_anti_affinity.required or []
    assert folded.label_selector == LabelSelector(
        None, [LabelSelectorRequirement("app", "NotIn", ["web"])]
    )
    assert absent.label_selector is None


def test_a_volume_that_no_cluster_has_seen_becomes_available() -> None:
    manifest = b'{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"%s"%s}}'
    new = decode(manifest % (b"new", b""))
    seen = decode(manifest % (b"seen", b',"uid":"u"'))

    assert with_defaults(new).of("PersistentVolume")[0].status.phase == "Available"
    assert with_defaults(seen).of("PersistentVolume")[0].status.phase == ""
