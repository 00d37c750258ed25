"""The scenarios of upstream's end-to-end tests about scheduling, on a lab with everything in it.

Written anew after what the specs of `[sig-scheduling]` check; `make conformance` runs the specs
themselves where an `e2e.test` is given. The controllers, the fake kubelets and the scheduler are
those of `podium lab`, in a process of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from lab.command.lab_process import LabProcess

pytestmark = pytest.mark.slow

Json = dict[str, Any]
NUMBERS = itertools.count()
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
RESOURCE = "scheduling.k8s.io/foo"


class Lab:
    """A running lab, and a namespace for one test."""

    def __init__(self, process: LabProcess) -> None:
        self.process = process
        self.send, self.fine = process.call, process.fine
        self.namespace = ""

    def path(self, plural: str, name: str = "", api: str = "/api/v1") -> str:
        return f"{api}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def nodes(self) -> list[str]:
        return [each["metadata"]["name"] for each in self.process.items("/api/v1/nodes")]

    def label(self, node: str, **labels: str) -> None:
        self.change(f"/api/v1/nodes/{node}", {"metadata": {"labels": labels}})

    def offer(self, node: str, amount: str | None, resource: str = RESOURCE) -> None:
        """Have a node advertise an extended resource, or no longer."""
        amounts = {resource: amount}
        patch = {"status": {"capacity": amounts, "allocatable": amounts}}
        self.change(f"/api/v1/nodes/{node}/status", patch)

    def pod(self, name: str, **spec: Any) -> Json:
        labels = spec.pop("labels", {"name": name})
        container: Json = {"name": name, "image": "pause:3"}
        for part in ("resources", "lifecycle", "ports"):
            container |= {part: spec.pop(part)} if part in spec else {}
        item = {
            "metadata": {"name": name, "labels": labels},
            "spec": {"containers": [container], **spec},
        }
        made: Json = self.fine("POST", self.path("pods"), item)
        return made

    def get(self, name: str) -> Json:
        found: Json = self.fine("GET", self.path("pods", name))
        return found

    def node_of(self, name: str) -> str:
        return str(self.get(name)["spec"].get("nodeName", ""))

    def runs(self, *names: str) -> None:
        """Wait until pods run."""
        for name in names:
            self.process.until(lambda name=name: self.phase(name) == "Running", 40)  # type: ignore[misc]

    def waits(self, name: str) -> str:
        """Wait until a pod was found unschedulable; the message."""

        def message() -> str:
            for each in self.get(name)["status"].get("conditions") or ():
                if each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable":
                    return str(each["message"])
            return ""

        self.process.until(lambda: bool(message()), 40)
        assert not self.node_of(name)
        return message()

    def exists(self, path: str) -> bool:
        return self.send("GET", path)[0] == 200

    def phase(self, name: str) -> str:
        return str(self.get(name)["status"].get("phase"))

    def gone(self, name: str) -> None:
        self.process.until(lambda: not self.exists(self.path("pods", name)), 40)

    def change(self, path: str, patch: Json) -> Any:
        return self.fine("PATCH", path, patch, "merge-patch+json")


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabProcess]:
    made = LabProcess(tmp_path_factory.mktemp("lab"), "--nodes=4", "--zones=2")
    yield made
    made.end()


@pytest.fixture
def lab(process: LabProcess) -> Iterator[Lab]:
    """A namespace with its service account; nodes are put back as they were."""
    made = Lab(process)
    made.namespace = f"sched-{next(NUMBERS)}"
    before = {each["metadata"]["name"]: each for each in process.items("/api/v1/nodes")}
    made.fine("POST", "/api/v1/namespaces", {"metadata": {"name": made.namespace}})
    for plural, name in (("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt")):
        path = made.path(plural, name)
        made.process.until(partial(made.exists, path))
    yield made
    made.fine("DELETE", f"/api/v1/namespaces/{made.namespace}")
    for each in process.items(made.path("pods")):
        path = made.path("pods", each["metadata"]["name"])
        made.send("DELETE", path, {"gracePeriodSeconds": 0})
    for name, node in before.items():
        node["metadata"].pop("resourceVersion")
        made.fine("PUT", f"/api/v1/nodes/{name}", node)
        made.fine("PUT", f"/api/v1/nodes/{name}/status", node)


def asks(amount: str, resource: str = RESOURCE) -> Json:
    return {"requests": {resource: amount}, "limits": {resource: amount}}


def on_node(name: str) -> Json:
    return with_label("metadata.name", name, by="matchFields")


def with_label(key: str, *values: str, by: str = "matchExpressions") -> Json:
    terms = [{by: [{"key": key, "operator": "In", "values": list(values)}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"nodeAffinity": required}


def test_resources_of_nodes_are_not_exceeded(lab: Lab) -> None:
    for index, node in enumerate(lab.nodes()):
        lab.offer(node, "10")
        lab.pod(f"filler-{index}", resources=asks("7"), affinity=on_node(node))
    lab.runs(*(f"filler-{index}" for index in range(4)))
    lab.pod("additional", resources=asks("5"))
    assert f"4 Insufficient {RESOURCE}" in lab.waits("additional")


def test_ephemeral_storage_of_nodes_is_not_exceeded(lab: Lab) -> None:
    lab.pod("huge", resources=asks("100Ti", "ephemeral-storage"))
    assert "Insufficient ephemeral-storage" in lab.waits("huge")


def test_the_overhead_of_a_runtime_class_counts(lab: Lab) -> None:
    node = lab.nodes()[0]
    lab.offer(node, "1000")
    runtime_class = {
        "metadata": {"name": f"{lab.namespace}-sandbox"},
        "handler": "sandbox",
        "overhead": {"podFixed": {RESOURCE: "250"}},
    }
    lab.fine("POST", "/apis/node.k8s.io/v1/runtimeclasses", runtime_class)
    name = f"{lab.namespace}-sandbox"
    lab.pod("filler", resources=asks("700"), runtimeClassName=name, affinity=on_node(node))
    lab.runs("filler")
    lab.pod("additional", resources=asks("50"), runtimeClassName=name, affinity=on_node(node))
    assert "Insufficient" in lab.waits("additional")
    lab.pod("small", resources=asks("50"), affinity=on_node(node))
    lab.runs("small")


def test_a_node_selector_is_respected(lab: Lab) -> None:
    lab.pod("nowhere", nodeSelector={"label": "nonempty"})
    assert "didn't match Pod's node affinity/selector" in lab.waits("nowhere")
    node = lab.nodes()[1]
    lab.label(node, e2e="42")
    lab.pod("with-labels", nodeSelector={HOSTNAME: node, "e2e": "42"})
    lab.runs("with-labels")
    assert lab.node_of("with-labels") == node


def test_required_node_affinity_is_respected(lab: Lab) -> None:
    lab.pod("restricted", affinity=with_label("foo", "bar", "value2"))
    lab.waits("restricted")
    node = lab.nodes()[2]
    lab.label(node, foo="value2")
    lab.runs("restricted")
    assert lab.node_of("restricted") == node


def test_taints_and_tolerations_are_respected(lab: Lab) -> None:
    node = lab.nodes()[0]
    taint = {"key": "e2e-taint", "value": "value", "effect": "NoSchedule"}
    lab.change(f"/api/v1/nodes/{node}", {"spec": {"taints": [taint]}})
    lab.pod("tolerant", nodeSelector={HOSTNAME: node}, tolerations=[taint])
    lab.runs("tolerant")
    lab.pod("intolerant", nodeSelector={HOSTNAME: node})
    assert "untolerated taint" in lab.waits("intolerant")


def port(host_ip: str, protocol: str = "TCP") -> list[Json]:
    return [{"containerPort": 80, "hostPort": 54321, "hostIP": host_ip, "protocol": protocol}]


def test_host_ports_conflict_by_address_and_protocol(lab: Lab) -> None:
    affinity = on_node(lab.nodes()[0])
    lab.pod("pod1", ports=port("127.0.0.1"), affinity=affinity)
    lab.pod("pod2", ports=port("10.0.0.9"), affinity=affinity)
    lab.pod("pod3", ports=port("10.0.0.9", "UDP"), affinity=affinity)
    lab.runs("pod1", "pod2", "pod3")
    lab.pod("pod4", ports=port("0.0.0.0"), affinity=affinity)  # noqa: S104  only a name here
    assert "didn't have free ports" in lab.waits("pod4")


def spread(when: str, key: str, app: str) -> list[Json]:
    return [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": when,
            "labelSelector": {"matchLabels": {"app": app}},
        }
    ]


def test_pods_with_a_skew_of_one_are_spread_over_two_nodes(lab: Lab) -> None:
    key, nodes = "e2e.test/spread", lab.nodes()[:2]
    for node in nodes:
        lab.label(node, **{key: node})
    for index in range(4):
        lab.pod(
            f"spread-{index}",
            labels={"app": "spread"},
            affinity=with_label(key, *nodes),
            topologySpreadConstraints=spread("DoNotSchedule", key, "spread"),
        )
    lab.runs(*(f"spread-{index}" for index in range(4)))
    placed = sorted(lab.node_of(f"spread-{index}") for index in range(4))
    assert placed == sorted(nodes * 2)


def test_a_pod_with_scheduling_gates_waits_for_their_removal(lab: Lab) -> None:
    lab.pod("gated", schedulingGates=[{"name": "foo"}, {"name": "bar"}])
    condition = lab.get("gated")["status"]["conditions"][0]
    assert (condition["reason"], condition["status"]) == ("SchedulingGated", "False")
    lab.change(lab.path("pods", "gated"), {"spec": {"schedulingGates": [{"name": "foo"}]}})
    assert not lab.node_of("gated")
    lab.change(lab.path("pods", "gated"), {"spec": {"schedulingGates": None}})
    lab.runs("gated")


def priority_class(lab: Lab, name: str, value: int) -> str:
    made = f"{lab.namespace}-{name}"
    item = {"metadata": {"name": made}, "value": value}
    lab.fine("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", item)
    return made


def test_basic_preemption(lab: Lab) -> None:
    low, medium, high = (
        priority_class(lab, *each) for each in (("low", 1), ("medium", 100), ("high", 1000))
    )
    nodes = lab.nodes()
    for index, node in enumerate(nodes):
        lab.offer(node, "5")
        priority = low if index == 0 else medium
        affinity = on_node(node)
        lab.pod(
            f"victim-{index}", resources=asks("4"), priorityClassName=priority, affinity=affinity
        )
    lab.runs(*(f"victim-{index}" for index in range(len(nodes))))
    lab.pod("preemptor", resources=asks("4"), priorityClassName=high)
    lab.runs("preemptor")
    lab.gone("victim-0")
    assert lab.node_of("preemptor") == nodes[0]
    assert all(lab.node_of(f"victim-{index}") for index in range(1, len(nodes)))


def test_a_critical_pod_preempts_lower_priorities(lab: Lab) -> None:
    low = priority_class(lab, "low", 1)
    node = lab.nodes()[0]
    lab.offer(node, "5")
    lab.pod("victim", resources=asks("3"), priorityClassName=low, affinity=on_node(node))
    lab.runs("victim")
    critical = {
        "metadata": {"name": f"critical-{lab.namespace}", "namespace": "kube-system"},
        "spec": {
            "priorityClassName": "system-cluster-critical",
            "affinity": on_node(node),
            "containers": [{"name": "c", "image": "pause:3", "resources": asks("3")}],
        },
    }
    lab.fine("POST", "/api/v1/namespaces/kube-system/pods", critical)
    path = f"/api/v1/namespaces/kube-system/pods/critical-{lab.namespace}"
    lab.process.until(lambda: bool(lab.fine("GET", path)["spec"].get("nodeName")), 40)
    lab.gone("victim")
    lab.fine("DELETE", path, {"gracePeriodSeconds": 0})


def test_a_preempted_pod_says_that_it_was_disrupted(lab: Lab) -> None:
    low, high = priority_class(lab, "low", 1), priority_class(lab, "high", 1000)
    node = lab.nodes()[0]
    lab.offer(node, "1")
    victim = lab.pod("victim", resources=asks("1"), priorityClassName=low, affinity=on_node(node))
    lab.runs("victim")
    lab.change(
        lab.path("pods", "victim"), {"metadata": {"finalizers": ["example.com/test-finalizer"]}}
    )
    lab.pod("preemptor", resources=asks("1"), priorityClassName=high, affinity=on_node(node))

    def disrupted() -> Json:
        found = lab.get("victim")["status"].get("conditions") or ()
        return next((each for each in found if each["type"] == "DisruptionTarget"), {})

    lab.process.until(lambda: bool(disrupted()), 40)
    assert disrupted()["reason"] == "PreemptionByScheduler"
    assert lab.get("victim")["metadata"]["uid"] == victim["metadata"]["uid"]
    lab.change(lab.path("pods", "victim"), {"metadata": {"finalizers": None}})
    lab.gone("victim")


def test_higher_priorities_come_first_while_victims_take_long_to_stop(lab: Lab) -> None:
    low, medium, high = (
        priority_class(lab, *each) for each in (("low", 1), ("medium", 100), ("high", 1000))
    )
    node = lab.nodes()[0]
    lab.offer(node, "4")
    hook = {"preStop": {"sleep": {"seconds": 79}}}
    lows = [f"low-{index}" for index in range(4)]
    for name in lows:
        lab.pod(
            name,
            resources=asks("1"),
            priorityClassName=low,
            affinity=on_node(node),
            lifecycle=hook,
            terminationGracePeriodSeconds=80,
        )
    lab.runs(*lows)
    mediums = [f"medium-{index}" for index in range(4)]
    for name in mediums:
        lab.pod(name, resources=asks("1"), priorityClassName=medium, affinity=on_node(node))
    lab.process.until(lambda: all("deletionTimestamp" in lab.get(n)["metadata"] for n in lows), 40)
    highs = [f"high-{index}" for index in range(2)]
    for name in highs:
        lab.pod(name, resources=asks("1"), priorityClassName=high, affinity=on_node(node))
    nominated = [node] * len(highs)
    lab.process.until(
        lambda: [lab.get(n)["status"].get("nominatedNodeName") for n in highs] == nominated, 40
    )
    assert not any(lab.node_of(name) for name in (*mediums, *highs))
    for name in lows:
        lab.send("DELETE", lab.path("pods", name), {"gracePeriodSeconds": 0})
    lab.runs(*highs)
    lab.process.until(lambda: sum(bool(lab.node_of(name)) for name in mediums) == 2, 40)


def test_replica_sets_of_rising_priority_preempt_each_other(lab: Lab) -> None:
    node = lab.nodes()[0]
    lab.offer(node, "10")
    api = "/apis/apps/v1"
    for index, (replicas, amount) in enumerate(((5, "1"), (4, "1"), (4, "1"), (1, "3"))):
        name = f"rs-pod{index + 1}"
        priority = priority_class(lab, f"p{index + 1}", index + 1)
        container = {"name": "app", "image": "pause:3", "resources": asks(amount)}
        spec = {
            "containers": [container],
            "priorityClassName": priority,
            "affinity": on_node(node),
            "terminationGracePeriodSeconds": 0,
        }
        template = {"metadata": {"labels": {"name": name}}, "spec": spec}
        selector = {"matchLabels": {"name": name}}
        body = {"replicas": replicas, "selector": selector, "template": template}
        item = {"metadata": {"name": name}, "spec": body}
        lab.fine("POST", lab.path("replicasets", api=api), item)
        lab.process.until(lambda n=name, r=replicas: placed(lab, n) == r, 40)  # type: ignore[misc]
    lab.process.until(
        lambda: [placed(lab, f"rs-pod{index}") for index in (1, 2, 3, 4)] == [0, 3, 4, 1], 40
    )


def placed(lab: Lab, name: str) -> int:
    listed = lab.process.items(f"{lab.path('pods')}?labelSelector=name%3D{name}")
    active = [each for each in listed if "deletionTimestamp" not in each["metadata"]]
    return sum(bool(each["spec"].get("nodeName")) for each in active)


def test_priority_classes_can_be_operated_with_all_methods(lab: Lab) -> None:
    name = priority_class(lab, "p1", 1)
    path = f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}"
    found = lab.fine("GET", path)
    code, refused = lab.send("PUT", path, found | {"value": 2})
    assert (code, refused["reason"]) == (422, "Invalid")
    found["metadata"]["resourceVersion"] = "0"
    assert lab.fine("PUT", path, found | {"description": "new"})["description"] == "new"
    assert lab.change(path, {"description": "newer"})["description"] == "newer"
    lab.fine("DELETE", path)
    assert lab.send("GET", path)[0] == 404


def test_a_pod_prefers_nodes_away_from_those_it_repels(lab: Lab) -> None:
    node = lab.nodes()[0]
    lab.pod("first", labels={"security": "S1"}, affinity=on_node(node))
    lab.runs("first")
    term = {
        "topologyKey": HOSTNAME,
        "labelSelector": {"matchLabels": {"security": "S1"}},
        "namespaces": [lab.namespace],
    }
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    anti = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    lab.pod("second", affinity=anti)
    lab.runs("second")
    assert lab.node_of("second") != node


def test_a_pod_prefers_the_node_whose_taint_it_tolerates(lab: Lab) -> None:
    chosen, *others = lab.nodes()
    for index, node in enumerate([chosen, *others]):
        taint = {"key": f"e2e-{index}", "value": "v", "effect": "PreferNoSchedule"}
        lab.change(f"/api/v1/nodes/{node}", {"spec": {"taints": [taint]}})
    toleration = {"key": "e2e-0", "value": "v", "effect": "PreferNoSchedule"}
    lab.pod("tolerant", tolerations=[toleration])
    lab.runs("tolerant")
    assert lab.node_of("tolerant") == chosen


def test_a_pod_prefers_the_node_that_makes_the_spread_more_even(lab: Lab) -> None:
    first, second = lab.nodes()[:2]
    for index in range(4):
        labels = {"app": "even"}
        lab.pod(f"even-{index}", labels=labels, affinity=on_node(first))
    lab.runs(*(f"even-{index}" for index in range(4)))
    lab.pod(
        "next",
        labels={"app": "even"},
        affinity=with_label(HOSTNAME, first, second),
        topologySpreadConstraints=spread("ScheduleAnyway", HOSTNAME, "even"),
    )
    lab.runs("next")
    assert lab.node_of("next") == second


def test_pods_of_a_service_spread_over_zones(lab: Lab) -> None:
    spec = {"selector": {"app": "svc"}, "ports": [{"port": 80}]}
    service = {"metadata": {"name": "svc"}, "spec": spec}
    lab.fine("POST", lab.path("services"), service)
    names = [f"svc-{index}" for index in range(7)]
    for name in names:
        lab.pod(name, labels={"app": "svc"})
    lab.runs(*names)
    zones = {
        each["metadata"]["name"]: each["metadata"]["labels"][ZONE]
        for each in lab.process.items("/api/v1/nodes")
    }
    counts = [0] * 2
    for name in names:
        counts[sorted(set(zones.values())).index(zones[lab.node_of(name)])] += 1
    assert min(counts) >= 2


def test_a_limit_range_gives_requests_and_refuses_what_is_out_of_bounds(lab: Lab) -> None:
    limit = {
        "type": "Container",
        "min": {"cpu": "50m", "memory": "100Mi", "ephemeral-storage": "1Gi"},
        "max": {"cpu": "500m", "memory": "500Mi", "ephemeral-storage": "5Gi"},
        "default": {"cpu": "500m", "memory": "500Mi", "ephemeral-storage": "5Gi"},
        "defaultRequest": {"cpu": "100m", "memory": "200Mi", "ephemeral-storage": "2Gi"},
    }
    item = {"metadata": {"name": "limits"}, "spec": {"limits": [limit]}}
    lab.fine("POST", lab.path("limitranges"), item)
    made = lab.pod("plain")
    assert made["spec"]["containers"][0]["resources"] == {
        "requests": limit["defaultRequest"],
        "limits": limit["default"],
    }
    for amount in ("10m", "600m"):
        small = {"metadata": {"name": "wrong"}, "spec": {"containers": [
            {"name": "c", "image": "pause:3", "resources": {"requests": {"cpu": amount}}}
        ]}}  # fmt: skip
        code, refused = lab.send("POST", lab.path("pods"), small)
        expected = (403, "Forbidden") if amount == "10m" else (422, "Invalid")
        assert (code, refused["reason"]) == expected
    lower = {"spec": {"limits": [limit | {"min": {"cpu": "9m"}}]}}
    lab.change(lab.path("limitranges", "limits"), lower)
    lab.pod("small", resources={"requests": {"cpu": "10m"}})
    lab.fine("DELETE", f"{lab.path('limitranges')}?labelSelector=none%3Dhere")
    lab.fine("DELETE", lab.path("limitranges", "limits"))
    assert lab.pod("free")["spec"]["containers"][0]["resources"] == {}
