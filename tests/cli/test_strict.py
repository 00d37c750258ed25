"""Manifests are read strictly: what an API server would refuse or ignore is named with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.conftest import Files, Podium
from manifests import node, pod

POD = """apiVersion: v1
kind: Pod
metadata:
  name: p
spec:
  containers: [{name: c, image: i}]
"""


def written(tmp_path: Path, text: str) -> str:
    file = tmp_path / "written.yaml"
    file.write_text(text)
    return str(file)


SPREAD = "{maxSkew: 0, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}"
#: A manifest, the line of its fault, and a part of the sentence about it.
FAULTS = [
    (f"{POD}  toleration: []\n", 7, "there is no field spec.toleration; did you mean tolerations?"),
    (f"{POD}  nodeName: a\n  nodeName: b\n", 8, "the key 'nodeName' stands twice"),
    (POD.replace("Pod", "Pods"), 2, "there is no kind Pods; did you mean Pod?"),
    (POD.replace("v1", "apps/v1"), 1, "the version of a Pod is v1"),
    (
        POD.replace("i}", "i, resources: {requests: {cpu: 9e18}}}"),
        6,
        "spec.containers[0].resources.requests.cpu: 9e18 is more than a number of 64 bits holds",
    ),
    (f"{POD}  topologySpreadConstraints:\n  - {SPREAD}\n", 8, "must be greater than zero"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault[2]))
@pytest.mark.parametrize("command", ["schedule", "explain", "plan"])
def test_a_fault_of_a_manifest_is_named_with_its_line(
    podium: Podium, write: Files, tmp_path: Path, command: str, fault: tuple[str, int, str]
) -> None:
    text, line, sentence = fault
    nodes, file = write([node("n1")]), written(tmp_path, text)
    arguments = {
        "schedule": (nodes, file),
        "explain": ("p", nodes, file),
        "plan": (nodes, file, "--cordon", "n1"),
    }

    result = podium(command, *arguments[command])

    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"podium: {file}:{line}: ")
    assert sentence in result.err
    assert len(result.err.splitlines()) == 1


def test_capacity_reads_its_pod_strictly(podium: Podium, write: Files, tmp_path: Path) -> None:
    file = written(tmp_path, f"{POD}  toleration: []\n")

    assert podium("capacity", file, write([node("n1")])).code == 2
    assert podium("capacity", file, write([node("n1")]), "--strict=false").code == 0


@pytest.mark.parametrize("arguments", ["plan N --apply F", "check -f N F"])
@pytest.mark.parametrize(
    "fault",
    [
        ("toleration: []", "there is no field spec.toleration"),
        ("overhead: {memory: 1e19}", "more than a number of 64 bits"),
    ],
)
def test_what_would_be_applied_is_read_strictly(
    podium: Podium, write: Files, tmp_path: Path, arguments: str, fault: tuple[str, str]
) -> None:
    field, sentence = fault
    files = {"N": write([node("n1")]), "F": written(tmp_path, f"{POD}  {field}\n")}

    result = podium(*(files.get(each, each) for each in arguments.split()))

    assert result.code == (2 if "plan" in arguments else 1)
    assert f"{files['F']}:7: " in result.out + result.err
    assert sentence in result.out + result.err


@pytest.mark.parametrize(
    "arguments", ["plan N --add 2:F", "capacity p N --shape F", "fix p N --shape F"]
)
def test_nodes_of_a_file_are_read_strictly(
    podium: Podium, write: Files, tmp_path: Path, arguments: str
) -> None:
    file = tmp_path / "shape.yaml"
    file.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n}\nspec: {taint: []}\n")
    files = {"N": write([node("n1"), pod("p")]), "F": str(file)}
    command = [each.replace("F", str(file)) for each in arguments.split()]

    result = podium(*(files.get(each, each) for each in command))

    assert (result.code, len(result.err.splitlines())) == (2, 1)
    assert "there is no field spec.taint; did you mean taints?" in result.err


def test_a_dumped_object_may_have_newer_fields(
    podium: Podium, write: Files, tmp_path: Path
) -> None:
    text = POD.replace("name: p\n", "name: p\n  uid: u\n") + "  newerField: 1\n"
    file = written(tmp_path, text)

    result = podium("schedule", write([node("n1")]), file)

    assert result.code == 0
    assert f"{file}:8: Pod/default/p: there is no field spec.newerField" in result.err


def test_faults_can_be_read_all_the_same(podium: Podium, write: Files, tmp_path: Path) -> None:
    file = written(tmp_path, f"{POD}  toleration: []\n")

    assert podium("schedule", write([node("n1")]), file, "--strict=false").code == 0


def test_custom_resources_are_left_alone(podium: Podium, write: Files, tmp_path: Path) -> None:
    other = "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: s}\nspec: {x: 1}\n"
    file = written(tmp_path, f"{POD}---\n{other}")

    assert podium("schedule", write([node("n1")]), file).code == 0


@pytest.mark.parametrize("command", [["schedule"], ["explain", "p"], ["fix", "p"]])
def test_a_claim_that_was_not_dumped_is_told_once(
    podium: Podium, write: Files, tmp_path: Path, command: list[str]
) -> None:
    dumped = node("n1")
    dumped["metadata"]["uid"] = "n1"
    volume = "  volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]\n"
    text = POD.replace("name: p\n", "name: p\n  uid: u\n") + volume

    result = podium(*command, write([dumped]), written(tmp_path, text))

    told = [line for line in result.out.splitlines() if "it depends on" in line]
    assert len(told) == 1
    assert "PersistentVolumeClaim data, not in the input" in told[0]
    assert "kubectl get persistentvolumeclaims,persistentvolumes,storageclasses" in told[0]


@pytest.mark.parametrize("command", [["schedule"], ["explain", "p"], ["fix", "p"]])
def test_budgets_that_were_not_dumped_are_told_once_where_pods_are_evicted(
    podium: Podium, write: Files, tmp_path: Path, command: list[str]
) -> None:
    dumped = node("n1", cpu="1")
    dumped["metadata"]["uid"] = "n1"
    asking = POD.replace("i}", "i, resources: {requests: {cpu: 1}}}")
    urgent = asking.replace("name: p\n", "name: p\n  uid: u\n") + "  priority: 9\n"
    small = asking.replace("name: p\n", "name: small\n  uid: v\n") + "  nodeName: n1\n"
    file = written(tmp_path, f"{urgent}---\n{small}")
    budget = "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b, uid: w}\n"

    lacking = podium(*command, write([dumped]), file)
    told = [line for line in lacking.out.splitlines() if "PodDisruptionBudget" in line]
    whole = podium(*command, write([dumped]), written(tmp_path, f"{urgent}---\n{small}{budget}"))

    assert len(told) == 1
    assert "`kubectl get poddisruptionbudgets -A -o yaml` adds it" in told[0]
    assert "PodDisruptionBudget" not in whole.out


PADDING = "".join(
    f"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{i}}}\ndata: {{a: {'x' * 200}}}\n"
    for i in range(4_000)
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault[2]))
def test_large_files_are_read_strictly(
    podium: Podium, write: Files, tmp_path: Path, fault: tuple[str, int, str]
) -> None:
    text, line, sentence = fault
    file = written(tmp_path, f"{PADDING}---\n{text}")
    assert len(PADDING) > 1_000_000

    result = podium("schedule", write([node("n1")]), file)

    assert result.code == 2
    assert result.err.startswith(f"podium: {file}:{PADDING.count(chr(10)) + 1 + line}: ")
    assert sentence in result.err


def test_large_lists_in_json_are_read_strictly(
    podium: Podium, write: Files, tmp_path: Path
) -> None:
    dumped = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "uid": "u"}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"toleration": [], "containers": [{"name": "c", "image": "i"}]},
    }
    lines = [json.dumps({**dumped, "data": {"a": "x" * 1000, "b": {"toleration": 1}}})] * 1200
    file = tmp_path / "list.json"
    items = ",\n".join([*lines, json.dumps(pod)])
    file.write_text(f'{{"apiVersion": "v1", "kind": "List", "items": [\n{items}]}}')

    result = podium("schedule", write([node("n1")]), str(file))

    assert result.code == 2
    assert result.err.startswith(f"podium: {file}:1202: Pod")
    assert "there is no field spec.toleration" in result.err


def test_standard_input_is_read_strictly(podium: Podium, write: Files) -> None:
    nodes = write([node("n1")])

    refused = podium("schedule", nodes, "-", stdin=f"{POD}  toleration: []\n".encode())
    taken = podium("schedule", nodes, "-", stdin=POD.encode())

    assert refused.code == 2
    assert refused.err.startswith("podium: <stdin>:7: ")
    assert (taken.code, taken.lines[-1]) == (0, "1 of 1 pod placed")


def _object(version: str, kind: str, rest: str) -> str:
    return f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\n{rest}\n"


#: Every place of a quantity that an answer depends on.
LARGE = {
    "limits": POD.replace("i}", "i, resources: {limits: {memory: 1e19}}}"),
    "init": f"{POD}  initContainers: [{{name: d, resources: {{requests: {{cpu: 1e16}}}}}}]\n",
    "overhead": f"{POD}  overhead: {{memory: 10Ei}}\n",
    "pod": f"{POD}  resources: {{requests: {{memory: 10Ei}}}}\n",
    "device": POD.replace("i}", 'i, resources: {requests: {a.b/gpu: "99999999999999999999"}}}'),
    "empty": f"{POD}  volumes: [{{name: v, emptyDir: {{sizeLimit: 1e30}}}}]\n",
    "allocatable": _object("v1", "Node", "status: {allocatable: {memory: 9Ei}}"),
    "capacity": _object("v1", "Node", "status: {capacity: {cpu: 1e17}}"),
    "claim": _object(
        *("v1", "PersistentVolumeClaim"),
        "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 8Ei}}}",
    ),
    "quota": _object("v1", "ResourceQuota", "spec: {hard: {memory: 1e19}}"),
    **{
        kind: _object(
            *("apps/v1", kind),
            "spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: "
            "{containers: [{name: c, image: i, resources: {requests: {memory: 1e19}}}]}}}",
        )
        for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")
    },
}


def of_cluster(text: str, name: str) -> str:
    """The object with this name and a uid, as a cluster has it."""
    named = text.replace("name: p\n", f"name: {name}\n  uid: {name}\n")
    return named.replace("name: x}", f"name: {name}, uid: {name}}}")


@pytest.mark.parametrize("where", LARGE)
def test_no_number_beyond_64_bits_is_taken_in_silence(
    podium: Podium, write: Files, tmp_path: Path, where: str
) -> None:
    text = LARGE[where]
    dumped = of_cluster(text, "p")
    nodes = write([node("n1")])

    refused = podium("schedule", nodes, written(tmp_path, text))
    asked = podium("schedule", nodes, written(tmp_path, text), "--strict=false")
    of_dump = podium("schedule", nodes, written(tmp_path, dumped))

    assert refused.code == 2
    assert "is more than a number of 64 bits holds; the most is 9223372036854775807" in refused.err
    for result in (asked, of_dump):
        assert result.code == 0, result.err
        told = [line for line in result.err.splitlines() if "64 bits holds" in line]
        assert len(told) == 1, result.err
        assert "; it is read as " in told[0]


def test_no_number_beyond_64_bits_is_taken_in_silence_from_a_large_dump(
    podium: Podium, write: Files, tmp_path: Path
) -> None:
    dumped = [f"---\n{of_cluster(LARGE[where], where.lower())}" for where in LARGE]
    file = written(tmp_path, "".join([PADDING, *dumped]))

    nodes = write([node("n1")])
    result = podium("schedule", nodes, file, "--strict=false")

    assert result.code == 0, result.err
    noted = [line for line in result.err.splitlines() if "64 bits holds" in line]
    assert len(noted) == len(LARGE), result.err
    assert all("; it is read as " in line for line in noted)
    more = f"{len(LARGE) - 3} more fields and values of dumped objects"
    assert more in podium("schedule", nodes, file).err


def test_sums_that_wrap_around_are_noted_where_they_are_taken(
    podium: Podium, write: Files, tmp_path: Path
) -> None:
    asking = "image: i, resources: {requests: {memory: 5e18}}}"
    text = POD.replace("image: i}", f"{asking}, {{name: d, {asking}")
    nodes, file = write([node("n1")]), written(tmp_path, text)

    refused = podium("schedule", nodes, file)
    result = podium("schedule", nodes, file, "--strict=false")

    assert refused.code == 2
    assert "spec.containers request more memory than a number of 64 bits holds" in refused.err
    assert "64 bits holds; the sum wraps around, as it does in kube-scheduler" in result.err


@pytest.mark.parametrize("strict", ["true", "false"])
@pytest.mark.parametrize(
    "wrong",
    [
        {"metadata": 5},
        {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": []}}}]}},
        {"spec": {"containers": [{"name": "c", "resources": {"requests": "1"}}]}},
        {"spec": {"containers": [{"name": "c", "resources": True}]}},
        {"spec": {"containers": [{"name": "c"}], "overhead": 1.5}},
        {"spec": {"containers": "c"}},
    ],
    ids=str,
)
def test_values_of_any_type_end_with_a_sentence(
    podium: Podium, tmp_path: Path, wrong: dict[str, object], strict: str
) -> None:
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(pod("p") | wrong))

    result = podium("schedule", file, f"--strict={strict}")

    assert result.code == 2
    assert result.err.startswith(f"podium: {file}")


def test_a_container_that_is_null_is_an_empty_one(podium: Podium, tmp_path: Path) -> None:
    """As the API server reads it."""
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(pod("p") | {"spec": {"containers": [None]}}))

    result = podium("schedule", file)

    assert (result.code, result.err) == (0, "")
