"""A registry with all controllers on a virtual clock, and a scheduler that binds pods in turn."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import count
from typing import Any

from lab.controllers.virtual_clock import VirtualClock
from podium.lab.api.options import DeleteOptions, WriteOptions
from podium.lab.controllers.fake_kubelet import KubeletTimings
from podium.lab.controllers.manager import ControllerManager
from podium.lab.registry import subresources
from podium.lab.registry.registry import Registry
from podium.lab.store.store import Store

Json = dict[str, Any]


class ManagedCluster:
    """Nodes, and controllers that sync until nothing is due; no time passes but by `settle`."""

    def __init__(
        self, *, store: Store | None = None, nodes: int = 3, binds: bool = True, seed: int = 0
    ) -> None:
        self.clock = VirtualClock()
        self.warnings: list[str] = []
        rng = random.Random(seed)  # noqa: S311  the same names and uids every time
        self.registry = Registry(store, clock=self.clock.now, rng=rng)
        self.controllers = self._controllers()
        self.binds = binds
        self._turns = count()
        for number in range(nodes):
            self.create("Node", {"metadata": {"name": f"n{number}"}})
        self.settle()

    def _controllers(self) -> ControllerManager:
        return ControllerManager(
            self.registry,
            self.clock,
            timings=KubeletTimings(0.1, 0.2, 2.0),
            warn=self.warnings.append,
        )

    def restart(self) -> None:
        """New controllers over the same objects."""
        self.controllers.unsubscribe()
        self.controllers = self._controllers()

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def settle(self, seconds: float = 5.0) -> None:
        """Sync and bind whatever becomes due within so many seconds, then let them pass."""
        ends = self.clock.time + seconds
        while True:
            self.controllers.sync_ready()
            if self.binds and self.bind():
                continue
            due = self.controllers.cluster.queue.next_due()
            if due is None or due > ends:
                break
            self.clock.time = max(due, self.clock.time) + 1e-3
        self.clock.time = max(ends, self.clock.time)
        assert self.warnings == []

    def bind(self) -> int:
        """Bind every pending pod to a node, in turn; only its affinity to one node counts."""
        waiting = [pod for pod in self.pods() if not pod["spec"].get("nodeName")]
        ready = [
            node["metadata"]["name"]
            for node in self.registry.list("Node")
            if not node["spec"].get("taints")
        ]
        done = 0
        for pod in waiting:
            node = only_node(pod) or (ready[next(self._turns) % len(ready)] if ready else "")
            if node and "deletionTimestamp" not in pod["metadata"]:
                metadata = pod["metadata"]
                target = {"target": {"kind": "Node", "name": node}}
                place = metadata["namespace"], metadata["name"]
                subresources.bind(self.registry, *place, target, WriteOptions())
                done += 1
        return done

    def leaving(self, *kinds: str) -> list[Json]:
        """The objects of these kinds that go from now on, in their order."""
        gone: list[Json] = []

        def heard(_: str, old: Json | None, new: Json | None) -> None:
            if new is None and old is not None:
                gone.append(old)

        self.registry.subscribe(kinds, heard)
        return gone

    def create(self, kind: str, item: Json) -> Json:
        return self.registry.create(kind, item)

    def get(self, kind: str, name: str, namespace: str = "default") -> Json:
        return self.registry.get(kind, name, namespace)

    def status(self, kind: str, name: str) -> Json:
        found: Json = self.get(kind, name).get("status", {})
        return found

    def condition(self, kind: str, name: str, which: str) -> Json:
        conditions = self.status(kind, name).get("conditions", [])
        return next((each for each in conditions if each["type"] == which), {})

    def pods(self, **labels: str) -> list[Json]:
        return [
            pod
            for pod in self.registry.list("Pod")
            if labels.items() <= (pod["metadata"].get("labels") or {}).items()
        ]

    def names(self, **labels: str) -> list[str]:
        return [pod["metadata"]["name"] for pod in self.pods(**labels)]

    def edit(self, kind: str, name: str, **spec: Any) -> None:
        """Change parts of a specification."""

        def changed(item: Json) -> Json:
            item["spec"].update(spec)
            return item

        self.registry.modify(kind, name, "default", change=changed)

    def delete(self, kind: str, name: str, propagation: str = "Background") -> None:
        self.registry.delete(kind, name, "default", DeleteOptions(propagation=propagation))

    def report(self, kind: str, name: str, status: Mapping[str, Any]) -> None:
        """Write a status."""

        def changed(item: Json) -> Json:
            item["status"] = {**(item.get("status") or {}), **status}
            return item

        self.registry.modify(kind, name, "default", change=changed, subresource="status")

    def node_is(self, name: str, ready: str) -> None:
        """Say whether a node is ready: True, False, Unknown."""
        node = self.registry.get("Node", name)
        others = [each for each in node["status"]["conditions"] if each["type"] != "Ready"]
        self.report("Node", name, {"conditions": [*others, {"type": "Ready", "status": ready}]})


def only_node(pod: Json) -> str:
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in terms.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            return str(field["values"][0])
    return ""


def template(app: str, image: str = "app:1", **spec: Any) -> Json:
    containers = [{"name": "app", "image": image}]
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": containers, **spec}}


def workload(name: str, replicas: int | None = None, image: str = "app:1", **spec: Any) -> Json:
    """A workload whose pods have its name as their `app`."""
    wish = {} if replicas is None else {"replicas": replicas}
    own = {"selector": {"matchLabels": {"app": name}}, "template": template(name, image)}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {**wish, **own, **spec}}


def pod(name: str = "web", **spec: Any) -> Json:
    """A pod without an owner, with its name as its `app`."""
    made = template(name, **spec)
    made["metadata"] |= {"name": name, "namespace": "default"}
    return made


def conditions(item: Json) -> dict[str, str]:
    """The status of an object's conditions by type."""
    return {each["type"]: each["status"] for each in item["status"]["conditions"]}
