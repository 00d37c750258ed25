"""Deliberate faults in the effects of a scheduler, each of which the world must find.

A mutant is a context in which one part of the program is replaced by a wrong one.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, NamedTuple
from unittest.mock import patch

from msgspec.structs import replace

from podium.engine.state.devices import ResourceClaims
from podium.host.cluster_run import ClusterRun
from podium.host.scheduler_host import SchedulerHost
from podium.kube import errors
from podium.kube.access import Access
from podium.kube.client import ApiClient
from podium.kube.connections import Answer
from podium.kube.errors import ApiError, UnreachableError
from podium.kube.failure_log import FailureLog
from podium.kube.lease import LeaderElector
from podium.kube.reflector import Reflector
from podium.past.format.writing import HistoryWriter
from podium.scheduler.placing import failure_handler
from podium.scheduler.placing.binder import Binder, NotBoundError
from podium.scheduler.placing.failure_handler import FailureHandler
from podium.scheduler.placing.status_writers import GroupStatusWriter, PodStatusWriter
from podium.scheduler.state.cluster_state import ClusterState
from podium.scheduler.state.informers import Informers
from podium.scheduler.state.object_index import ObjectIndex
from podium.scheduler.telemetry.logs import DecisionLines
from world.told import REPLICA


class Mutant(NamedTuple):
    """A deliberate fault."""

    put: Callable[[], AbstractContextManager[None]]
    #: A seed that finds it, and a part of what it finds; `make soak` looks for others.
    seed: int
    finding: str

    @property
    def name(self) -> str:
        """The fault in words."""
        return self.put.__name__.replace("_", " ")


@contextmanager
def retry_without_backoff() -> Iterator[None]:
    """A pod whose status could not be written is attempted again at once."""
    with patch.object(failure_handler, "_LONGEST_PAUSE", 0.0):
        yield


@contextmanager
def forgotten_undo() -> Iterator[None]:
    """A pod that could not be bound stays on its node in the cache."""

    def undo(self: Any, turn: Any, result: Any, error: str, stage: Any) -> None:
        self._failure_handler.not_bound(turn, result, error, stage)

    with patch.object(Binder, "_undo", undo):
        yield


@contextmanager
def doubled_bind() -> Iterator[None]:
    """A binding that was answered is sent again."""
    post = Binder._post

    async def twice(self: Any, profile: Any, pod: Any, node: str, *, is_lost: bool) -> None:
        await post(self, profile, pod, node, is_lost=is_lost)
        with suppress(ApiError):
            await self._client.bind(pod.namespace, pod.name, pod.metadata.uid, node, timeout=15.0)

    with patch.object(Binder, "_post", twice):
        yield


@contextmanager
def lost_answer_is_a_refusal() -> Iterator[None]:
    """A binding without an answer counts as not carried out."""

    async def post(self: Any, profile: Any, pod: Any, node: str, *, is_lost: bool) -> None:
        try:
            await self._client.bind(pod.namespace, pod.name, pod.metadata.uid, node, timeout=15.0)
        except ApiError as error:
            raise NotBoundError(str(error)) from error

    with patch.object(Binder, "_post", post):
        yield


@contextmanager
def failed_extender_is_a_refusal() -> Iterator[None]:
    """A pod whose extender fails to bind it, or does not answer, counts as not bound."""

    async def bound(self: Any, profile: Any, pod: Any, node: str) -> bool:
        error = await self._by_extender(profile, pod, node) if profile.extenders else None
        if error:
            raise NotBoundError(error)
        return error is not None

    with patch.object(Binder, "_bound_by_extender", bound):
        yield


@contextmanager
def decides_without_the_lease() -> Iterator[None]:
    """A replica decides as soon as it knows the cluster, whoever leads."""
    start = SchedulerHost.start

    def started(self: Any, supervisor: Any) -> Any:
        self.scheduler.leading.set()
        return start(self, supervisor)

    with patch.object(SchedulerHost, "start", started), _writes_in_any_case():
        yield


def _writes_in_any_case() -> AbstractContextManager[Any]:
    """Send writes whoever holds the lease: otherwise the client refuses them."""
    return patch.object(ClusterRun, "_leads", lambda _: True)


@contextmanager
def victims_stay_terminating() -> Iterator[None]:
    """A victim that was not evicted counts as terminating for ever."""
    with patch.object(ClusterState, "keep_victims", lambda *_: None):
        yield


@contextmanager
def leader_for_ever() -> Iterator[None]:
    """A replica that has lost the lease goes on until it is told to stop."""
    with patch.object(SchedulerHost, "abandon", lambda _: None), _writes_in_any_case():
        yield


@contextmanager
def lease_without_waiting() -> Iterator[None]:
    """A replica takes the lease of another one before it has expired."""
    with patch.object(LeaderElector, "_held", lambda *_: False):
        yield


@contextmanager
def deletions_missed_by_lists() -> Iterator[None]:
    """A new list adds and changes objects, and removes none."""

    def put_all(self: Any, items: list[Any]) -> None:
        for item in items:
            self._report_logged(self.put, item)

    with patch.object(ObjectIndex, "replace", put_all):
        yield


@contextmanager
def expired_watch_goes_on() -> Iterator[None]:
    """A watch that fell behind continues with what comes next, without a new list."""
    take = Reflector._take

    def taken(self: Any, line: bytes) -> None:
        try:
            take(self, line)
        except ApiError as error:
            if error.status != 410:
                raise
            self.version = "999999999"

    with patch.object(Reflector, "_take", taken):
        yield


@contextmanager
def unsettled_is_bound() -> Iterator[None]:
    """A binding that was refused with a conflict or an error counts as carried out."""

    async def settle(self: Any, pod: Any, node: str, error: Exception) -> None:
        """Believe that the pod is bound."""

    with patch.object(Binder, "_settle", settle):
        yield


@contextmanager
def freed_room_wakes_nobody() -> Iterator[None]:
    """The resources of a pod that could not be bound are free, and nobody is told."""

    def forget(self: Any, pod: Any) -> None:
        if self.cache.is_assumed(pod.uid):
            self.cache.forget(pod)

    def pod_deleted(self: Any, old: Any) -> None:
        known = self.cache.columns.pods.by_uid.get(old.uid) is not None
        if not old.spec.node_name and self.is_responsible_for(old):
            self.queue.delete(old)
        if known and not old.spec.node_name:
            self.forget(old)
        elif old.spec.node_name:
            self._update_cache(self.cache.remove_pod, old)

    with (
        patch.object(ClusterState, "forget", forget),
        patch.object(ClusterState, "_pod_deleted", pod_deleted),
    ):
        yield


@contextmanager
def nominations_are_not_written() -> Iterator[None]:
    """A nomination is kept in the queue only."""
    write = PodStatusWriter.write

    async def written(self: Any, pod: Any, outcome: Any) -> None:
        await write(self, pod, replace(outcome, nomination=None))

    with patch.object(PodStatusWriter, "write", written):
        yield


@contextmanager
def hanging_request_is_awaited() -> Iterator[None]:
    """A binding without an answer is awaited for ever."""

    async def post(self: Any, profile: Any, pod: Any, node: str, *, is_lost: bool) -> None:
        while True:
            try:
                await self._client.bind(
                    pod.namespace, pod.name, pod.metadata.uid, node, timeout=15.0
                )
            except UnreachableError:
                await asyncio.Event().wait()
            except ApiError as error:
                raise NotBoundError(str(error)) from error
            else:
                return

    with patch.object(Binder, "_post", post):
        yield


@contextmanager
def preemptor_is_not_retried() -> Iterator[None]:
    """A pod whose status or preemption could not be written waits for the next event."""
    with patch.object(FailureHandler, "_retry", lambda *_: None):
        yield


@contextmanager
def failures_are_told_again() -> Iterator[None]:
    """A watch that cannot be opened is told of with every attempt."""

    def failed(self: Any, subject: Any, text: str) -> None:
        self._warn(text)

    with patch.object(FailureLog, "failed", failed):
        yield


@contextmanager
def failures_are_not_told() -> Iterator[None]:
    """A status that could not be written is tried again, and nothing says so."""
    with patch.object(failure_handler.logger, "warning", lambda *_: None):
        yield


@contextmanager
def asks_once() -> Iterator[None]:
    """A pod counts as not bound when the question where it is was refused, whatever the code."""

    async def read(self: Any, path: str, error: Exception) -> Any:
        try:
            return await self._client.get(path)
        except ApiError:
            raise NotBoundError(str(error)) from error

    with patch.object(Binder, "_read", read):
        yield


@contextmanager
def nomination_kept_wrongly() -> Iterator[None]:
    """A nomination stays when an attempt should end it."""
    nomination_of = failure_handler.nomination_of

    def kept(decision: Any, profile: Any) -> str | None:
        return nomination_of(decision, profile) or None

    with patch.object(failure_handler, "nomination_of", kept):
        yield


@contextmanager
def logs_another_pod() -> Iterator[None]:
    """A write that failed is told with the name of another pod."""
    warning = failure_handler.logger.warning

    def warn(text: str, *about: Any) -> None:
        warning(text, "default/another", *about[1:])

    with patch.object(failure_handler.logger, "warning", warn):
        yield


@contextmanager
def certificate_is_read_once() -> Iterator[None]:
    """A renewed client certificate is not used before the next start."""

    def use_certificate_of(self: Any, read: Any) -> None:
        self.use_certificate(*read())

    with patch.object(Access, "use_certificate_of", use_certificate_of):
        yield


@contextmanager
def rejected_requests_are_dropped() -> Iterator[None]:
    """A request that is refused with 401 counts as carried out, and is not sent again."""

    async def known(self: Any, answer: Answer, exchange: Any, seconds: float) -> Answer:
        return Answer(200, {}, b"{}") if answer.status == 401 else answer

    with patch.object(ApiClient, "_known", known):
        yield


@contextmanager
def a_page_is_a_list() -> Iterator[None]:
    """A list counts as read with its first page: what fails later is told again each time."""
    page_after = Reflector._page_after

    async def read(self: Any, token: str) -> Any:
        page = await page_after(self, token)
        self._failures.succeeded("list")
        return page

    with patch.object(Reflector, "_page_after", read):
        yield


@contextmanager
def goes_on_after_the_lease() -> Iterator[None]:
    """A replica that has lost the lease watches the cluster for a while."""
    stop = Informers.stop

    async def stopped(self: Any) -> None:
        await asyncio.sleep(10.0)
        await stop(self)

    with patch.object(Informers, "stop", stopped):
        yield


@contextmanager
def shadow_stays_behind() -> Iterator[None]:
    """A shadow whose watch fails is told nothing any more."""
    watch = Reflector._watch

    async def watched(self: Any) -> None:
        try:
            await watch(self)
        except ApiError:
            if REPLICA.get() == "shadow":
                await asyncio.Event().wait()
            raise

    with patch.object(Reflector, "_watch", watched):
        yield


@contextmanager
def pauses_without_bound() -> Iterator[None]:
    """A pause of hours is made when an API server asks for it."""
    with patch.object(errors, "LONGEST_PAUSE_SECONDS", math.inf):
        yield


@contextmanager
def full_disk_ends_recording() -> Iterator[None]:
    """A history that could not be written once is not written again."""
    with patch.object(HistoryWriter, "wants_checkpoint", property(lambda _: False)):
        yield


@contextmanager
def made_claims_keep_devices() -> Iterator[None]:
    """The devices of a claim that was made for a pod are not given back with the reservation."""
    rename = ResourceClaims.rename_in_flight

    def renamed(self: Any, before: str, now: str) -> None:
        rename(self, before, now)
        self._renamed.clear()

    with patch.object(ResourceClaims, "rename_in_flight", renamed):
        yield


@contextmanager
def unwritten_conditions_count_as_written() -> Iterator[None]:
    """The condition of a group that could not be written is taken for written."""
    with patch.object(GroupStatusWriter, "_take_back", lambda *_: None):
        yield


@contextmanager
def unanswered_bindings_are_not_told() -> Iterator[None]:
    """A pod that was not bound because the API server did not answer goes back in silence."""
    bind_failed = DecisionLines.bind_failed

    def failed(self: Any, result: Any, node: str, error: str) -> None:
        if "does not answer" not in error:
            bind_failed(self, result, node, error)

    with patch.object(DecisionLines, "bind_failed", failed):
        yield


@contextmanager
def unwritten_leases_are_not_told() -> Iterator[None]:
    """A lease that could be read and not be written is tried again in silence."""
    take_or_renew = LeaderElector._take_or_renew

    async def taken(self: Any) -> bool:
        was = self._lease
        try:
            return await take_or_renew(self)
        except ApiError:
            if self._lease is was:
                raise
            return False

    with patch.object(LeaderElector, "_take_or_renew", taken):
        yield


MUTANTS: tuple[Mutant, ...] = (
    Mutant(retry_without_backoff, 3, "more requests were sent"),
    Mutant(forgotten_undo, 13, "assumed pods"),
    Mutant(doubled_bind, 0, "after it was bound"),
    Mutant(lost_answer_is_a_refusal, 199, "about a pod that it has bound"),
    Mutant(failed_extender_is_a_refusal, 246, "on node"),
    Mutant(decides_without_the_lease, 1, "holds the lease"),
    Mutant(victims_stay_terminating, 89, "is wrong about the deletion"),
    Mutant(leader_for_ever, 21, "holds the lease"),
    Mutant(lease_without_waiting, 1, "holds the lease"),
    Mutant(deletions_missed_by_lists, 3, "no rest within"),
    Mutant(expired_watch_goes_on, 0, "no rest within"),
    Mutant(unsettled_is_bound, 9, "is left with"),
    Mutant(freed_room_wakes_nobody, 0, "was not bound"),
    Mutant(nominations_are_not_written, 127, "no rest within"),
    Mutant(hanging_request_is_awaited, 6, "being bound"),
    Mutant(preemptor_is_not_retried, 13, "a fresh scheduler finds"),
    Mutant(failures_are_told_again, 1, "and again at"),
    Mutant(failures_are_not_told, 3, "tells nothing of"),
    Mutant(asks_once, 1456, "having bound it to"),
    Mutant(nomination_kept_wrongly, 125, "which is gone"),
    Mutant(logs_another_pod, 3, "tells nothing of"),
    Mutant(certificate_is_read_once, 6, "nobody leads"),
    Mutant(rejected_requests_are_dropped, 54, "tells nothing of PATCH"),
    Mutant(a_page_is_a_list, 18, "and again at"),
    Mutant(goes_on_after_the_lease, 10, "after it has lost the lease"),
    Mutant(shadow_stays_behind, 7, "the shadow is behind"),
    Mutant(pauses_without_bound, 127, "no rest within"),
    Mutant(full_disk_ends_recording, 2, "records nothing any more"),
    Mutant(made_claims_keep_devices, 222, "devices in flight"),
    Mutant(unwritten_conditions_count_as_written, 917, "MODIFIED PodGroup"),
    Mutant(unanswered_bindings_are_not_told, 29, "tells nothing of POST"),
    Mutant(unwritten_leases_are_not_told, 73, "tells nothing of PUT"),
)
