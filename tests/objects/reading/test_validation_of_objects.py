"""What is refused after reading, and what is only noted."""

import pytest

from podium.errors import InputError
from podium.objects.reading.decoding import decode
from podium.objects.reading.validation import notes, validate


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param(
            "{kind: Pod, metadata: {name: a}, "
            "spec: {containers: [{}, {resources: {requests: {cpu: 5x}}}]}}",
            "f: Pod default/a: spec.containers[1].resources.requests.cpu: '5x' is not a quantity; "
            "write a number with an optional suffix, such as 500m, 2, 1.5Gi or 1e3",
            id="a bad request",
        ),
        pytest.param(
            "{kind: Pod, metadata: {name: a}, "
            "spec: {initContainers: [{resources: {limits: {example.com/gpu: -1}}}]}}",
            'f: Pod default/a: spec.initContainers[0].resources.limits["example.com/gpu"]: '
            "-1 is negative; use zero or more",
            id="a negative limit",
        ),
        pytest.param(
            "{kind: Pod, metadata: {name: a}, spec: {overhead: {cpu: ''}}}",
            "f: Pod default/a: spec.overhead.cpu: '' is not a quantity; write",
            id="an empty overhead",
        ),
        pytest.param(
            "{kind: Node, metadata: {name: a}, status: {allocatable: {memory: 1GB}}}",
            "f: Node a: status.allocatable.memory: '1GB' is not a quantity; write",
            id="a unit that people use elsewhere",
        ),
        pytest.param(
            "{kind: PersistentVolume, metadata: {name: a}, spec: {capacity: {storage: .inf}}}",
            "f: PersistentVolume a: spec.capacity.storage: inf is not a quantity; write",
            id="an infinite volume",
        ),
        pytest.param(
            "{kind: PersistentVolumeClaim, metadata: {name: a}, "
            "spec: {resources: {requests: {storage: much}}}}",
            "f: PersistentVolumeClaim default/a: spec.resources.requests.storage: 'much' is not",
            id="a bad claim",
        ),
        pytest.param(
            "{kind: StatefulSet, metadata: {name: a}, "
            "spec: {volumeClaimTemplates: [{spec: {resources: {requests: {storage: much}}}}]}}",
            "f: StatefulSet default/a: spec.volumeClaimTemplates[0].spec.resources.requests.sto",
            id="a bad claim template",
        ),
        pytest.param(
            "{kind: Job, metadata: {name: a}, "
            "spec: {template: {spec: {containers: [{resources: {limits: {cpu: x}}}]}}}}",
            "f: Job default/a: spec.template.spec.containers[0].resources.limits.cpu: 'x' is not",
            id="a bad template",
        ),
        pytest.param(
            "{kind: CSIStorageCapacity, metadata: {name: a}, capacity: lots}",
            "f: CSIStorageCapacity default/a: capacity: 'lots' is not a quantity",
            id="a bad storage capacity",
        ),
        pytest.param(
            "{kind: CronJob, metadata: {name: a}, spec: {jobTemplate: {spec: {template: {spec: "
            "{containers: [{name: a, resources: {requests: {cpu: lots}}}]}}}}}}",
            "f: CronJob default/a: spec.jobTemplate.spec.template.spec.containers[0].resources."
            "requests.cpu: 'lots' is not a quantity",
            id="a bad request in the jobs of a cron job",
        ),
        pytest.param(
            "{kind: ResourceSlice, metadata: {name: a}, spec: {devices: [{name: d, capacity: "
            "{memory: {value: 80G1}}}]}}",
            "f: ResourceSlice a: spec.devices[0].capacity.memory.value: '80G1' is not a quantity",
            id="a bad capacity of a device",
        ),
        pytest.param(
            "[{kind: Pod, metadata: {name: a}}, "
            "{kind: Pod, metadata: {name: a, namespace: default}}]",
            "f: Pod default/a: appears twice; give one of the two another name",
            id="two pods of one name",
        ),
        pytest.param(
            "[{kind: Node, metadata: {name: a}}, {kind: Node, metadata: {name: a, namespace: b}}]",
            "f: Node a: appears twice",
            id="nodes have no namespace",
        ),
        pytest.param(
            "{kind: Pod, metadata: {name: Web_1}}",
            "f: Pod default/Web_1: metadata.name: 'Web_1' is not a legal name; use lower case",
            id="an illegal name",
        ),
        pytest.param(
            "{kind: Pod, metadata: {name: a, namespace: B}}",
            "f: Pod B/a: metadata.namespace: 'B' is not a legal name; use lower case",
            id="an illegal namespace",
        ),
        pytest.param(
            "{kind: Node, metadata: {name: a, labels: {-x: b}}}",
            "f: Node a: metadata.labels: the key '-x' is not legal: name part must consist",
            id="an illegal label key",
        ),
        pytest.param(
            "{kind: Node, metadata: {name: a, labels: {x: b c}}}",
            "f: Node a: metadata.labels.x: 'b c' is not legal: a valid label must be",
            id="an illegal label value",
        ),
        pytest.param(
            "{kind: ReplicaSet, metadata: {name: a}, "
            "spec: {template: {metadata: {labels: {x: b c}}}}}",
            "f: ReplicaSet default/a: spec.template.metadata.labels.x: 'b c' is not legal",
            id="an illegal label of a template",
        ),
    ],
)
def test_refusals(text: str, sentence: str) -> None:
    objects = decode(text, "f")

    with pytest.raises(InputError) as error:
        validate(objects)

    assert str(error.value).startswith(sentence)


def test_a_second_file_with_the_same_object_names_the_first() -> None:
    objects = decode("{kind: Pod, metadata: {name: a}}", "one.yaml")
    decode("{kind: Pod, metadata: {name: a}}", "two.yaml", objects)

    with pytest.raises(InputError) as error:
        validate(objects)

    assert str(error.value) == "two.yaml: Pod default/a: appears twice; it is also in one.yaml"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "{kind: Pod, metadata: {name: a}, spec: {nodeSelector: {-x: -y}, affinity: "
            "{podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
            "[{labelSelector: {matchLabels: {-x: -y}}}]}}}}",
            id="invalid selectors have an outcome of their own",
        ),
        pytest.param(
            "[{kind: Pod, metadata: {name: a}}, {kind: Node, metadata: {name: a}}, "
            "{kind: Pod, metadata: {name: a, namespace: b}}]",
            id="equal names of different kinds and namespaces",
        ),
        pytest.param(
            "{kind: Pod, metadata: {name: a}, spec: {containers: [{resources: "
            "{requests: {cpu: 0.5, memory: 1e3, pods: 1, ephemeral-storage: 1Ei}}}]}}",
            id="quantities in many forms",
        ),
    ],
)
def test_what_is_fine(text: str) -> None:
    validate(decode(text))


def test_notes() -> None:
    objects = decode(
        """
        - {kind: Node, metadata: {name: n1}}
        - {kind: Pod, metadata: {name: a}, spec: {nodeName: n1}}
        - {kind: Pod, metadata: {name: b}, spec: {nodeName: gone}}
        - {kind: Pod, metadata: {name: c}, spec: {nodeName: gone}, status: {phase: Failed}}
        - {kind: Secret, metadata: {name: s}}
        - {kind: ConfigMap, metadata: {name: s}}
        - {kind: ConfigMap, metadata: {name: t}}
        """
    )
    decode("", "empty.yaml", objects)

    assert notes(objects) == [
        "empty.yaml: holds no objects",
        "skipped 3 objects of kinds that do not matter: ConfigMap 2, Secret 1",
        "skipped 1 finished pod",
        "1 pod on nodes that are not in the input: default/b on gone",
    ]


def test_many_lost_pods_are_one_note() -> None:
    objects = decode(
        "\n".join(
            f"- {{kind: Pod, metadata: {{name: a{n}}}, spec: {{nodeName: x}}}}" for n in range(5)
        )
    )

    [note] = notes(objects)
    assert note == (
        "5 pods on nodes that are not in the input: "
        "default/a0 on x, default/a1 on x, default/a2 on x and 2 more"
    )
