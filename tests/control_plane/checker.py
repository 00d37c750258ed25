"""Proof from etcd's own history: every pod bound exactly once, no node ever too full."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from control_plane.bulk import history
from control_plane.harness import ControlPlane
from podium.objects.quantity import milli, value


@dataclass
class Account:
    """What happened to pods and nodes since some revision."""

    #: uid -> the nodes it was bound to, in order. One is right.
    bindings: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    #: uid -> `namespace/name`, of every pod that was made.
    names: dict[str, str] = field(default_factory=dict)
    #: uids of the pods that are there at the end.
    left: set[str] = field(default_factory=set)
    #: Where a node had more than it can take.
    excesses: list[str] = field(default_factory=list)

    def node_of(self, name: str) -> str:
        """Where the last pod of this name in the default namespace went; nothing: nowhere."""
        uid = [uid for uid, key in self.names.items() if key == f"default/{name}"][-1]
        return (self.bindings.get(uid) or [""])[-1]


def account(plane: ControlPlane, since: int) -> Account:
    """Read the history and add it up, write by write."""
    told = Account()
    ledger = _Ledger()
    changes = [("node", c) for c in history(plane, "nodes", since)]
    changes += [("pod", c) for c in history(plane, "pods", since)]
    live: dict[str, Any] = {}
    for kind, change in sorted(changes, key=lambda pair: pair[1].revision):
        if kind == "node":
            ledger.put_node(change.key, change.stored)
            continue
        before, live[change.key] = live.get(change.key), change.stored
        _follow(told, before, change.stored)
        ledger.put_pod(change.key, change.stored)
        told.excesses += ledger.excesses(change.revision)
    told.left = {pod["metadata"]["uid"] for pod in live.values() if pod is not None}
    return told


def _follow(told: Account, before: Any, after: Any) -> None:
    if after is None:
        return
    uid = after["metadata"]["uid"]
    told.names[uid] = f"{after['metadata']['namespace']}/{after['metadata']['name']}"
    same = before is not None and before["metadata"]["uid"] == uid
    was = before["spec"].get("nodeName", "") if same else ""
    now = after["spec"].get("nodeName", "")
    if now != was:
        told.bindings[uid].append(now)


class _Ledger:
    """Who uses how much of which node."""

    def __init__(self) -> None:
        self._room: dict[str, Counter[str]] = {}
        self._pods: dict[str, tuple[str, Counter[str]]] = {}
        self._used: dict[str, Counter[str]] = defaultdict(Counter)
        self._touched: set[str] = set()

    def put_node(self, name: str, node: Any) -> None:
        if node is not None:
            self._room[name] = _amounts(node["status"]["allocatable"])

    def put_pod(self, key: str, pod: Any) -> None:
        where, amounts = self._pods.pop(key, ("", Counter()))
        self._used[where].subtract(amounts)
        finished = pod is not None and pod["status"].get("phase") in {"Succeeded", "Failed"}
        if pod is None or finished or not pod["spec"].get("nodeName"):
            return
        where, amounts = pod["spec"]["nodeName"], _wanted(pod)
        self._pods[key] = (where, amounts)
        self._used[where].update(amounts)
        self._touched.add(where)

    def excesses(self, revision: int) -> list[str]:
        """What the last write made too much of."""
        found = []
        for name in self._touched & self._room.keys():
            for resource, amount in self._used[name].items():
                if amount > self._room[name][resource]:
                    room = self._room[name][resource]
                    found.append(f"{name} has {amount} of {room} {resource} at {revision}")
        self._touched.clear()
        return found


def _amounts(resources: dict[str, Any]) -> Counter[str]:
    return Counter(
        {name: milli(raw) if name == "cpu" else value(raw) for name, raw in resources.items()}
    )


def _wanted(pod: Any) -> Counter[str]:
    total = Counter({"pods": 1})
    for container in pod["spec"]["containers"]:
        total.update(_amounts((container.get("resources") or {}).get("requests") or {}))
    return total


def assert_sound(plane: ControlPlane, since: int, scheduler: str = "podium") -> Account:
    """Each pod of the scheduler that is left was bound exactly once, the others at most once."""
    told = account(plane, since)
    twice = {told.names[uid]: nodes for uid, nodes in told.bindings.items() if len(nodes) > 1}
    assert not twice, f"bound more than once: {twice}"
    items = plane.get("/api/v1/namespaces/default/pods")["items"]
    ours = [pod for pod in items if pod["spec"]["schedulerName"] == scheduler]
    lost = [pod["metadata"]["name"] for pod in ours if not pod["spec"].get("nodeName")]
    assert not lost, f"left behind: {lost}"
    uids = {pod["metadata"]["uid"] for pod in ours}
    assert all(len(told.bindings[uid]) == 1 for uid in uids & told.names.keys())
    assert not told.excesses, told.excesses[:5]
    return told
