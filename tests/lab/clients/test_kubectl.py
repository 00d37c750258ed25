"""kubectl at work in a lab with everything in it: controllers, scheduler, nodes that run pods.

`podium lab` is a process of its own here, and kubectl the one on the PATH and Debian's 1.20.
"""

from __future__ import annotations

import itertools
import json
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from lab.clients.kubectl import PROGRAMS, Kubectl, available
from lab.command.lab_process import LabProcess
from waiting import until

SHOP = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers: [{name: app, image: "shop:1", resources: {requests: {cpu: 100m}}}]
"""
HUGE = """
apiVersion: v1
kind: Pod
metadata: {name: huge}
spec:
  containers: [{name: app, image: "huge:1", resources: {requests: {cpu: "1000"}}}]
"""
OTHERS = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: app, image: "db:1"}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: app, image: "agent:1"}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  completions: 2
  template:
    spec: {restartPolicy: Never, containers: [{name: app, image: "job:1"}]}
"""
BUDGET = """
apiVersion: policy/v1beta1
kind: PodDisruptionBudget
metadata: {name: shop}
spec: {minAvailable: 3, selector: {matchLabels: {app: shop}}}
"""
NUMBERS = itertools.count()
T = TypeVar("T")


@pytest.fixture(scope="module", params=available())
def kubectl(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kubectl]:
    program = PROGRAMS[request.param]()
    if not program:
        pytest.skip(f"there is no such kubectl here: {request.param}")
    folder = tmp_path_factory.mktemp("lab")
    lab = LabProcess(folder, "--nodes=4", "--zones=2")
    try:
        yield Kubectl(program, lab.kubeconfig, folder / "home")
    finally:
        lab.end()


@pytest.fixture
def space(kubectl: Kubectl) -> Iterator[Kubectl]:
    """A namespace for one test, which is the default of kubectl then."""
    name = f"space-{next(NUMBERS)}"
    kubectl("create", "namespace", name)
    kubectl("config", "set-context", "--current", f"--namespace={name}")
    yield kubectl
    kubectl("delete", "namespace", name)
    assert kubectl.run("get", "namespace", name).code == 1


def items(kubectl: Kubectl, *words: str) -> list[Any]:
    listed: list[Any] = json.loads(kubectl("get", *words, "-o", "json"))["items"]
    return listed


def nodes_of(kubectl: Kubectl, selector: str) -> list[str]:
    found = items(kubectl, "pods", "-l", selector)
    return [
        each["spec"].get("nodeName", "")
        for each in found
        if "deletionTimestamp" not in each["metadata"]
    ]


def shown(found: Callable[[], T]) -> T:
    return until("what kubectl is to show", found)


def rolled_out(kubectl: Kubectl, what: str) -> str:
    return kubectl("rollout", "status", what, "--timeout=120s")


def test_a_deployment_is_rolled_out_scaled_changed_and_undone(space: Kubectl) -> None:
    assert space("apply", "-f", "-", stdin=SHOP) == "deployment.apps/shop created\n"
    assert 'deployment "shop" successfully rolled out' in rolled_out(space, "deployment/shop")
    space("wait", "deployment/shop", "--for=condition=Available", "--timeout=120s")
    assert "3/3" in space("get", "deployment", "shop")
    pods = space("get", "pods", "-l", "app=shop", "-o", "wide")
    assert pods.count("Running") == 3
    assert space("scale", "deployment", "shop", "--replicas=5") == "deployment.apps/shop scaled\n"
    rolled_out(space, "deployment/shop")
    assert len(nodes_of(space, "app=shop")) == 5
    space("scale", "deployment", "shop", "--replicas=2")
    shown(lambda: len(nodes_of(space, "app=shop")) == 2)
    space("set", "image", "deployment/shop", "app=shop:2")
    rolled_out(space, "deployment/shop")
    images = "-o=jsonpath={.items[*].spec.containers[0].image}"
    shown(
        lambda: space("get", "pods", "-l", "app=shop", images) == "shop:2 shop:2",
    )
    assert "2" in space("rollout", "history", "deployment/shop")
    space("rollout", "undo", "deployment/shop")
    rolled_out(space, "deployment/shop")
    shown(
        lambda: space("get", "pods", "-l", "app=shop", images) == "shop:1 shop:1",
    )
    space("delete", "-f", "-", stdin=SHOP)
    shown(lambda: "No resources found" in space.run("get", "pods").err)


def test_what_happened_to_a_pod_and_a_node_is_described(space: Kubectl) -> None:
    space("apply", "-f", "-", stdin=SHOP)
    rolled_out(space, "deployment/shop")
    pod = items(space, "pods", "-l", "app=shop")[0]
    name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
    told = shown(
        lambda: _events(space("describe", "pod", name), "Scheduled", "Started"),
    )
    assert f"to {node}" in told
    assert f"Node:         {node}/" in told or f"Node:             {node}/" in told
    described = space("describe", "node", node)
    assert name in described
    assert "Allocated resources" in described
    events = space("get", "events", "--field-selector", f"involvedObject.name={name}")
    assert "Scheduled" in events


def _events(told: str, *reasons: str) -> str:
    return told if all(f" {reason} " in told for reason in reasons) else ""


def test_a_pod_that_fits_nowhere_says_why(space: Kubectl) -> None:
    space("apply", "-f", "-", stdin=HUGE)
    told = shown(
        lambda: _events(space("describe", "pod", "huge"), "FailedScheduling"),
    )
    assert "0/4 nodes are available: 4 Insufficient cpu" in told
    assert "Pending" in space("get", "pod", "huge")
    done = space.run("wait", "pod/huge", "--for=condition=Ready", "--timeout=1s")
    assert done.code == 1
    assert "timed out" in done.err


def test_sets_and_jobs_do_their_work(space: Kubectl) -> None:
    space("apply", "-f", "-", stdin=OTHERS)
    assert "rolled out" in rolled_out(space, "daemonset/agent")
    assert len(set(nodes_of(space, "app=agent"))) == 4
    assert "2 new pods have been updated" in rolled_out(space, "statefulset/db")
    names = space("get", "pods", "-l", "app=db", "-o", "name").split()
    assert names == ["pod/db-0", "pod/db-1"]
    space("wait", "job/once", "--for=condition=complete", "--timeout=120s")
    assert "2/2" in space("get", "job", "once")
    assert space("get", "pods", "-l", "job-name=once").count("Completed") == 2
    space("delete", "-f", "-", stdin=OTHERS)


def test_a_node_is_drained_and_comes_back(space: Kubectl) -> None:
    space("apply", "-f", "-", stdin=SHOP)
    rolled_out(space, "deployment/shop")
    node = nodes_of(space, "app=shop")[0]
    space("drain", node, "--force", "--ignore-daemonsets", "--timeout=60s")
    assert "SchedulingDisabled" in space("get", "node", node)
    assert node not in nodes_of(space, "app=shop")
    shown(
        lambda: len([each for each in nodes_of(space, "app=shop") if each]) == 3,
    )
    assert space("uncordon", node) == f"node/{node} uncordoned\n"


def test_a_budget_holds_a_drain_up(space: Kubectl) -> None:
    space("apply", "-f", "-", stdin=SHOP)
    rolled_out(space, "deployment/shop")
    space("apply", "-f", "-", stdin=BUDGET)
    shown(
        lambda: items(space, "pdb")[0].get("status", {}).get("currentHealthy") == 3,
    )
    node = nodes_of(space, "app=shop")[0]
    done = space.run("drain", node, "--force", "--ignore-daemonsets", "--timeout=4s")
    space("uncordon", node)
    assert done.code == 1
    assert "Cannot evict pod as it would violate the pod's disruption budget" in done.err
    assert node in nodes_of(space, "app=shop")


def test_a_taint_drives_pods_away(space: Kubectl) -> None:
    space("apply", "-f", "-", stdin=SHOP)
    rolled_out(space, "deployment/shop")
    node = nodes_of(space, "app=shop")[0]
    space("taint", "node", node, "broken=yes:NoExecute")
    shown(lambda: node not in nodes_of(space, "app=shop"))
    assert f"node/{node} untainted" in space("taint", "node", node, "broken-")


def test_a_watch_tells_what_happens(space: Kubectl) -> None:
    space("apply", "-f", "-", stdin=HUGE)
    lines: list[str] = []
    with space.start("get", "pods", "-w") as watching:
        assert watching.stdout is not None
        reader = threading.Thread(target=lines.extend, args=(watching.stdout,))
        reader.start()
        shown(lambda: any(line.startswith("huge") for line in lines))
        space("run", "seen", "--image=seen:1", "--restart=Never")
        shown(
            lambda: any(" Running " in line or " Completed " in line for line in lines),
        )
        space("delete", "pod", "seen")
        shown(lambda: any(" Terminating " in line for line in lines))
        watching.terminate()
        reader.join(10)
    assert lines[0].split()[:3] == ["NAME", "READY", "STATUS"]
    states = [line.split()[2] for line in lines if line.startswith("seen")]
    assert states[0] == "Pending"


def test_objects_are_edited_patched_labelled_and_compared(space: Kubectl) -> None:
    space("create", "configmap", "c", "--from-literal=key=value")
    done = space.run("edit", "configmap", "c", KUBE_EDITOR="sed -i s/value$/edited/")
    assert done.out == "configmap/c edited\n"
    for form, patch in (
        ("strategic", '{"data":{"one":"1"}}'),
        ("merge", '{"data":{"two":"2"}}'),
        ("json", '[{"op":"add","path":"/data/three","value":"3"}]'),
    ):
        assert space("patch", "configmap", "c", "--type", form, "-p", patch)
    space("label", "configmap", "c", "a=b")
    space("annotate", "configmap", "c", "note=text")
    found = json.loads(space("get", "configmap", "c", "-o", "json"))
    assert found["data"] == {"key": "edited", "one": "1", "two": "2", "three": "3"}
    assert found["metadata"]["labels"] == {"a": "b"}
    assert found["metadata"]["annotations"] == {"note": "text"}
    space("apply", "-f", "-", stdin=SHOP)
    done = space.run("diff", "-f", "-", stdin=SHOP.replace("shop:1", "shop:9"))
    assert done.code == 1
    assert "+      - image: shop:9" in done.out
    assert space.run("diff", "-f", "-", stdin=SHOP).code == 0


def test_server_side_apply_names_who_owns_a_field(space: Kubectl) -> None:
    space("apply", "--server-side", "-f", "-", stdin=SHOP)
    rolled_out(space, "deployment/shop")
    changed = SHOP.replace("replicas: 3", "replicas: 1")
    words = ("apply", "--server-side", "--field-manager=other", "-f", "-")
    done = space.run(*words, stdin=changed)
    assert done.code == 1
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .spec.replicas' in done.err
    space(*words, "--force-conflicts", stdin=changed)
    shown(lambda: len(nodes_of(space, "app=shop")) == 1)


def test_kubectl_explains_and_lists_what_there_is(kubectl: Kubectl) -> None:
    told = kubectl("explain", "pod.spec.tolerations")
    assert "tolerationSeconds" in told
    assert "Key is the taint key that the toleration applies to" in told
    assert "maxSurge" in kubectl("explain", "deployment.spec.strategy", "--recursive")
    listed = kubectl("api-resources")
    assert "priorityclasses" in listed
    assert "apps/v1" in kubectl("api-versions").split()
    assert kubectl("auth", "can-i", "create", "pods").strip() == "yes"
    assert "controls the Kubernetes cluster manager" in kubectl("--help")


def test_a_typing_mistake_is_refused(space: Kubectl) -> None:
    mistaken = SHOP.replace("image:", "imagex:")
    for _ in range(2):  # as something new, and as a change
        done = space.run("apply", "-f", "-", stdin=mistaken)
        assert done.code == 1
        assert "unknown field" in done.err
        assert "imagex" in done.err
        space("apply", "-f", "-", stdin=SHOP)


def test_a_proxy_of_kubectl_gets_at_every_path(kubectl: Kubectl) -> None:
    flag = "--append-server-path"
    if flag not in kubectl("proxy", "--help"):
        return  # it came with 1.21
    with kubectl.start("proxy", "--port=0", flag) as proxy:
        assert proxy.stdout is not None
        said = next(line for line in proxy.stdout if "serve on" in line)
        address = f"http://{said.split()[-1]}/api/v1/nodes"
        with urllib.request.urlopen(address, timeout=20) as response:
            assert len(json.loads(response.read())["items"]) == 4
        proxy.terminate()


def test_nothing_is_left_behind(kubectl: Kubectl, tmp_path: Path) -> None:
    left = [
        each
        for each in items(kubectl, "pods", "-A")
        if each["metadata"]["namespace"] != "kube-system"
    ]
    assert left == []
    assert kubectl("get", "nodes").count(" Ready ") == 4
