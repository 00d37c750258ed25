"""The changes of a cluster that a judge knows of and has not followed yet.

They also show the order in which a scheduler takes the pods that wait for a node when it starts. A
scheduler that starts lists all pods, and queues those without a node in the order of the list. The
time of their creation does not count. API servers list by namespace and name since v1.27, older
ones in no order. Pods that come later are watched, and follow in the order of arrival.

Neither the start nor the list can be seen. At the first sign of a scheduler, or the first one for a
while, the first pods are judged in each of these orders. The order in which most are on one of
their best nodes is taken for the true one.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from podium.cluster.queue.entities import Pool, is_unschedulable
from podium.past.judge.judged_cluster import Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from podium.objects.kinds.pod import Pod
    from podium.past.format.reading import ObjectChange
    from podium.past.judge.hypotheses import Hypotheses
    from podium.past.judge.judged_cluster import JudgedCluster


class Ahead:
    """Changes in their order, and the versions of each pod among them."""

    def __init__(self) -> None:
        self._changes: deque[ObjectChange] = deque()
        #: By uid, with their times; None where the pod is deleted.
        self._versions: defaultdict[str, deque[tuple[float, Pod | None]]] = defaultdict(deque)

    def __len__(self) -> int:
        return len(self._changes)

    def __iter__(self) -> Iterator[ObjectChange]:
        return iter(self._changes)

    @property
    def first(self) -> ObjectChange:
        """The change that is followed next."""
        return self._changes[0]

    @property
    def until(self) -> float:
        """The time of the last change; 0 if there is none."""
        return self._changes[-1].time if self._changes else 0.0

    def feed(self, change: ObjectChange) -> None:
        """Add a change."""
        self._changes.append(change)
        if change.kind == "Pod":
            new = cast("Pod | None", change.new)
            self._versions[_uid(change)].append((change.time, new))

    def follow(self) -> None:
        """Take the first change away."""
        change = self._changes.popleft()
        if change.kind == "Pod":
            versions = self._versions[_uid(change)]
            versions.popleft()
            if not versions:
                del self._versions[_uid(change)]

    def has(self, uid: str) -> bool:
        """Whether there is a change of a pod."""
        return uid in self._versions

    def outcome(self, uid: str) -> tuple[str | None, bool, float]:
        """The node that a pod gets, or whether it is deleted, and when."""
        for at, version in self._versions.get(uid, ()):
            if version is None:
                return None, True, at
            if version.spec.node_name:
                return version.spec.node_name, False, at
        return None, False, 0.0

    def failure(self, pod: Pod) -> Pod | None:
        """The version that reports a failed attempt, if one comes before the pod is bound."""
        for _, version in self._versions.get(pod.uid, ()):
            if version is None or version.spec.node_name:
                return None
            if reports_failure(pod, version):
                return version
        return None

    def signs(self, uids: Collection[str]) -> dict[str, int]:
        """Where the outcome of an attempt is first seen, by uid."""
        found: dict[str, int] = {}
        for place, change in enumerate(self._changes):
            new = cast("Pod | None", change.new)
            if change.kind == "Pod" and new and new.uid in uids and shows_outcome(new):
                found.setdefault(new.uid, place)
        return found


def _uid(change: ObjectChange) -> str:
    return cast("Pod", change.new if change.new is not None else change.old).uid


def shows_outcome(pod: Pod) -> bool:
    """Whether a pod is bound, or reported as unschedulable."""
    return bool(pod.spec.node_name) or is_unschedulable(pod)


def reports_failure(old: Pod, new: Pod) -> bool:
    """Whether a change of a pod shows that an attempt found no node."""
    if new.spec.node_name or not is_unschedulable(new):
        return False
    nominated = new.status.nominated_node_name
    return not is_unschedulable(old) or (
        bool(nominated) and nominated != old.status.nominated_node_name
    )


#: A scheduler that shows no sign for so long, although pods wait, may have been started meanwhile.
SILENT_SECONDS: Final = 3.0
#: Of fewer pods the order is taken to be that of arrival.
FEWEST: Final = 3
#: An order in which this share of the first pods agrees is the true one. Where less than the lower
#: share agrees, another order is looked for, and has to reach that.
_CERTAIN: Final = 0.98
_LIKELY: Final = 0.9
#: From so many bindings on, an order that is known differs clearly from no order at all.
_ENOUGH: Final = 20
#: How many positions are looked at for the first pod that was watched and not listed. So many of
#: them are tried, the most likely ones by the order of bindings.
_CUTS: Final = 32
_TRIED_CUTS: Final = 6
#: How many pods are decided to find out in which order a scheduler took those that it listed.
MOST_COMPARED: Final = 128

LISTED: Final = "taken in the order of names, as pods are listed when a scheduler starts"
UNKNOWN: Final = "taken in the order of bindings: in which order they were listed cannot be known"


@dataclass(frozen=True, slots=True)
class StartOrder:
    """The order in which pods were queued, and what is to be said about it; "" of arrival."""

    pods: Sequence[Pod]
    text: str = ""
    is_arrival: bool = False


def start_order(
    pods: Sequence[Pod],
    signs: Mapping[str, int],
    agreement: Callable[[Sequence[Pod]], float],
    *,
    silent: bool,
) -> StartOrder:
    """The most likely order of some pods.

    *pods* are in the order of arrival; *signs* says, by uid, when the outcome of each was seen.
    *agreement* is the share of the first pods of an order that are on one of their best nodes.
    After a *silent* time they may have been listed in an order that cannot be known.
    """
    best = StartOrder(_by_priority(pods), is_arrival=True)
    most = arrival = agreement(best.pods)
    if most >= _CERTAIN:
        return best
    seen = sorted((pod for pod in pods if pod.uid in signs), key=lambda pod: signs[pod.uid])
    for order in _orders(pods, {pod.uid: rank for rank, pod in enumerate(_by_priority(seen))}):
        share = agreement(order.pods)
        if share > max(most, _LIKELY):
            most, best = share, order
        if most >= _CERTAIN:
            break
    if silent and len(seen) >= _ENOUGH and max(most, arrival) < _LIKELY:
        rest = [pod for pod in pods if pod.uid not in signs]
        return StartOrder(_by_priority([*seen, *rest]), UNKNOWN)
    return best


def _orders(pods: Sequence[Pod], ranks: Mapping[str, int]) -> list[StartOrder]:
    """The orders that are possible besides that of arrival, the most likely ones first."""
    cuts = {len(pods) * part // _CUTS for part in range(1, _CUTS)}
    listed = [_listed(pods, cut) for cut in sorted(cuts)]
    listed.sort(key=lambda order: _distance(order.pods, ranks))
    # Of pods that were listed by the recorder, the time of creation tells how they came.
    created = StartOrder(_by_priority(sorted(pods, key=_created)))
    return [_listed(pods, len(pods)), created, *listed[:_TRIED_CUTS]]


def _listed(pods: Sequence[Pod], cut: int) -> StartOrder:
    """The first pods were listed by name, the others were watched."""
    by_name = sorted(pods[:cut], key=lambda pod: pod.key)
    return StartOrder(_by_priority([*by_name, *pods[cut:]]), LISTED)


def _created(pod: Pod) -> tuple[str, int]:
    version = pod.metadata.resource_version
    return pod.metadata.creation_timestamp or "", int(version) if version.isdecimal() else 0


def _by_priority(pods: Sequence[Pod]) -> Sequence[Pod]:
    return sorted(pods, key=lambda pod: -pod.priority)


def _distance(order: Sequence[Pod], ranks: Mapping[str, int]) -> int:
    """How far the pods are from their places in another order, in all."""
    found = np.fromiter((ranks[pod.uid] for pod in order if pod.uid in ranks), np.int64)
    return int(np.abs(found - np.arange(len(found))).sum())


class Starts:
    """Whether another scheduler may have started before it shows a sign, and its order then."""

    def __init__(
        self,
        cluster: JudgedCluster,
        hypotheses: Hypotheses,
        ahead: Ahead,
        waited_long: Callable[[Collection[str]], bool],
    ) -> None:
        """*waited_long* says whether what is not seen of some pods by now is not waited for."""
        self._cluster, self._hypotheses, self._ahead = cluster, hypotheses, ahead
        self._waited_long = waited_long
        self._silent_since: float | None = None
        self._known = False
        #: Pods whose outcome is awaited before an order is chosen; None if none is to be chosen.
        self._awaited: set[str] | None = None
        #: What is to be said of the order of pods that waited when the scheduler started, by uid.
        self.listed: dict[str, str] = {}

    def pod_came(self) -> None:
        """Note a pod that waits for a node from now on."""
        if self._silent_since is None:
            self._silent_since = self._cluster.now

    def fed(self, change: ObjectChange) -> None:
        """Note a change that is not followed yet."""
        if self._awaited and change.kind == "Pod":
            old, new = cast("Pod", change.old), cast("Pod | None", change.new)
            if new is None or shows_outcome(new):
                self._awaited.discard((new or old).uid)

    def ready(self) -> bool:
        """At a sign, queue pods as the scheduler found them if it may have started.

        False if the outcome of further pods has to be seen first.
        """
        if self._silent_since is not None and (not self._known or self._is_silent()):
            if self._must_wait():
                return False
            queue = self._cluster.state.queue
            active = [
                pod for pod in self._hypotheses.pending() if queue.pool_of(pod) == Pool.ACTIVE
            ]
            if len(active) >= FEWEST:
                if self._awaited is None:
                    uids = {pod.uid for pod in active}
                    self._awaited = uids - self._ahead.signs(uids).keys()
                    if self._must_wait():
                        return False
                self._queue(active)
        self._known, self._awaited = True, None
        if self._silent_since is not None:
            waits = self._cluster.state.queue.counts()[Pool.ACTIVE]
            self._silent_since = self._cluster.now if waits else None
        return True

    def _must_wait(self) -> bool:
        return (
            self._awaited is not None
            and bool(self._awaited)
            and not self._waited_long(self._awaited)
        )

    def _is_silent(self) -> bool:
        """Whether the scheduler has shown no sign for a while, although pods wait."""
        since = self._silent_since
        return since is not None and self._cluster.now - since > SILENT_SECONDS

    def _queue(self, active: Sequence[Pod]) -> None:
        """Queue the pods that wait in the order in which the scheduler most likely took them."""
        signs = self._ahead.signs({pod.uid for pod in active})
        order = start_order(active, signs, self._agreement, silent=self._is_silent())
        if order.is_arrival:
            return
        for pod in order.pods:
            self._cluster.state.queue.delete(pod, bound=True)
            self._cluster.state.queue.add(pod)
            if order.text:
                self.listed[pod.uid] = order.text
            self._hypotheses.waiting(pod).unordered = order.text == UNKNOWN

    def _agreement(self, pods: Sequence[Pod]) -> float:
        """The share of the first pods, decided in this order, that are on one of the best nodes.

        Pods that there is no node for fail at first, and say nothing about the order.
        """
        agree = compared = 0
        trial = Trial(self._cluster)
        for pod in pods[:MOST_COMPARED]:
            node, _, _ = self._ahead.outcome(pod.uid)
            if node is not None and not self._cluster.profile(pod).extenders:
                best = self._cluster.best_nodes(pod)
                agree += node in best
                compared += bool(best)
                trial.add(pod, node)
        trial.back()
        return agree / compared if compared else 1.0
