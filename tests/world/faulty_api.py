"""The way of one replica to the API server and to extenders, on which requests go wrong."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from podium.kube.connections import Answer
from podium.kube.errors import ApiError, UnreachableError, refusal
from podium.lab.http.server import ApiServer
from podium.simulation.event_loop import VirtualEventLoop
from podium.simulation.in_process_api import InProcessApi
from world.plan import Fault

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


@dataclass(slots=True)
class Network:
    """What all replicas share: the faults, the server's state, and the record of requests."""

    loop: VirtualEventLoop
    faults: tuple[Fault, ...]
    rng: random.Random
    latency: float
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
    #: Whether there were more requests than any backoff allows; none is answered any more.
    is_stormed: bool = False
    #: Set when faults cease: what hangs or is silent ends.
    healed: asyncio.Event = field(default_factory=asyncio.Event)
    chances: dict[int, random.Random] = field(default_factory=dict)

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

    async def pause(self, seconds: float) -> None:
        """Wait, at most until faults cease."""
        if seconds > 0:
            try:
                async with asyncio.timeout(seconds):
                    await self.healed.wait()
            except TimeoutError:
                pass

    async def hang(self) -> None:
        """Wait until faults cease; the connection is reset then."""
        await self.healed.wait()
        raise UnreachableError("connection reset by peer")


class FaultyApi(InProcessApi):
    """Sends the requests of one replica, as the network lets it."""

    def __init__(self, server: ApiServer, network: Network, replica: str) -> None:
        super().__init__(server)
        self._network, self._replica = network, replica
        #: Whether the machine of the replica is gone: nothing is sent any more.
        self.is_dead = False

    async def exchange(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        body: bytes | None,
        content_type: str,
    ) -> Answer:
        network = self._network
        if self.is_dead or network.is_stormed:
            await asyncio.Event().wait()
        sent = self._note(verb_of(method, path), method, path, body)
        try:
            return await self._exchange(sent, (method, path, params, body, content_type))
        except UnreachableError:
            sent.ended = network.loop.time()
            raise

    async def _exchange(self, sent: Sent, request: tuple[Any, ...]) -> Answer:
        network = self._network
        if network.latency:
            await asyncio.sleep(network.rng.uniform(0, network.latency))
        if network.is_down:
            network.injected["server down"] += 1
            raise UnreachableError("connection refused")
        fault = network.pick(sent.verb)
        kind = sent.fault = fault.kind if fault is not None else ""
        if kind == "refused":
            raise UnreachableError("connection refused")
        if kind == "hang":
            await network.hang()
        if kind[:1].isdigit():
            assert fault is not None
            answer = refused(kind, fault.seconds)
        else:
            if kind == "slow":
                assert fault is not None
                await network.pause(fault.seconds)
            answer = await self._carried_out(sent, request)
            if kind == "late":
                assert fault is not None
                await network.pause(fault.seconds)
            if kind == "lost":
                raise UnreachableError("the connection was closed before the answer was complete")
            if kind == "garbage":
                sent.ended = network.loop.time()
                return Answer(200, {}, b"<html>")
        sent.answered, sent.ended = answer.status, network.loop.time()
        return answer

    async def _carried_out(self, sent: Sent, request: tuple[Any, ...]) -> Answer:
        """Let the API server act; nothing else happens meanwhile."""
        network = self._network
        assert not network.writer
        network.writer = self._replica
        try:
            answer = await super().exchange(*request)
        finally:
            network.writer = ""
        sent.done, sent.took = answer.status < 300, network.loop.time() - sent.time
        return answer

    def _note(self, verb: str, method: str, path: str, body: bytes | None) -> Sent:
        network = self._network
        about: Any = None
        if body and verb in {"bind", "status", "event"}:
            about = msgspec.json.decode(body)
        if verb == "event" and method == "POST":
            about = about["metadata"]["name"]
        sent = Sent(network.loop.time(), self._replica, verb, method, path, about)
        network.sent.append(sent)
        if len(network.sent) > MOST_REQUESTS:
            network.is_stormed = True
            network.loop.stop()
        return sent

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], *, idle_seconds: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        network = self._network
        if self.is_dead:
            await asyncio.Event().wait()
        sent = self._note("watch", "WATCH", path, None)
        try:
            self._refuse_watch(sent)
            async with super().stream(path, params, idle_seconds=idle_seconds) as pieces:
                yield self._received(sent, pieces, idle_seconds)
        except ApiError as error:
            sent.answered, sent.ended = error.status, network.loop.time()
            raise

    def _refuse_watch(self, sent: Sent) -> None:
        """Let a fault happen to the beginning of a watch."""
        network = self._network
        if network.is_down:
            network.injected["server down"] += 1
            raise UnreachableError("connection refused")
        fault = network.pick("watch")
        if fault is not None and fault.kind == "refused":
            raise UnreachableError("connection refused")
        if fault is not None and fault.kind in {"403", "429-after", "500"}:
            answer = refused(fault.kind, fault.seconds)
            raise refusal(answer.status, answer.headers, answer.body, f"GET {sent.path}")

    async def _received(
        self, sent: Sent, pieces: AsyncIterator[bytes], idle_seconds: float
    ) -> AsyncIterator[bytes]:
        network = self._network
        sent.opened = network.loop.time()
        async for piece in pieces:
            if network.latency:
                await asyncio.sleep(network.rng.uniform(0, network.latency))
            fault = network.pick("watch")
            if fault is None:
                sent.heard.append(network.loop.time())
                yield piece
                continue
            match fault.kind:
                case "cut":
                    return
                case "cut-inside":
                    yield piece[: network.rng.randrange(len(piece))]
                    return
                case "silent":
                    try:
                        async with asyncio.timeout(idle_seconds):
                            await network.hang()
                    except TimeoutError:
                        raise UnreachableError("no answer in time") from None
                case "lag":
                    await network.pause(fault.seconds)
                    yield piece
                case "410":
                    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "old"}
                    yield msgspec.json.encode({"type": "ERROR", "object": status}) + b"\n"
                    return
                case _:
                    yield piece


#: The verb of a request by a part of its path, then by its method, as plans of faults name it.
_BY_PART = {"leases": "lease", "events": "event", "binding": "bind", "status": "status"}
_BY_METHOD = {"DELETE": "delete", "PATCH": "patch"}


def verb_of(method: str, path: str) -> str:
    """The verb of a request, as plans of faults name it."""
    parts = path.strip("/").split("/")
    found = next((_BY_PART[part] for part in parts if part in _BY_PART), _BY_METHOD.get(method))
    if found is not None:
        return found
    if _is_collection(parts):
        return "list"
    return "discovery" if "namespaces" not in parts else "get"


def _is_collection(parts: list[str]) -> bool:
    """Whether a path names all objects of a kind, in all namespaces."""
    return len(parts) == (3 if parts[0] == "api" else 4)


def refused(kind: str, seconds: float) -> Answer:
    """The answer of an API server that refuses, with the code at the begin of *kind*."""
    code, _, after = kind.partition("-")
    headers = {"retry-after": str(max(int(seconds), 1))} if after else {}
    status = {"kind": "Status", "code": int(code), "message": f"refused with {code}"}
    return Answer(int(code), headers, msgspec.json.encode(status))
