"""The network between replicas and the API server: what goes wrong on it, and what was sent."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from podium.lab.http.server import ApiServer
from podium.virtual_cluster.event_loop import VirtualEventLoop
from world.plan import QUIRKS, Fault
from world.wire import Request, Wire

#: A run with more requests than this is a storm, and ends.
MOST_REQUESTS = 5_000


@dataclass(slots=True)
class Sent:
    """A request as a replica has sent it."""

    time: float
    replica: str
    verb: str
    method: str
    path: str
    body: Any = None
    #: The code of the answer that the replica was given; 0 when it was given none.
    answered: int = 0
    #: Whether the API server has carried it out, whatever the replica knows of that, and how many
    #: seconds after it was sent.
    done: bool = False
    took: float = 0.0
    #: When the replica had the answer, or knew that there is none; 0 before.
    ended: float = 0.0
    #: When a watch was opened (0 for never), and when something came of it.
    opened: float = 0.0
    heard: list[float] = field(default_factory=list)
    #: The kind of the fault that happened to it.
    fault: str = ""
    #: Whether a request went over the connection before it, and whether a byte of the answer came.
    is_on_used: bool = False
    came: bool = False
    #: Whether the answer is a page of a list that others follow.
    is_part: bool = False

    @property
    def is_sent_again(self) -> bool:
        """Whether the pool sends it again: the server may have closed the connection before."""
        return self.method == "GET" and self.is_on_used and not self.came and not self.answered


@dataclass(slots=True)
class Network:
    """What all replicas share: the faults, the server's state, and the record of requests."""

    loop: VirtualEventLoop
    #: The API server of this moment.
    server: Callable[[], ApiServer]
    faults: tuple[Fault, ...]
    rng: random.Random
    latency: float
    #: The chance that something is odd about an answer, without being wrong.
    oddity: float = 0.0
    #: How many objects the API server puts onto a page of a list.
    page: int = 500
    #: When extenders have answered which replica.
    extended: list[tuple[float, str]] = field(default_factory=list)
    #: The bindings that extenders have carried out; the body is the uid of the pod.
    extenders_bound: list[Sent] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    #: How often a fault of each kind has happened, by verb and kind.
    injected: Counter[str] = field(default_factory=Counter)
    #: The replica whose request the API server carries out right now.
    writer: str = ""
    is_down: bool = False
    #: When the API server went down.
    downs: list[float] = field(default_factory=list)
    #: Whether there were more requests than any backoff allows; none is answered any more.
    is_stormed: bool = False
    #: Set when faults cease: what hangs or is silent ends.
    healed: asyncio.Event = field(default_factory=asyncio.Event)
    chances: dict[int, random.Random] = field(default_factory=dict)
    #: The open connections, in the order of their begin.
    wires: dict[Wire, None] = field(default_factory=dict)
    #: Replicas whose machine is gone: they send nothing any more.
    dead: set[str] = field(default_factory=set)
    #: The token that the API server accepts, and the client certificate.
    token: str = "first"  # noqa: S105
    certificate: bytes = b"first"
    #: The certificate that each replica has read from its file; connections are opened with it.
    presented: dict[str, bytes] = field(default_factory=dict)

    def pick(self, verb: str) -> Fault | None:
        """The fault that happens to a request of this verb now, if any."""
        if self.healed.is_set():
            return None
        now = self.loop.time()
        for index, fault in enumerate(self.faults):
            if fault.verb != verb or not fault.start <= now < fault.end:
                continue
            rng = self.chances.get(index)
            if rng is None:
                rng = self.chances[index] = random.Random(fault.number)  # noqa: S311
            if rng.random() < fault.chance:
                self.injected[f"{verb} {fault.kind}"] += 1
                return fault
        return None

    def odd(self) -> str:
        """What is odd about the next answer; "" for nothing."""
        if not self.oddity or self.rng.random() >= self.oddity:
            return ""
        quirk = self.rng.choice(QUIRKS)
        self.injected[f"answer {quirk}"] += 1
        return quirk

    async def pause(self, seconds: float) -> None:
        """Wait, at most until faults cease."""
        if seconds > 0:
            try:
                async with asyncio.timeout(seconds):
                    await self.healed.wait()
            except TimeoutError:
                pass

    async def transmit(self) -> None:
        """Let the time pass that anything takes on the network."""
        if self.latency:
            await asyncio.sleep(self.rng.uniform(0, self.latency))

    async def connect(
        self, made: Callable[[], asyncio.Protocol], replica: str
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        """Open a connection of a replica to the API server."""
        if replica in self.dead or self.is_stormed:
            await asyncio.Event().wait()
        await self.transmit()
        if self.is_down:
            self.injected["server down"] += 1
            raise ConnectionRefusedError(111, "Connection refused")
        fault = self.pick("connect")
        if fault is not None:
            if fault.kind == "refused":
                raise ConnectionRefusedError(111, "Connection refused")
            if fault.kind == "hang":
                await self.healed.wait()
                raise ConnectionResetError(104, "Connection reset by peer")
            await self.pause(fault.seconds)
        protocol = made()
        wire = Wire(self, replica, protocol)
        self.wires[wire] = None
        protocol.connection_made(wire)
        return wire, protocol

    def drop(self, replica: str = "") -> None:
        """Reset the connections of a replica, or of all of them."""
        for wire in [*self.wires]:
            if replica in {"", wire.replica}:
                wire.reset()

    def note(self, replica: str, request: Request) -> Sent:
        """Note a request that a replica sends."""
        verb = verb_of(request)
        about: Any = None
        if request.body and verb in {"bind", "status", "event"}:
            about = msgspec.json.decode(request.body)
        if verb == "event" and request.method == "POST":
            about = about["metadata"]["name"]
        method = "WATCH" if verb == "watch" else request.method
        sent = Sent(self.loop.time(), replica, verb, method, request.path, about)
        self.sent.append(sent)
        if len(self.sent) > MOST_REQUESTS:
            self.is_stormed = True
            self.loop.stop()
        return sent


#: The verb of a request by a part of its path, then by its method, as plans of faults name it.
_BY_PART = {"leases": "lease", "events": "event", "binding": "bind", "status": "status"}
_BY_METHOD = {"DELETE": "delete", "PATCH": "patch", "PUT": "patch"}


def verb_of(request: Request) -> str:
    """The verb of a request, as plans of faults name it."""
    if request.is_watch:
        return "watch"
    parts = request.path.strip("/").split("/")
    found = next(
        (_BY_PART[part] for part in parts if part in _BY_PART), _BY_METHOD.get(request.method)
    )
    if found is not None:
        return found
    if _is_collection(parts):
        return "list"
    return "discovery" if "namespaces" not in parts else "get"


def _is_collection(parts: list[str]) -> bool:
    """Whether a path names all objects of a kind, in all namespaces."""
    return len(parts) == (3 if parts[0] == "api" else 4)
