"""After any sequence of changes the controllers reach the state that the specs ask for."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lab.controllers.managed_cluster import Json, ManagedCluster, template, workload

KINDS = st.sampled_from(["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"])
NAMES = st.sampled_from(["a", "b", "c"])
COUNTS = st.integers(0, 5)
NODES = st.sampled_from(["n0", "n1", "n2"])


class Cluster(RuleBasedStateMachine):
    """Creates, changes and deletes workloads while controllers sync."""

    def __init__(self) -> None:
        super().__init__()
        self.lab = ManagedCluster()
        self.desired: dict[tuple[str, str], int] = {}
        self.quiet = True

    def name_of(self, kind: str, name: str) -> str:
        return f"{kind.lower()}-{name}"

    @rule(kind=KINDS, name=NAMES, replicas=COUNTS)
    def make(self, kind: str, name: str, replicas: int) -> None:
        if (kind, name) in self.desired:
            return
        made = workload(self.name_of(kind, name), replicas)
        if kind == "ReplicationController":
            made["spec"]["selector"] = made["spec"]["selector"]["matchLabels"]
        elif kind == "StatefulSet":
            made["spec"] |= {"serviceName": "x", "podManagementPolicy": "Parallel"}
        self.lab.create(kind, made)
        self.desired[kind, name] = replicas

    @rule(data=st.data(), replicas=COUNTS)
    @precondition(lambda self: self.desired)
    def scale(self, data: st.DataObject, replicas: int) -> None:
        kind, name = data.draw(st.sampled_from(sorted(self.desired)))
        self.lab.edit(kind, self.name_of(kind, name), replicas=replicas)
        self.desired[kind, name] = replicas

    @rule(data=st.data(), number=st.integers(1, 3))
    @precondition(lambda self: self.desired)
    def change_template(self, data: st.DataObject, number: int) -> None:
        kind, name = data.draw(st.sampled_from(sorted(self.desired)))
        full = self.name_of(kind, name)
        self.lab.edit(kind, full, template=template(full, f"app:{number}"))

    @rule(data=st.data(), how=st.sampled_from(["Background", "Foreground"]))
    @precondition(lambda self: self.desired)
    def delete(self, data: st.DataObject, how: str) -> None:
        kind, name = data.draw(st.sampled_from(sorted(self.desired)))
        self.lab.delete(kind, self.name_of(kind, name), how)
        del self.desired[kind, name]
        self.lab.settle(20)  # the name is free again when all is gone

    @rule(which=st.integers(0, 99))
    def delete_pod(self, which: int) -> None:
        names = self.lab.names()
        if names:
            self.lab.delete("Pod", names[which % len(names)])

    @rule(which=st.integers(0, 99))
    def fail_pod(self, which: int) -> None:
        names = [
            pod["metadata"]["name"]
            for pod in self.lab.pods()
            if pod["status"].get("phase") == "Running"
        ]
        if names:
            self.lab.report("Pod", names[which % len(names)], {"phase": "Failed"})

    @rule(name=NODES, cordoned=st.booleans())
    def cordon(self, name: str, cordoned: bool) -> None:
        self.lab.edit("Node", name, unschedulable=cordoned)

    @rule(name=NODES)
    def lose_and_find_node(self, name: str) -> None:
        self.lab.node_is(name, "Unknown")
        self.lab.settle(400)
        self.lab.node_is(name, "True")

    @rule(turns=st.integers(1, 20), seconds=st.floats(0, 1))
    def work_a_little(self, turns: int, seconds: float) -> None:
        for _ in range(turns):
            self.lab.controllers.sync_ready(until=-1.0)
        self.lab.bind()
        self.lab.advance(seconds)

    @rule()
    def restart(self) -> None:
        self.lab.restart()

    @rule()
    def settle(self) -> None:
        for name in ("n0", "n1", "n2"):
            self.lab.edit("Node", name, unschedulable=False)
        self.lab.settle(120)
        self.quiet = True
        self.check_desired()

    def check_desired(self) -> None:
        alive = [pod for pod in self.lab.pods() if pod["status"].get("phase") == "Running"]
        counts: dict[str, int] = {}
        for pod in alive:
            app = pod["metadata"]["labels"]["app"]
            counts[app] = counts.get(app, 0) + 1
        expected = {self.name_of(*key): number for key, number in self.desired.items() if number}
        assert counts == expected
        self.check_owners()
        for (kind, name), number in self.desired.items():
            status = self.lab.status(kind, self.name_of(kind, name))
            assert status.get("readyReplicas", 0) == number

    def check_owners(self) -> None:
        """Every owner that an object names exists."""
        live = {
            each["metadata"]["uid"]
            for kind in ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")
            for each in self.lab.registry.list(kind)
        }
        owned: list[Json] = [*self.lab.pods(), *self.lab.registry.list("ReplicaSet")]
        for each in owned:
            for owner in each["metadata"].get("ownerReferences") or ():
                assert owner["uid"] in live

    @invariant()
    def nothing_is_reported(self) -> None:
        assert self.lab.warnings == []

    @invariant()
    def the_index_is_what_is_stored(self) -> None:
        index = self.lab.controllers.cluster.pods
        stored = {(p["metadata"]["namespace"], p["metadata"]["name"]) for p in self.lab.pods()}
        assert set(index.all) == stored
        for group in index.by_owner.values():
            assert group.active == len(group.active_pods())
            assert group.ready == sum(pod.ready for pod in group.active_pods())

    def teardown(self) -> None:
        self.settle()


TestCluster = Cluster.TestCase
TestCluster.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
