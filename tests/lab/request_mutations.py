"""Requests to a lab that nobody would write: good ones, changed at random places.

`Requests` sends requests to the application and its guard in this process, without a socket. The
controllers of the lab see every write, and work between the requests.
"""

from __future__ import annotations

import asyncio
import json
import random
import weakref
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from lab.controllers.virtual_clock import VirtualClock
from podium.lab.controllers.manager import ControllerManager
from podium.lab.http.security import Guard
from podium.lab.http.server import ApiServer
from podium.lab.registry.registry import Registry

Json = dict[str, Any]

#: What takes the place of a value.
STRANGE: list[Any] = [
    None, True, False, 0, -1, 1.5, 2**63, -(2**70), 1e308, "", "x", "é\u0000", "9" * 4301,
    "1e999999", "../..", "a" * 300, [], [None], {}, {"": None}, {"a": {"b": [1, None]}}, [[]], [{}],
    "100%", "-5", [None, "x", {}], {"kind": "Pod"}, "2026-01-01T00:00:00Z", "{{}}", "$(x)",
    {"$patch": "delete"}, {"$patch": None}, [{"$patch": "replace"}], {"$retainKeys": [1]},
    {"$setElementOrder/containers": [{"name": 1}]}, {"$deleteFromPrimitiveList/finalizers": "x"},
    {"matchExpressions": [{"key": "a", "operator": "In"}]}, "1Ki", "1e-400", "-9" * 2000,
    [{"name": "a"}, {"name": "a"}], 2**31, -(2**63) - 1, 0.1, "a/b/c", "\ud83d", "(a+)+$",
    "0001-01-01T00:00:00Z", "1" * 400 + "E",
]  # fmt: skip
PATCHES = ["json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml"]


def strange(rng: random.Random) -> Any:
    """A value that is probably wrong."""
    return deepcopy(rng.choice(STRANGE))


class Requests:
    """A lab without a socket."""

    def __init__(self) -> None:
        self._clock, registry = VirtualClock(), Registry(rng=random.Random(0))  # noqa: S311
        self.app = Guard(ApiServer(registry), token="")
        self._loop = asyncio.new_event_loop()
        weakref.finalize(self, self._loop.close)
        self.accept = b""
        #: What the controllers could not do.
        self.warnings: list[str] = []
        self._controllers = ControllerManager(registry, self._clock, warn=self.warnings.append)

    def let_controllers_work(self) -> None:
        """Let a second pass, in which each controller does what is due."""
        self._clock.advance(1.0)
        for _ in range(1000):
            if not self._controllers.sync_ready(until=-1.0):
                return

    def send(self, method: str, path: str, body: Any = None, form: str = "json") -> tuple[int, Any]:
        """The status and the body of a response."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [
                (b"host", b"localhost"),
                (b"content-type", f"application/{form}".encode()),
                (b"accept", self.accept),
            ],
        }
        sent: list[Any] = []

        received = iter([{"type": "http.request", "body": data if body is not None else b""}])

        async def receive() -> Json:
            return next(received, {"type": "http.disconnect"})

        async def send(message: Any) -> None:
            sent.append(message)

        self._loop.run_until_complete(self.app(scope, receive, send))
        content = b"".join(each.get("body", b"") for each in sent[1:])
        return sent[0]["status"], content


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of everything in a value."""
    children = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in children:
        yield (*path, key)
        if isinstance(each, dict | list):
            yield from places(each, (*path, key))


def mutated(value: Any, rng: random.Random) -> Any:
    """A copy with one to three changes."""
    made = deepcopy(value)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        every = list(places(made))
        if not every:
            break
        *parents, last = rng.choice(every)
        holder = made
        for each in parents:
            holder = holder[each]
        action = rng.randrange(4)
        if action == 0:
            del holder[last]
        elif action == 1 and isinstance(holder, list):
            holder.insert(last, strange(rng))
        elif action == 2 and isinstance(holder, dict):
            names = ("name", "spec", "kind", "x", "metadata", "items")
            holder[rng.choice(names)] = strange(rng)
        else:
            holder[last] = strange(rng)
    return made


def json_patch(value: Json, rng: random.Random) -> list[Json]:
    """Random operations on places of an object."""
    every = ["/" + "/".join(str(e).replace("~", "~0").replace("/", "~1") for e in p)
             for p in places(value)]  # fmt: skip
    made = []
    for _ in range(rng.choice((1, 1, 2, 4))):
        operation: Json = {
            "op": rng.choice(("add", "remove", "replace", "test", "move", "copy")),
            "path": rng.choice([*every, "", "/", "/spec/-", "/metadata/labels/x"]),
            "from": rng.choice([*every, ""]),
            "value": strange(rng),
        }
        if rng.random() < 0.1:
            operation[rng.choice(list(operation))] = strange(rng)
        made.append(operation)
    return made
