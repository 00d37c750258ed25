"""Leader election among replicas, by a Lease that the leader keeps renewing.

The rules are client-go's. Times that other replicas wrote are never compared with the local clock.
A lease is taken over when it did not change for its whole duration, as observed here on a clock
that never jumps. A leader that cannot renew in time steps down before another may take over. It may
also stall in the middle of its work, so a fenced client looks at the lease before every write.

Upstream: client-go tools/leaderelection, Kubernetes v1.36.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import msgspec

from podium.errors import ConfigError
from podium.kube.api import JSON, KubeApi, always
from podium.kube.errors import ApiError, UnreachableError
from podium.kube.failure_log import FailureLog

#: The most that is added to the retry period before a replica tries again, as a multiple of it.
_JITTER = 1.2
#: The part of a lease in which its holder counts on it, whatever the clocks of others say.
_SURE = 0.95
_NOT_FOUND, _CONFLICT = 404, 409


class LeaseTimes(msgspec.Struct, frozen=True):
    """How long a lease lasts, by when it must be renewed, and how often that is tried.

    Leases are written in whole seconds, so the fraction of the first does not count.
    """

    lease_seconds: float = 15.0
    renew_deadline_seconds: float = 10.0
    retry_seconds: float = 2.0

    def __post_init__(self) -> None:
        if int(self.lease_seconds) <= self.renew_deadline_seconds:
            raise ConfigError("leaseDuration must be greater than renewDeadline")
        if self.renew_deadline_seconds <= self.retry_seconds * _JITTER:
            raise ConfigError("renewDeadline must be greater than retryPeriod*JitterFactor")
        if self.lease_seconds < 1 or self.retry_seconds <= 0:
            raise ConfigError("leaseDuration, renewDeadline and retryPeriod must be positive")


class LeaderElector:
    """One replica, with its *identity*, in the election of a leader."""

    def __init__(
        self,
        client: KubeApi,
        namespace: str,
        name: str,
        identity: str,
        *,
        times: LeaseTimes | None = None,
        on_started: Callable[[], None] = lambda: None,
        on_stopped: Callable[[], None] = lambda: None,
        on_new_leader: Callable[[str], None] = lambda _: None,
        warn: Callable[[str], None] = lambda _: None,
        release: bool = True,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """With *release* the lease is released when `run` is cancelled, and by `hand_back`.

        *clock* decides what has expired; *wall* is written into the lease for people to read.
        """
        self._client = client
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._namespace, self._name = namespace, name
        self.identity = identity
        self.times = times or LeaseTimes()
        self._on_started, self._on_stopped = on_started, on_stopped
        self._on_new_leader = on_new_leader
        self._failures = FailureLog(warn)
        self._release = release
        self._clock, self._wall, self._sleep = clock, wall, sleep
        self._rng = rng or random.Random()  # noqa: S311  nothing secret about a pause
        #: The lease as it was last read or written, and since when it has not changed.
        self._lease: dict[str, Any] | None = None
        self._unchanged_since = 0.0
        self._renewed_at = 0.0
        self._reported = ""
        self._started = False

    @property
    def holder(self) -> str:
        """The identity of the leader, as of the last request."""
        spec = (self._lease or {}).get("spec") or {}
        return str(spec.get("holderIdentity") or "")

    @property
    def leading(self) -> bool:
        """Whether this replica leads and no other can, since its lease has not expired."""
        fresh = self._clock() - self._renewed_at < int(self.times.lease_seconds)
        return self._started and fresh and self.holder == self.identity

    @property
    def may_write(self) -> bool:
        """Whether what this replica sends now arrives before another one can lead."""
        sure = _SURE * int(self.times.lease_seconds)
        return self.leading and self._clock() - self._renewed_at < sure

    async def run(self) -> None:
        """Wait until the lease is acquired, renew it, and return at once when it is lost.

        A lease that was lost is not released here: `hand_back` does that, once the work that it
        protects has stopped.
        """
        try:
            await self._acquire()
            self._started = True
            self._on_started()
            await self._renew()
        except asyncio.CancelledError:
            self._stop()
            await self.hand_back()
            raise
        finally:
            self._stop()

    def _stop(self) -> None:
        if self._started:
            self._started = False
            self._on_stopped()

    async def hand_back(self) -> None:
        """Release the lease if this replica holds it and may release it."""
        if self._release and self.holder == self.identity:
            await self._give_up()

    async def _acquire(self) -> None:
        while not await self._try(self.times.renew_deadline_seconds):
            pause = self.times.retry_seconds
            await self._sleep(pause + self._rng.random() * _JITTER * pause)

    async def _renew(self) -> None:
        """Renew the lease until that fails for the whole renew deadline.

        A deadline that is hardly shorter than the lease begins too late to end before it, and is
        cut short.
        """
        times = self.times
        while True:
            latest = self._renewed_at + _SURE * int(times.lease_seconds)
            ends = min(self._clock() + times.renew_deadline_seconds, latest)
            while not await self._try(max(0.0, ends - self._clock())):
                if self.holder != self.identity or self._clock() + times.retry_seconds > ends:
                    return
                await self._sleep(times.retry_seconds)
            await self._sleep(times.retry_seconds)

    async def _try(self, seconds: float) -> bool:
        """Acquire or renew the lease once; whether this replica holds it afterwards."""
        try:
            async with asyncio.timeout(seconds):
                done = await self._take_or_renew()
                self._failures.succeeded(f"lease {self._namespace}/{self._name}")
        except TimeoutError:
            done = self._failed(UnreachableError("no answer in time"))
        except ApiError as error:
            done = self._failed(error)
        if self.holder != self._reported:
            self._reported = self.holder
            self._on_new_leader(self._reported)
        return done

    def _failed(self, error: ApiError) -> bool:
        if error.status != _CONFLICT:  # another replica was faster, which is nothing to report
            what = f"lease {self._namespace}/{self._name}"
            self._failures.failed(what, f"leader election: {what}: {error}")
        return False

    async def _take_or_renew(self) -> bool:
        now = self._clock()
        if self._lease is not None and self.holder == self.identity and self._held(now):
            with suppress(ApiError):  # it may have been changed by others: read it first, then
                return await self._write(self._lease, now)
        try:
            seen = await self._client.get(f"{self._collection}/{self._name}")
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise
            return await self._create(now)
        if self._lease is None or seen.get("spec") != self._lease.get("spec"):
            self._unchanged_since = self._clock()
        self._lease = seen
        if self.holder and self.holder != self.identity and self._held(self._clock()):
            return False
        return await self._write(seen, now)

    def _held(self, now: float) -> bool:
        """Whether the lease as it was last read has not expired."""
        spec = (self._lease or {}).get("spec") or {}
        return now < self._unchanged_since + float(spec.get("leaseDurationSeconds") or 0)

    async def _create(self, now: float) -> bool:
        metadata = {"name": self._name, "namespace": self._namespace}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
        made = await self._client.create(self._collection, lease | {"spec": self._spec({})})
        return self._ours(made, now)

    async def _write(self, lease: dict[str, Any], now: float) -> bool:
        """Write this replica's identity; the resourceVersion makes the API server refuse a race."""
        changed = {**lease, "spec": self._spec(lease.get("spec") or {})}
        path = f"{self._collection}/{self._name}"
        return self._ours(await self._client.put(path, changed), now)

    def _ours(self, lease: dict[str, Any], now: float) -> bool:
        self._lease = lease
        # Counted from before the request: another replica may have read it that early.
        self._unchanged_since = self._renewed_at = now
        return True

    def _spec(self, old: dict[str, Any]) -> dict[str, Any]:
        now = _micro_time(self._wall())
        kept = old.get("holderIdentity") == self.identity
        transitions = int(old.get("leaseTransitions") or 0)
        if not kept and old:
            transitions += 1
        return {
            **old,
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self.times.lease_seconds),
            "acquireTime": old.get("acquireTime") or now if kept else now,
            "renewTime": now,
            "leaseTransitions": transitions,
        }

    async def _give_up(self) -> None:
        """Release the lease, so that another replica need not wait until it expires.

        A renewal whose answer did not come may have been carried out: the lease is read again then.
        """
        try:
            async with asyncio.timeout(self.times.renew_deadline_seconds):
                try:
                    await self._write_released()
                except ApiError as error:
                    if error.status != _CONFLICT:
                        raise
                    self._lease = await self._client.get(f"{self._collection}/{self._name}")
                    if self.holder == self.identity:
                        await self._write_released()
        except (ApiError, TimeoutError):
            self._lease = None  # it expires by itself

    async def _write_released(self) -> None:
        assert self._lease is not None
        spec = self._spec(self._lease.get("spec") or {})
        spec |= {"holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": spec["renewTime"]}
        body = {**self._lease, "spec": spec}
        self._lease = await self._client.put(f"{self._collection}/{self._name}", body)


def _micro_time(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class NotLeadingError(ApiError):
    """The request was not sent, because another replica may lead."""

    def __init__(self) -> None:
        super().__init__("not sent: this replica does not hold the lease any more")


class FencedApi(KubeApi):
    """Passes requests on to a client; writes only while *may_write* says so."""

    def __init__(self, client: KubeApi, may_write: Callable[[], bool]) -> None:
        self._client, self._may_write = client, may_write
        self.pace = client.pace

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        timeout: float = 30.0,
        before_send: Callable[[], None] = always,
    ) -> Coroutine[Any, Any, bytes]:
        """Send a request; `NotLeadingError` for a write that must not be sent.

        A write may wait for a connection, or for a pause that the API server asks for, until the
        lease is lost.
        """
        return self._client.request(
            method,
            path,
            params=params,
            body=body,
            content_type=content_type,
            timeout=timeout,
            before_send=before_send if method == "GET" else self._check,
        )

    def _check(self) -> None:
        if not self._may_write():
            raise NotLeadingError

    def stream(
        self, path: str, params: Mapping[str, str], *, idle_seconds: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a watch."""
        return self._client.stream(path, params, idle_seconds=idle_seconds)

    def watch(
        self,
        path: str,
        params: Mapping[str, str],
        take: Callable[[bytes], None],
        *,
        idle_seconds: float,
        opened: Callable[[], None],
        may_rest: bool = False,
    ) -> Coroutine[Any, Any, None]:
        """Open a watch and call *take* with each piece of its answer."""
        return self._client.watch(
            path, params, take, idle_seconds=idle_seconds, opened=opened, may_rest=may_rest
        )

    @asynccontextmanager
    async def reading(
        self,
        path: str,
        params: Mapping[str, str],
        *,
        seconds: float,
        accept: str = JSON,
        begun: str = "",
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Read what may be long, in pieces."""
        reading = self._client.reading(path, params, seconds=seconds, accept=accept, begun=begun)
        async with reading as pieces:
            yield pieces

    def decoded_list(
        self, path: str, params: Mapping[str, str], decoder: msgspec.json.Decoder[Any]
    ) -> Coroutine[Any, Any, tuple[list[Any], str] | None]:
        """The objects of a whole list and its version; None where a list has to be requested."""
        return self._client.decoded_list(path, params, decoder)
