"""Judges the placements of another scheduler in hindsight, from what the cluster shows of it.

The other scheduler decides about one pod after the other, in the order of its queue, and counts
each on its node at once; its bindings arrive later and overtake each other. The judge follows the
same events with the same queue. When a binding shows that a pod was decided, so were all pods
before it in the queue: these are taken from the queue, and each is judged once its node is known,
with every pod before it on the node where that really went. Changes that come after that binding
wait meanwhile.

A pod that Podium finds no node for failed its attempt, and returns to the queue. Where the order
cannot be known for certain, what may have happened is tried: see `hypotheses`. Where the scheduler
looks at a share of the nodes, `looked_at` says at which.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, cast

import numpy as np
from msgspec.structs import replace as changed

from podium.cluster.decider import Decider
from podium.cluster.queue.queued_pod import Pool, is_unschedulable
from podium.past.judge.agreement import (
    DIFFERENT,
    LOOKED_AT,
    OTHER_ORDER,
    SAME,
    PlacementComparison,
    compare_placement,
)
from podium.past.judge.doubtful import Doubtful
from podium.past.judge.hypotheses import Hypotheses, Placed
from podium.past.judge.looked_at import LookedAt, whole
from podium.past.judge.starts import FEWEST, UNKNOWN, Starts, start_order
from podium.scheduler.state.cluster_state import ClusterState
from podium.scheduler.state.observers import AttemptResult, Observer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from podium.cluster.queue.queued_pod import Turn
    from podium.cluster.verification import Verification
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.engine.state.reservation import Reservation
    from podium.objects.kinds.pod import Pod
    from podium.past.format.reading import ObjectChange
    from podium.past.replay.replay import Rules

#: How long the node of a pod may take to be seen after pods decided later were bound.
WAIT_SECONDS: Final = 30.0
#: How many pods are decided to find out in which order a scheduler took those that it listed.
MOST_COMPARED: Final = 128
#: With more changes to be followed, no pod is waited for: their memory is bounded.
MOST_AHEAD: Final = 100_000


@dataclass(frozen=True, slots=True)
class Judgement:
    """A placement of the other scheduler, and what Podium decides in its place."""

    pod: Pod
    attempt: int
    #: None when the placement could not be judged.
    comparison: PlacementComparison | None
    decision: Decision | None
    profile: Profile | None
    time: float


@dataclass(slots=True)
class _Taken:
    """A pod that was taken from the queue and whose node is not known yet."""

    turn: Turn | None
    pod: Pod
    attempt: int
    #: Where it was taken in the order of changes.
    position: int
    #: What Podium decides, while the state has not changed.
    decision: Decision | None = None
    #: Whether the report of its failure is followed next: the attempt was made before it.
    reported: bool = False


@dataclass(slots=True)
class _Open:
    """A placement that is different, until all orders in which it may not be are tried."""

    place: Placed
    time: float
    #: Where its binding was followed; 0 before that.
    bound: int = 0
    #: Pods that wait for a node and may have been decided before it.
    awaited: set[str] = field(default_factory=set)


class Judge:
    """Follows the changes of a cluster, and reports a judgement for each placement."""

    def __init__(
        self,
        rules: Rules,
        report: Callable[[Judgement], None],
        *,
        wait_seconds: float = WAIT_SECONDS,
        most_ahead: int = MOST_AHEAD,
        clock: Callable[[], float] | None = None,
        observers: Sequence[Observer] = (),
        verification: Verification | None = None,
    ) -> None:
        """Begin with an empty cluster; *report* is called with every judgement, in order.

        The node of a pod may take *wait_seconds* to be seen, by the *clock* if changes are fed as
        they happen, else by their times; less if more than *most_ahead* changes come meanwhile.
        *verification* says which decisions are made twice.
        """
        self._rules, self._report = rules, report
        self._wait_seconds, self._most_ahead, self._clock = wait_seconds, most_ahead, clock
        #: A pod whose binding was refused is tried again after this time at the earliest.
        backoff = rules.behaviour.queue.backoff
        self._retry_seconds = 0.5 * backoff.initial if backoff is not None else 0.0
        self.now = 0.0
        profiles = rules.profiles
        self.state = ClusterState(profiles, rules.behaviour, lambda: self.now, observers)
        self._decider = Decider(
            self.state.cache,
            whole(profiles),
            clock=lambda: self.now,
            nominations=self.state.queue.nominations,
            verification=verification,
        )
        self._looked_at = LookedAt(self.state.cache, self._decider, profiles)
        #: Changes that were fed and are not followed yet.
        self._ahead: deque[ObjectChange] = deque()
        #: The versions of each pod among them, by uid, with their times; None where it is deleted.
        self._versions: defaultdict[str, deque[tuple[float, Pod | None]]] = defaultdict(deque)
        self._taken: deque[_Taken] = deque()
        #: Pods that were taken and fit, by uid, although their attempt is reported as failed: it
        #: was made later, at the latest when that report is followed.
        self._postponed: dict[str, _Taken] = {}
        self._position = 0
        self._hypotheses = Hypotheses(self)
        self._starts = Starts()
        #: What is to be said of the order of pods that waited when the scheduler started, by uid.
        self._listed: dict[str, str] = {}
        #: Pods whose binding was judged and is not followed yet.
        self._judged: set[str] = set()
        #: Placements that are different so far, by uid, and what was judged of them.
        self._open: dict[str, _Open] = {}
        self._doubtful = Doubtful()
        self._finished = False
        #: Whether the end came before a pod that was taken got its node: what follows from where it
        #: went is not known.
        self._is_cut = False
        #: Pods that the other scheduler found no node for, and Podium did.
        self.missed = 0

    @property
    def waiting(self) -> int:
        """The number of pods that wait for a node, or for a judgement."""
        queued = sum(self.state.queue.counts().values())
        return queued + len(self._taken) + len(self._postponed)

    @property
    def ahead(self) -> int:
        """The number of changes that were fed and are not followed yet."""
        return len(self._ahead)

    # Feeding ------------------------------------------------------------------------------------

    def feed(self, change: ObjectChange) -> None:
        """Add the next change; `advance` follows it."""
        self._ahead.append(change)
        if change.kind == "Pod":
            pod = cast("Pod", change.new if change.new is not None else change.old)
            version = None if change.new is None else pod
            self._versions[pod.uid].append((change.time, version))
            awaited = self._starts.awaited
            if awaited and (version is None or _shows_outcome(version)):
                awaited.discard(pod.uid)

    def advance(self, steps: int = 1 << 62) -> bool:
        """Follow at most so many changes as far as is known; False when nothing is left to do."""
        for _ in range(steps):
            if self._taken:
                if not self._resolve(self._taken[0]):
                    return False
                continue
            if not self._ahead:
                return False
            if not self._follow(self._ahead[0]):
                return False
        return True

    def finish(self) -> None:
        """Judge what is left: no further change will come."""
        self._finished = True
        self.advance()
        for each in list(self._open.values()):
            self._report_open(each)

    # Following ----------------------------------------------------------------------------------

    def _follow(self, change: ObjectChange) -> bool:
        """Follow a change; if it shows that a pod was decided, take pods from the queue instead.

        False if the order of the queue has to be found out first.
        """
        self.now = max(self.now, change.time)
        if change.kind == "Pod":
            old, new = cast("Pod | None", change.old), cast("Pod | None", change.new)
            if old is not None and new is not None and self._is_sign(old, new):
                if not self._queue_as_started():
                    return False
                if self._take_until(old, new):
                    return True
            self._pass_version(old if new is None else new)
        self._ahead.popleft()
        self._position += 1
        self._hypotheses.note(change, self._position)
        self._report_overdue()
        index = self.state.index(change.kind)
        if change.new is not None:
            if change.kind == "Pod":
                self._report_first_seen(change)
                if change.old is None:
                    self._starts.pod_came(self.now)
            index.put(change.new)
        elif change.old is not None:
            uid = change.old.metadata.uid
            self._judged.discard(uid)
            postponed = self._postponed.pop(uid, None)
            if postponed is not None and postponed.turn is not None:
                self.state.queue.done(postponed.turn)
            index.drop(change.old)
            self._listed.pop(uid, None)
            self._end_doubts(uid)
        return True

    def _is_sign(self, old: Pod, new: Pod) -> bool:
        """Whether a change shows that the scheduler has attempted a pod."""
        is_pending = not old.spec.node_name and self.state.is_responsible_for(old)
        return is_pending and (bool(new.spec.node_name) or _reports_failure(old, new))

    def _queue_as_started(self) -> bool:
        """Queue pods as the scheduler found them if it may have started; False to wait for more."""
        starts = self._starts
        if starts.may_have_started(self.now):
            if starts.awaited and not self._waited_long():
                return False
            active = [pod for pod in self._hypotheses.pending() if self._is_active(pod)]
            if len(active) >= FEWEST:
                if starts.awaited is None:
                    uids = {pod.uid for pod in active}
                    starts.awaited = uids - self._signs(uids).keys()
                    if starts.awaited and not self._waited_long():
                        return False
                self._queue_in_order(active)
        starts.sign(self.now, lambda: bool(self.state.queue.counts()[Pool.ACTIVE]))
        return True

    def _is_active(self, pod: Pod) -> bool:
        return self.state.queue.pool_of(pod) == "active" and pod.uid not in self._judged

    def _signs(self, uids: Collection[str]) -> dict[str, int]:
        """Where the outcome of an attempt is first seen ahead, by uid."""
        found: dict[str, int] = {}
        for place, change in enumerate(self._ahead):
            new = cast("Pod", change.new)
            if change.kind != "Pod" or new is None or new.uid not in uids:
                continue
            if _shows_outcome(new):
                found.setdefault(new.uid, place)
        return found

    def _queue_in_order(self, active: Sequence[Pod]) -> None:
        """Queue the pods that wait in the order in which the scheduler most likely took them."""
        signs = self._signs({pod.uid for pod in active})
        silent = self._starts.silent(self.now)
        order = start_order(active, signs, self._agreement, silent=silent)
        if order.is_arrival:
            return
        for pod in order.pods:
            self.state.queue.delete(pod, bound=True)
            self.state.queue.add(pod)
        if order.text:
            self._listed.update((pod.uid, order.text) for pod in order.pods)
        if order.text == UNKNOWN:
            self._hypotheses.unordered.update(pod.uid for pod in order.pods)

    def _agreement(self, pods: Sequence[Pod]) -> float:
        """The share of the first pods, decided in this order, that are on one of the best nodes."""
        places = []
        for pod in pods[:MOST_COMPARED]:
            node, _, _ = self._outcome(pod.uid)
            if node is not None and not self._profile(pod).extenders:
                places.append(Placed(pod, node))
        return self._hypotheses.agreement(places)

    def _profile(self, pod: Pod) -> Profile:
        return self._rules.profiles[pod.spec.scheduler_name]

    def _pass_version(self, pod: Pod | None) -> None:
        assert pod is not None
        versions = self._versions[pod.uid]
        versions.popleft()
        if not versions:
            del self._versions[pod.uid]

    def _report_first_seen(self, change: ObjectChange) -> None:
        """Report what can still be said of a placement when its binding is followed."""
        old, new = cast("Pod | None", change.old), cast("Pod", change.new)
        if old is None or old.spec.node_name or not new.spec.node_name:
            return
        found = self._open.get(new.uid)
        if found is not None:
            self._judge_bound(found)
        elif self.state.is_responsible_for(old) and new.uid not in self._judged:
            self._report(Judgement(new, 1, None, None, None, change.time))
        self._judged.discard(new.uid)

    def _take_until(self, old: Pod, new: Pod) -> bool:
        """Take pods from the queue up to one that was decided; False if none has to be taken."""
        failed = _reports_failure(old, new)
        postponed = self._postponed.pop(old.uid, None)
        if postponed is not None:
            postponed.reported, postponed.decision = True, None
            self._taken.append(postponed)
            return True
        queue, known = self.state.queue, self.state.pod(old)
        followed = failed and old.uid in self._hypotheses.failed_unseen
        if known is None or old.uid in self._judged or followed:
            self._hypotheses.failed_unseen.discard(old.uid)
            return False
        active = queue.pool_of(known) == "active"
        while active:
            turn = queue.pop()
            if turn is None:
                break
            self._taken.append(_Taken(turn, turn.pod, turn.number, self._position))
            if turn.pod.uid == old.uid:
                return True
        if new.spec.node_name:
            # It rests or waits, as far as this queue knows: it was decided some time until now.
            self._taken.append(_Taken(None, known, 2, self._position))
            return True
        return bool(self._taken)

    # Resolving ----------------------------------------------------------------------------------

    def _resolve(self, taken: _Taken) -> bool:
        """Judge the first pod that was taken, if its node is known; False if it must wait."""
        pod = self.state.pod(taken.pod)
        if pod is None or pod.spec.node_name or pod.uid in self._judged:
            self._end(taken)
            return True
        node, gone, at = self._outcome(pod.uid)
        if self._profile(pod).extenders:
            return self._resolve_unjudged(taken, node)
        if taken.decision is None:
            taken.decision = self.decided(taken.pod)
        decision = taken.decision
        if decision.node is None and (taken.turn is not None or node is None):
            if self._nomination_follows(pod.uid, decision):
                return False
            if node is None or not self._judge_earlier(taken, node, at):
                self._fail(taken)
        elif taken.turn is not None and self._failed_by_now(pod) is not None:
            self._resolve_failed(taken)
        elif node is not None:
            self._judge(taken, node, at)
        elif gone or self._waited_long():
            self._is_cut |= self._finished and not gone
            self._hypotheses.never_bound(taken.pod, decision.node)
            self._fail(taken)
        else:
            return False
        return True

    def _judge_earlier(self, taken: _Taken, node: str, bound_at: float) -> bool:
        """Judge a pod that there is no node for now, if there was before the last changes."""
        hypotheses = self._hypotheses
        if self._failed_by_now(taken.pod) or not hypotheses.changes_since(taken.pod):
            return False
        place = hypotheses.place(taken.pod, node, self._position, taken.attempt, late=False)
        if not hypotheses.explained(place, self._ahead):
            return False
        hypotheses.found_no_node(taken.pod)
        self._judge(taken, node, bound_at)
        return True

    def _outcome(self, uid: str) -> tuple[str | None, bool, float]:
        """The node that a pod gets in the changes ahead, or whether it is deleted, and when."""
        for at, version in self._versions.get(uid, ()):
            if version is None:
                return None, True, at
            if version.spec.node_name:
                return version.spec.node_name, False, at
        return None, False, 0.0

    def _resolve_failed(self, taken: _Taken) -> None:
        """Postpone the attempt of a pod that fits and is reported as failed, up to its report."""
        if not taken.reported:
            self._taken.popleft()
            self._postponed[taken.pod.uid] = taken
            return
        # A pod of a group that fits is undone where the group does not.
        if not taken.pod.group and not self._hypotheses.fails_in_another_order(taken.pod):
            self.missed += 1
        self._fail(taken)

    def _failed_by_now(self, pod: Pod) -> Pod | None:
        """The version ahead that reports a failed attempt, if one comes before the pod is bound."""
        for _, version in self._versions.get(pod.uid, ()):
            if version is None or version.spec.node_name:
                return None
            if _reports_failure(pod, version):
                return version
        return None

    def _nomination_follows(self, uid: str, decision: Decision) -> bool:
        """Whether the pod will be nominated to a node, and its status is still to be seen."""
        preemption = decision.preemption
        if preemption is None or preemption.node is None or self._versions.get(uid):
            return False
        return not self._waited_long()

    def _waited_long(self) -> bool:
        if self._finished or len(self._ahead) > self._most_ahead:
            return True
        if self._clock is not None:
            return self._clock() - self.now > self._wait_seconds
        return bool(self._ahead) and self._ahead[-1].time - self.now > self._wait_seconds

    def _resolve_unjudged(self, taken: _Taken, node: str | None) -> bool:
        """Place a pod of a profile with extenders, which cannot be asked in hindsight."""
        if node is not None:
            self._judged.add(taken.pod.uid)
            self.state.queue.clear_nomination(taken.pod)
            self.state.cache.assume(taken.pod, node)
            self._report(Judgement(taken.pod, taken.attempt, None, None, None, self.now))
        self._end(taken)
        return True

    def _end(self, taken: _Taken) -> None:
        if taken.turn is not None:
            self.state.queue.done(taken.turn)
        self._taken.popleft()

    def _fail(self, taken: _Taken) -> None:
        """Return a pod to the queue: its attempt found no node."""
        self._taken.popleft()
        if taken.turn is None:
            return
        decision = taken.decision
        assert decision is not None
        self._move_cursors(decision)
        profile = self._profile(taken.pod)
        result = AttemptResult(taken.pod, decision, profile, taken.attempt, self.now, 0.0, 0.0)
        pod = self.state.pod(taken.pod) or taken.pod
        reported = self._failed_by_now(pod)
        if reported is not None:
            self._hypotheses.failed_unseen.add(pod.uid)
            nominated = reported.status.nominated_node_name
            pod = changed(pod, status=changed(pod.status, nominated_node_name=nominated))
        queue = self.state.queue
        queue.requeue(taken.turn, pod, rejected_by=result.rejected_by)
        self._hypotheses.failed(pod, self._position, reported=reported is not None)
        if pod.status.nominated_node_name:
            queue.nominate(pod, pod.status.nominated_node_name)
        if reported is not None:
            self._end_doubts(pod.uid)

    # Judging ------------------------------------------------------------------------------------

    def _judge(self, taken: _Taken, node: str, bound_at: float) -> None:
        pod, plain, profile = taken.pod, taken.decision, self._profile(taken.pod)
        assert plain is not None
        decision = plain
        found = PlacementComparison(decision.pod, decision.node, node, SAME, time=self.now)
        if decision.node != node:
            decision = self.decided(pod, recording=True)
            found = compare_placement(decision, node, self.now)
        late = bound_at - self.now > self._retry_seconds
        place = self._hypotheses.place(pod, node, self._position, taken.attempt, late=late)
        if found.kind == DIFFERENT:
            found = self._explained(found, place)
        elif pod.uid in self._listed:
            found = replace(found, kind=OTHER_ORDER, why=(self._listed[pod.uid], *found.why))
        self._listed.pop(pod.uid, None)
        self._looked_at.note(pod, node)
        self._move_cursors(decision)
        judgement = Judgement(pod, taken.attempt, found, decision, profile, self.now)
        if found.kind == DIFFERENT:
            self._open[pod.uid] = _Open(place, self.now)
            self._doubtful.put(pod.uid, judgement, plain)
        else:
            self._report(judgement)
        self._judged.add(pod.uid)
        self.state.queue.clear_nomination(pod)
        self.state.cache.assume(pod, node, self._reservations(pod, node, profile, decision))
        self._hypotheses.placed(place)
        self._end(taken)
        self._end_doubts(pod.uid)

    def _explained(self, found: PlacementComparison, place: Placed) -> PlacementComparison:
        """A placement that is different, or what may have happened that it is not."""
        looked = self._looked_at.explained(place.pod, place.node)
        if looked:
            return replace(found, kind=LOOKED_AT, detail="", why=(looked, *found.why))
        return _in_another_order(found, self._hypotheses.explained(place, self._ahead))

    def _reservations(
        self, pod: Pod, node: str, profile: Profile, decision: Decision
    ) -> Mapping[str, Reservation]:
        """What reserve rules set aside on the node where the pod really went."""
        if decision.node == node or not profile.reserve_rules:
            return decision.reservations if decision.node == node else {}
        columns = self.state.cache.columns
        row = columns.nodes.row_of.get(node)
        if row is None or not columns.nodes.known[row]:
            return {}
        there = self._decider.look(pod, profile, recording=False, order=np.array([row]))
        return there.reservations

    # Placements that are different so far -------------------------------------------------------

    def _judge_bound(self, found: _Open) -> None:
        """Judge a placement once more as of its binding: an attempt after a failed one, perhaps."""
        place = found.place
        found.bound = self._position
        order = self._hypotheses.explained_as_of_binding(place)
        if not order:
            found.awaited = self._hypotheses.undecided(place)
        if order or not found.awaited:
            self._report_open(found, order)

    def _end_doubts(self, uid: str) -> None:
        """Judge the placements once more that waited for the decision about a pod."""
        for each in list(self._open.values()):
            if uid in each.awaited:
                each.awaited.remove(uid)
                if not each.awaited:
                    self._report_open(each)

    def _report_overdue(self) -> None:
        """Report a placement that has waited for other pods for long."""
        first = next(iter(self._open.values()), None)
        if first is not None and self.now - first.time > self._wait_seconds:
            self._report_open(first)

    def _report_open(self, found: _Open, order: str = "") -> None:
        """Report a placement, as different unless there is an *order* in which it is not."""
        place = found.place
        del self._open[place.pod.uid]
        judgement = self._doubtful.pop(place.pod.uid)
        assert judgement is not None
        comparison = judgement.comparison
        assert comparison is not None
        bound = found.bound or self._position
        order = order or self._hypotheses.explained_later(place, bound)
        told = None if self._is_cut and not order else _in_another_order(comparison, order)
        self._report(replace(judgement, comparison=told))

    def _move_cursors(self, decision: Decision) -> None:
        """Leave the order of nodes and the rule for ties as the decision leaves them."""
        if decision.tied:
            self._decider.ties.skip(decision.tied)
        self.state.cache.advance(decision.consumed, dropped=decision.dropped)

    def decided(self, pod: Pod, *, recording: bool = False) -> Decision:
        """Decide about a pod in the state as it is; no cursor moves."""
        return self._looked_at.decided(pod, recording=recording)

    def look(self, pod: Pod, profile: Profile) -> Decision:
        """Decide about a pod on request, with everything that led to the decision."""
        return self._decider.look(pod, profile)

    def count_nominated(self) -> None:
        """Let the nominated pods count on their nodes."""
        self._decider.count_nominated()

    def is_best(self, pod: Pod, node: str) -> bool:
        """Whether a node is one of the best for a pod in the state as it is."""
        return self._looked_at.is_best(pod, node)

    def best_nodes(self, pod: Pod) -> Sequence[str]:
        """The best nodes for a pod in the state as it is."""
        decision = self.decided(pod, recording=True)
        return decision.best or ([decision.node] if decision.node else [])


def _in_another_order(found: PlacementComparison, order: str) -> PlacementComparison:
    """A comparison with what may have happened before it; unchanged if there is nothing."""
    if not order:
        return found
    return replace(found, kind=OTHER_ORDER, detail="", why=(order, *found.why))


def _shows_outcome(pod: Pod) -> bool:
    """Whether a pod is bound, or reported as unschedulable."""
    return bool(pod.spec.node_name) or is_unschedulable(pod)


def _reports_failure(old: Pod, new: Pod) -> bool:
    """Whether a change of a pod shows that an attempt found no node."""
    if new.spec.node_name or not is_unschedulable(new):
        return False
    nominated = new.status.nominated_node_name
    return not is_unschedulable(old) or (
        bool(nominated) and nominated != old.status.nominated_node_name
    )
