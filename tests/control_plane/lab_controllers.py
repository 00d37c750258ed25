"""The controllers of the lab, working on a real API server.

A turn reads the whole cluster into the store of a lab, lets its controllers and kubelets come to
rest there, and makes what they wrote on the API server: objects that they created or deleted, and
the status of pods and disruption budgets. Schedulers are not part of it.
"""

from __future__ import annotations

import urllib.error
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any, Final

from control_plane.harness import ADMIN, ControlPlane
from podium.kube.access import load_access
from podium.virtual_cluster.cluster import SimulatedCluster
from podium.what_if.plan.cluster_copy import TIMINGS
from podium.what_if.plan.inputs import live_documents
from waiting import until

Item = dict[str, Any]

#: What controllers write, owners before what they own, and where that is on the API server.
_WRITTEN: Final = {
    "ReplicaSet": "/apis/apps/v1/namespaces/default/replicasets",
    "ControllerRevision": "/apis/apps/v1/namespaces/default/controllerrevisions",
    "PodDisruptionBudget": "/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets",
    "Pod": "/api/v1/namespaces/default/pods",
}
#: Kinds whose status is carried over.
_REPORTED: Final = frozenset({"PodDisruptionBudget", "Pod"})
_AT_ONCE: Final = {"gracePeriodSeconds": 0}
_GIVEN_BY_SERVER: Final = ("uid", "resourceVersion", "creationTimestamp", "generation")
#: Whatever has happened before: another program may have been faster.
_TOO_LATE: Final = frozenset({404, 409})


class LabControllers:
    """Takes turns until nothing more follows."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._access = load_access(str(plane.kubeconfig(ADMIN)), None, None)
        self._turns = count()

    def kubectl(self, *arguments: str) -> None:
        """Run a command while controllers work, and let the cluster come to rest."""
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(self._plane.kubectl, *arguments)
            self.rest(done.done)
            done.result()

    def rest(self, is_done: Callable[[], bool] = lambda: True, seconds: float = 240) -> None:
        """Take turns until one changes nothing after *is_done* and after every pod was tried."""

        def rests() -> bool:
            done = is_done() and self._all_tried()
            return not self.turn() and done

        until("the cluster comes to rest", rests, seconds)

    def _all_tried(self) -> bool:
        pods = self._plane.get(_WRITTEN["Pod"])["items"]
        return all(
            each["spec"].get("nodeName")
            or any(c["type"] == "PodScheduled" for c in each["status"].get("conditions") or ())
            for each in pods
        )

    def turn(self) -> int:
        """One turn; how many requests it made."""
        found = live_documents(self._access)
        before = {
            each.item["metadata"]["uid"]: each.item
            for each in found.documents
            if each.kind in _WRITTEN
        }
        statuses = {uid: _status(each) for uid, each in before.items()}
        known = {each.item["metadata"]["uid"] for each in found.documents}
        seed = next(self._turns)
        with SimulatedCluster(seed=seed, start=found.read_at or 0, kubelet=TIMINGS) as lab:
            lab.load(found.documents)
            lab.run_until_quiet(120)
            after = {kind: lab.registry.list(kind) for kind in _WRITTEN}
        left = {each["metadata"]["uid"] for items in after.values() for each in items}
        writes = [
            write
            for kind, items in after.items()
            for each in items
            for write in self._writes(kind, each, known, statuses)
        ]
        writes += [
            ("DELETE", f"{_WRITTEN[each['kind']]}/{each['metadata']['name']}", _AT_ONCE, "json")
            for uid, each in before.items()
            if uid not in left
        ]
        return sum(self._make(*write) for write in writes)

    def _writes(
        self, kind: str, item: Item, known: set[str], statuses: dict[str, Item]
    ) -> Iterator[tuple[str, str, Item, str]]:
        about, path = item["metadata"], _WRITTEN[kind]
        if about["uid"] not in known:
            owners = {each["uid"] for each in about.get("ownerReferences") or ()}
            if owners <= known:  # else the owner comes first
                metadata = {k: v for k, v in about.items() if k not in _GIVEN_BY_SERVER}
                yield "POST", path, {**item, "metadata": metadata}, "json"
        elif kind in _REPORTED and _status(item) != statuses[about["uid"]]:
            patch = {"status": item["status"]}
            yield "PATCH", f"{path}/{about['name']}/status", patch, "merge-patch+json"

    def _make(self, method: str, path: str, body: Item, kind: str) -> bool:
        try:
            self._plane.call(method, path, body, kind)
        except urllib.error.HTTPError as error:
            if error.code not in _TOO_LATE:
                raise AssertionError(f"{method} {path}: {error.read().decode()}") from None
        return True


def _status(item: Item) -> Item:
    """The part of the status that others depend on."""
    status = item.get("status") or {}
    ready = [
        (c["type"], c["status"]) for c in status.get("conditions") or () if c["type"] == "Ready"
    ]
    names = ("phase", "disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    return {"ready": ready, **{name: status.get(name) for name in names}}
