"""Many objects at once, and everything that ever happened to them."""

from __future__ import annotations

import asyncio
import base64
import json
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

import manifests
from control_plane.harness import ADMIN, PODS, ControlPlane
from podium.kube.access import load_access
from podium.kube.client import ApiClient
from podium.kube.errors import ApiError

_LAST = "/podium-tests/last"


def create_many(
    plane: ControlPlane, path: str, objects: Iterable[Mapping[str, Any]], *, at_once: int = 16
) -> None:
    """Create objects in the collection at *path*, about a thousand per second, in no order."""
    waiting = iter(objects)

    async def run() -> None:
        async with ApiClient(load_access(plane.kubeconfig(ADMIN)), connections=at_once) as client:

            async def work() -> None:
                for each in waiting:
                    await client.request("POST", path, body=msgspec.json.encode(each), timeout=60)

            await asyncio.gather(*(work() for _ in range(at_once)))

    asyncio.run(run())


def delete_all(plane: ControlPlane, *, pods: str = PODS) -> None:
    """No pods in the default namespace, no nodes, no events: the next test begins afresh."""

    async def run() -> None:
        async with ApiClient(load_access(plane.kubeconfig(ADMIN)), connections=16) as client:
            listed = await client.get(pods)
            names = iter([item["metadata"]["name"] for item in listed["items"]])

            async def work() -> None:
                for name in names:
                    try:
                        await client.delete(f"{pods}/{name}", {"gracePeriodSeconds": 0})
                    except ApiError as error:
                        if error.status != 404:
                            raise

            await asyncio.gather(*(work() for _ in range(16)))
            for path in ("/api/v1/nodes", "/api/v1/namespaces/default/events"):
                await client.request("DELETE", path, timeout=120)

    asyncio.run(run())


def nodes(
    count: int, *, prefix: str = "node", cpu: str = "4", memory: str = "32Gi"
) -> Iterator[dict[str, Any]]:
    """Nodes that are ready and all the same."""
    for number in range(count):
        name = f"{prefix}-{number:05d}"
        yield manifests.node(name, cpu, memory, labels={"kubernetes.io/hostname": name})


def pods(
    count: int,
    *,
    prefix: str = "pod",
    scheduler: str = "podium",
    cpu: str = "100m",
    memory: str = "200Mi",
    **spec: Any,
) -> Iterator[dict[str, Any]]:
    """Pods that are all the same."""
    requests = {"cpu": cpu, "memory": memory}
    container = {"name": "c", "image": "i", "resources": {"requests": requests}}
    for number in range(count):
        yield {
            "metadata": {"name": f"{prefix}-{number:05d}", "labels": {"app": prefix}},
            "spec": {"schedulerName": scheduler, "containers": [container], **spec},
        }


# What etcd remembers ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """One write of one object."""

    revision: int
    #: `namespace/name`, or just the name.
    key: str
    #: As it was stored; None when it was deleted.
    stored: Any


def revision(plane: ControlPlane) -> int:
    """Where the history is just now."""
    answer = _etcd(plane, "kv/range", {"key": _encoded("/")})
    return int(answer["header"]["revision"])


def compact(plane: ControlPlane) -> int:
    """Etcd forgets everything but the present; its revision."""
    now = revision(plane)
    _etcd(plane, "kv/compaction", {"revision": str(now), "physical": True})
    return now


def history(plane: ControlPlane, resource: str, since: int = 1) -> list[Change]:
    """Every write of a resource (`pods`, `nodes`, `events`…) after a revision, in order.

    Read from etcd itself, so nothing is missing and no API server has a say in it.
    """
    _etcd(plane, "kv/put", {"key": _encoded(_LAST), "value": _encoded("")})
    asked = {"key": _encoded("/"), "range_end": _encoded("0"), "start_revision": str(since + 1)}
    request = urllib.request.Request(
        f"{plane.etcd}/v3/watch", json.dumps({"create_request": asked}).encode()
    )
    prefix = f"{_prefix(resource)}/"
    changes = []
    with urllib.request.urlopen(request, timeout=60) as stream:
        for line in stream:
            answer = json.loads(line)["result"]
            if answer.get("canceled"):
                raise RuntimeError(f"the history is compacted: {answer}")
            ended = False
            for event in answer.get("events", ()):
                key = base64.b64decode(event["kv"]["key"]).decode()
                ended = ended or key == _LAST
                if key.startswith(prefix):
                    value = event["kv"].get("value")
                    stored = json.loads(base64.b64decode(value)) if value else None
                    number = int(event["kv"]["mod_revision"])
                    changes.append(Change(number, key.removeprefix(prefix), stored))
            if ended and _is_last(plane, answer):
                return changes
    raise RuntimeError("etcd ended the watch")


def _is_last(plane: ControlPlane, answer: Any) -> bool:
    """Whether the mark in this batch is ours, not one of an earlier reading."""
    kept = _etcd(plane, "kv/range", {"key": _encoded(_LAST)})["kvs"][0]["mod_revision"]
    return any(event["kv"]["mod_revision"] == kept for event in answer["events"])


def _prefix(resource: str) -> str:
    return f"/registry/{'minions' if resource == 'nodes' else resource}"


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _etcd(plane: ControlPlane, call: str, body: Mapping[str, Any]) -> Any:
    request = urllib.request.Request(f"{plane.etcd}/v3/{call}", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)
