"""The rights in deploy/rbac.yaml: a scheduler uses every one of them, and needs no other.

One scenario makes a scheduler do everything that it ever does. It runs on the API server of the
lab, which serves every kind, and on a real one, which refuses what the role does not allow.
"""

from __future__ import annotations

import time
import urllib.error
from collections.abc import Iterable, Mapping
from contextlib import suppress
from copy import deepcopy
from typing import Any
from urllib.parse import parse_qs

import pytest
import yaml

from control_plane.harness import ROOT, ControlPlane
from control_plane.proxy import Proxy
from host.test_deploy import applied, manifests, refusals, running, spaces
from manifests import manifest, node
from podium.host.cluster_run import Lease
from podium.kube.connections import Answer
from podium.kube.lease import LeaseTimes
from podium.library.profile_source import ProfileSource
from podium.scheduler.placing.device_claims import CLAIMS
from podium.virtual_cluster.cluster import ReplicaOptions, SimulatedCluster
from podium.virtual_cluster.in_process_api import InProcessApi

__all__ = ["spaces"]  # a fixture

Manifest = dict[str, Any]
Request = tuple[str, str]
#: Verb, group, resource.
Right = tuple[str, str, str]
#: What an API server asks for besides a right for the request itself.
SYNTHETIC = frozenset({"resourceclaims/binding"})
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def granted() -> set[Right]:
    """What the roles of the scheduler itself allow, but for what is no request."""
    roles = [each for each in manifests(ROOT / "deploy") if "rules" in each]
    own = [each for each in roles if each["metadata"]["name"] in {"podium", "podium-lease"}]
    return {
        (verb, group, resource)
        for role in own
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if resource not in SYNTHETIC
    }


def right(method: str, target: str) -> Right | None:
    """The right that a request needs; None for one that is open to all, or delegated."""
    path, _, query = target.partition("?")
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, rest = "", parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, rest = parts[1], parts[3:]
    else:
        return None
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    if group in {"authentication.k8s.io", "authorization.k8s.io"} or rest[0] == "configmaps":
        return None  # bound to roles that a cluster brings with it
    resource = "/".join([rest[0], *rest[2:]])
    if method != "GET":
        return _VERBS[method], group, resource
    if parse_qs(query).get("watch"):
        return "watch", group, resource
    return ("get" if len(rest) > 1 else "list"), group, resource


def used(requests: Iterable[Request]) -> set[Right]:
    return {found for each in requests if (found := right(*each)) is not None}


def served(rights: Iterable[Right], kinds: Mapping[str, set[str]]) -> set[Right]:
    """The rights to resources that an API server has."""
    return {each for each in rights if each[2] in kinds.get(each[1], set())}


# What makes a scheduler do everything -------------------------------------------------------------


def _pod(name: str, cpu: str = "10m", priority: int = 0, **spec: Any) -> Manifest:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    if "devices" in spec:
        container["resources"] = {
            part: {"example.com/gpu": spec["devices"]} for part in ("requests", "limits")
        }
        spec.pop("devices")
    own = {"schedulerName": "podium", "containers": [container], "priority": priority, **spec}
    about, status = {"uid": f"uid-{name}"}, {"phase": "Pending"}
    return manifest("Pod", name, metadata=about, spec=own, status=status)


def _with_claim(name: str) -> Manifest:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
    return _pod(f"uses-{name}", volumes=[volume])


def _node(name: str) -> Manifest:
    return node(name, "2", labels={"kubernetes.io/hostname": name})


VOLUMES = list(
    yaml.safe_load_all("""
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: made}
provisioner: example.com/disks
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: found}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk, uid: uid-disk}
status: {phase: Available}
spec:
  storageClassName: found
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  hostPath: {path: /disk}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: made, namespace: default}
spec:
  storageClassName: made
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: found, namespace: default}
spec:
  storageClassName: found
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
""")
)
DEVICES = list(
    yaml.safe_load_all("""
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec:
  extendedResourceName: example.com/gpu
  selectors:
    - cel: {expression: 'device.driver == "gpu.example.com"'}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: gpus}
spec:
  driver: gpu.example.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-1}, {name: gpu-2}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: one, namespace: default}
spec:
  devices:
    requests:
      - name: gpu
        exactly: {deviceClassName: gpu}
""")
)
#: A pod with a claim, and one with an extended resource, for which a claim is made.
WITH_DEVICES = [
    _pod("claims", resourceClaims=[{"name": "gpu", "resourceClaimName": "one"}]),
    _pod("extended", devices="1"),
]
#: A group and its pod; read and written with the gate only.
GROUP = list(
    yaml.safe_load_all("""
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: together, namespace: default}
spec:
  schedulingPolicy:
    gang: {minCount: 1}
""")
)
GROUP.append(_pod("member", schedulingGroup={"podGroupName": "together"}))
GROUP_RIGHTS = {
    ("list", "scheduling.k8s.io", "podgroups"),
    ("watch", "scheduling.k8s.io", "podgroups"),
    ("patch", "scheduling.k8s.io", "podgroups/status"),
}
#: Whose binding is refused once: its claim is deleted, and made again.
REFUSED = "/pods/extended/binding"
#: Whose binding is carried out, though the answer says otherwise: the pod is read.
DOUBTFUL = "/pods/low-1/binding"
#: The write of a claim that is carried out, though the answer says otherwise: the claim is read.
DOUBTFUL_CLAIM = "/resourceclaims/one/status"
LOW = [_pod("low-1", "1500m", 1), _pod("low-2", "1500m", 1)]
#: Pods that fit nowhere, one of which evicts others; and those with volumes.
LATER = [
    _pod("giant", "64", 5),
    _pod("high", "1500m", 10),
    _with_claim("made"),
    _with_claim("found"),
]


# On the API server of the lab ---------------------------------------------------------------------


class _Noting(InProcessApi):
    """Notes every request, and answers some of them wrongly, once."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        super().__init__(cluster.server)
        self.requests: list[Request] = []
        self.doubtful = [DOUBTFUL, DOUBTFUL_CLAIM]
        self.refused = [REFUSED]

    async def exchange(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        body: bytes | None,
        content_type: str,
    ) -> Answer:
        self.requests.append((method, path))
        for each in self.refused:
            if path.endswith(each):
                self.refused.remove(each)
                return Answer(400, {}, b"{}")
        answer = await super().exchange(method, path, params, body, content_type)
        for each in self.doubtful:
            if path.endswith(each):
                self.doubtful.remove(each)
                return Answer(500, {}, b"{}")
        return answer

    def stream(self, path: str, params: Mapping[str, str], *, idle_seconds: float) -> Any:
        self.requests.append(("GET", f"{path}?watch=1"))
        return super().stream(path, params, idle_seconds=idle_seconds)


@pytest.mark.parametrize(
    ("generation", "groups"),
    [("v1.37", True), ("v1.37", False), ("v1.36", False), ("v1.13", False)],
)
def test_a_scheduler_uses_every_right_and_no_other(generation: str, *, groups: bool) -> None:
    flags: dict[str, Any] = {"scheduler_name": "podium"}
    if groups:
        flags["feature_gates"] = ({"GenericWorkload": True},)
    if generation == "v1.13":
        flags["provider"] = "DefaultProvider"
    else:
        flags["profile"] = generation
    times = LeaseTimes()
    with SimulatedCluster(controllers=False) as cluster:
        api = _Noting(cluster)
        cluster.load(deepcopy([_node("n1"), _node("n2"), *VOLUMES, *DEVICES]))
        cluster.load(deepcopy([*WITH_DEVICES, *LOW, *GROUP]))
        chosen = ProfileSource(environment={}, **flags).choose()
        options = ReplicaOptions(lease=Lease("podium-system", "podium", times))
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "podium-system"}}
        cluster.load([space])
        cluster.add_scheduler(chosen, client=api, options=options)
        cluster.run_for(60)
        cluster.load(deepcopy(LATER))
        cluster.run_for(60)
        cluster.load([_node("n3")])  # nothing for the giant, which is told again
        cluster.run_for(900)

    found = used(api.requests)
    expected = granted() if groups else granted() - GROUP_RIGHTS
    events = {("create", "", "events"), ("patch", "", "events")}
    newer = {(verb, "events.k8s.io", "events") for verb, _, _ in events}
    if generation == "v1.37":
        assert found == expected - events
    elif generation == "v1.36":
        rules = {(verb, "resource.k8s.io", "devicetaintrules") for verb in ("list", "watch")}
        assert found == expected - events - rules
    else:
        assert found <= expected
        assert events <= found
        assert not newer & found


# On a real API server -----------------------------------------------------------------------------


def _collection(item: Manifest) -> str:
    version, space = item["apiVersion"], item["metadata"].get("namespace")
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    plural = f"{item['kind'].lower()}{'es' if item['kind'].endswith('s') else 's'}"
    return f"{root}/namespaces/{space}/{plural}" if space else f"{root}/{plural}"


def _create(plane: ControlPlane, items: Iterable[Manifest]) -> None:
    for item in items:
        path = _collection(item)
        made = plane.post(path, item)
        if item["kind"] == "PersistentVolume":
            made["status"] = item["status"]
            plane.call("PUT", f"{path}/{made['metadata']['name']}/status", made)


def _kinds(plane: ControlPlane) -> dict[str, set[str]]:
    """The resources of each group."""
    groups = {"": ["/api/v1"]}
    for each in plane.get("/apis")["groups"]:
        groups[each["name"]] = [f"/apis/{version['groupVersion']}" for version in each["versions"]]
    return {
        name: {each["name"] for root in roots for each in plane.get(root)["resources"]}
        for name, roots in groups.items()
    }


@pytest.fixture
def empty(spaces: ControlPlane) -> Any:
    """A real API server, from which everything that a test made is removed again."""
    everything = [*VOLUMES, *DEVICES, *WITH_DEVICES, *LOW, *LATER]
    spaces.clear_nodes()
    leases = "/apis/coordination.k8s.io/v1/namespaces/podium-system/leases"
    for lease in spaces.get(leases)["items"]:  # of other tests: a scheduler creates its own
        spaces.call("DELETE", f"{leases}/{lease['metadata']['name']}")
    yield spaces
    spaces.clear_nodes()
    paths = [f"{_collection(item)}/{item['metadata']['name']}" for item in everything]
    with suppress(urllib.error.HTTPError):  # claims that the scheduler made for its pods as well
        claims = spaces.get(CLAIMS.format("default"))["items"]
        paths += [f"{CLAIMS.format('default')}/{each['metadata']['name']}" for each in claims]
    for path in paths:
        with suppress(urllib.error.HTTPError):
            spaces.call("PATCH", path, {"metadata": {"finalizers": None}}, "merge-patch+json")
            spaces.call("DELETE", path, {"gracePeriodSeconds": 0})


def test_a_real_api_server_allows_all_that_is_done_and_all_that_is_allowed_is_done(
    empty: ControlPlane,
) -> None:
    kinds = _kinds(empty)
    has_devices = "deviceclasses" in kinds.get("resource.k8s.io", set())
    _create(empty, [_node("n1"), _node("n2"), *VOLUMES])
    if has_devices:
        _create(empty, [*DEVICES, *WITH_DEVICES])
    _create(empty, LOW)
    with Proxy(empty) as proxy, applied(empty, "."):
        proxy.answer("POST", DOUBTFUL, 500, times=1, carried_out=True)
        proxy.answer("PATCH", DOUBTFUL_CLAIM, 500, times=1, carried_out=True)
        proxy.answer("POST", REFUSED, 400, times=1)
        with running(empty, ".", url=proxy.url) as (_, program):
            program.wait_for("both are bound", lambda: all(map(empty.node_of, ("low-1", "low-2"))))
            _create(empty, LATER)
            if has_devices:

                def devices_taken() -> bool:
                    # In v1.36 a claim that goes wakes no pod, as in kube-scheduler; a node does.
                    label = {"metadata": {"labels": {"looked-at": str(time.monotonic_ns())}}}
                    empty.call("PATCH", "/api/v1/nodes/n1", label, "merge-patch+json")
                    return all(map(empty.node_of, ("claims", "extended")))

                program.wait_for("devices", devices_taken)

            expected = served(granted() - GROUP_RIGHTS, kinds)  # the gate is off
            expected -= {("create", "", "events"), ("patch", "", "events")}
            program.wait_for(
                "volumes", lambda: ("patch", "", "persistentvolumes") in used(proxy.requests)
            )

            def all_used() -> bool:
                # A pod that goes wakes the giant, about which the same is said again.
                _create(empty, [_pod("passing", nodeName="n1")])
                empty.delete_pod("passing")
                time.sleep(0.5)
                return expected <= used(proxy.requests)

            with suppress(TimeoutError):  # the assertion names what is missing
                program.wait_for("every right is used", all_used)

        assert used(proxy.requests) == expected
        assert refusals(program) == []


def test_an_allocation_is_changed_by_the_verb_of_its_request_alone() -> None:
    [role] = [
        each
        for each in manifests(ROOT / "deploy")
        if "rules" in each and each["metadata"]["name"] == "podium"
    ]
    verbs = {
        resource: rule["verbs"]
        for rule in role["rules"]
        for resource in rule["resources"]
        if resource in {"resourceclaims/status", "resourceclaims/binding"}
    }
    assert verbs == {"resourceclaims/status": ["patch"], "resourceclaims/binding": ["patch"]}
