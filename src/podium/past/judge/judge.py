"""Judges the placements of another scheduler in hindsight, from what the cluster shows of it.

The other scheduler decides about one pod after the other, in the order of its queue. It counts each
on its node at once. Its bindings arrive later and overtake each other. The judge follows the same
events with the same queue. When a binding shows that a pod was decided, so were all pods before it
in the queue: these are taken from the queue. Each is judged once its node is known, with every pod
before it on its real node. Changes that come after that binding wait meanwhile.

A pod that Podium finds no node for failed its attempt, and returns to the queue. Where the order
cannot be known for certain, what may have happened is tried: see `hypotheses`. Where the scheduler
looks at a share of the nodes, `looked_at` says at which.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol, cast

from msgspec.structs import replace as changed

from podium.past.format.reading import ObjectChange, SegmentStart
from podium.past.format.records import Checkpoint
from podium.past.judge.agreement import (
    DIFFERENT,
    LOOKED_AT,
    OTHER_ORDER,
    SAME,
    Judgement,
    PlacementComparison,
    compare_placement,
)
from podium.past.judge.ahead import Ahead, Starts, reports_failure
from podium.past.judge.hypotheses import Hypotheses, Placed
from podium.past.judge.judged_cluster import JudgedCluster
from podium.past.judge.refusals import Refusals
from podium.past.replay.replay import is_read
from podium.scheduler.state.observers import AttemptResult

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from podium.cluster.queue.entities import Turn
    from podium.cluster.verification import Verification
    from podium.engine.framework.decision import Decision
    from podium.objects.kinds.pod import Pod
    from podium.past.format.reading import Entry
    from podium.past.judge.agreement import Agreement
    from podium.past.replay.replay import Rules, RulesOf
    from podium.scheduler.state.cluster_state import ClusterState
    from podium.scheduler.state.observers import Observer

#: How long the node of a pod may take to be seen after pods decided later were bound.
WAIT_SECONDS: Final = 30.0
#: After which share of its backoff a binding may be that of a second attempt. The turn of a pod is
#: not known exactly, and no retry comes before the backoff.
RETRIED_AFTER: Final = 0.9
#: With more changes to be followed, no pod is waited for: their memory is bounded. What differs
#: while the node of a pod is unknown is undecided.
MOST_AHEAD: Final = 100_000
#: With a larger share of placements that nothing explains, the rules are others: what seldom
#: happens explains nothing then.
MOST_UNEXPLAINED: Final = 1 / 20
#: How many placements that differ keep every verdict and every score, the latest ones: with 5,000
#: nodes that is a megabyte for each. Older ones keep their decision without them.
MOST_MATRICES: Final = 32
REFUSED: Final = "decided while {} counted elsewhere, if its first binding was refused"


@dataclass(slots=True)
class _Taken:
    """A pod that was taken from the queue and whose node is not known yet."""

    turn: Turn | None
    pod: Pod
    attempt: int
    #: What Podium decides, while the state has not changed.
    decision: Decision | None = None
    #: Whether the report of its failure is followed next: the attempt was made before it.
    reported: bool = False


@dataclass(slots=True)
class _Open:
    """A placement that is different, until all orders in which it may not be are tried."""

    place: Placed
    judgement: Judgement
    #: Its decision without verdicts and scores.
    plain: Decision
    #: Pods that may explain it: their bindings are late, or they may have been decided before it.
    awaited: set[str] = field(default_factory=set)
    #: What seldom happens and would explain it; "" for nothing.
    seldom: str = ""
    #: Where its binding was followed; 0 before that.
    bound: int = 0
    #: Whether the node of a pod that was decided before it was not known.
    unsure: bool = False


class Reading(Protocol):
    """How far the changes of a running cluster have been read."""

    def read_up_to(self, uids: Collection[str], since: float) -> bool:
        """True once all that happened to some pods up to a time after *since* was fed."""


class Judge:
    """Follows the changes of a cluster, and reports a judgement for each placement."""

    def __init__(
        self,
        rules: Rules,
        report: Callable[[Judgement], None],
        *,
        wait_seconds: float = WAIT_SECONDS,
        most_ahead: int = MOST_AHEAD,
        reading: Reading | None = None,
        observers: Sequence[Observer] = (),
        verification: Verification | None = None,
    ) -> None:
        """Begin with an empty cluster; *report* is called with every judgement, in order.

        The node of a pod may take *wait_seconds* to be seen, by the times of the changes. Changes
        of a running cluster may be fed late: its *reading* says what is known to have not happened.
        No pod is waited for while more than *most_ahead* changes are to be followed.
        *verification* says which decisions are made twice.
        """
        self._report = report
        self._wait_seconds, self._most_ahead, self._reading = wait_seconds, most_ahead, reading
        #: A pod whose binding was refused is tried again after this time at the earliest.
        backoff = rules.behaviour.queue.backoff
        self._retry_seconds = RETRIED_AFTER * backoff.initial if backoff is not None else 0.0
        #: The cluster as far as it was followed, and what is decided there.
        self.cluster = JudgedCluster(rules, observers, verification)
        self._ahead = Ahead()
        self._taken: deque[_Taken] = deque()
        #: Pods that were taken and fit, by uid, although their attempt is reported as failed: it
        #: was made later, at the latest when that report is followed.
        self._postponed: dict[str, _Taken] = {}
        self._position = 0
        self._hypotheses = Hypotheses(self.cluster)
        self._refusals = Refusals(self.cluster)
        self._starts = Starts(self.cluster, self._hypotheses, self._ahead, self._waited_long)
        #: Placements whose binding is not followed yet, by uid; None for one that is not judged.
        self._judged: dict[str, Placed | None] = {}
        #: Placements that are different so far, by uid, and what was judged of them.
        self._open: dict[str, _Open] = {}
        #: The last of them, which keep their matrices.
        self._recent: deque[_Open] = deque()
        #: How many placements nothing explains so far.
        self._unexplained = 0
        self._finished = False
        #: Whether the end came before a pod that was taken got its node: what follows from where it
        #: went is not known.
        self._is_cut = False
        #: Pods that were not waited for, because too many changes came: they may have a node.
        self._unseen: set[str] = set()
        #: Pods that the other scheduler found no node for, and Podium did.
        self.missed = 0

    @property
    def state(self) -> ClusterState:
        """The cluster as far as it was followed."""
        return self.cluster.state

    @property
    def waiting(self) -> int:
        """The number of pods that wait for a node, or for a judgement."""
        queued = sum(self.state.queue.counts().values())
        return queued + len(self._taken) + len(self._postponed)

    @property
    def ahead(self) -> int:
        """The number of changes that were fed and are not followed yet."""
        return len(self._ahead)

    @property
    def _now(self) -> float:
        return self.cluster.now

    def feed(self, change: ObjectChange) -> None:
        """Add the next change; `advance` follows it."""
        self._ahead.feed(change)
        self._starts.fed(change)

    def advance(self, steps: int = 1 << 62) -> bool:
        """Follow at most so many changes as far as is known; False when nothing is left to do."""
        for _ in range(steps):
            if self._taken:
                if not self._resolve(self._taken[0]):
                    return False
            elif not self._ahead or not self._follow(self._ahead.first):
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
        self.cluster.now = max(self._now, change.time)
        is_pod = change.kind == "Pod"
        old, new = cast("Pod | None", change.old), cast("Pod | None", change.new)
        if is_pod and old is not None and new is not None and self._is_sign(old, new):
            if not self._starts.ready():
                return False
            if self._take_until(old, new):
                return True
        self._ahead.follow()
        self._position += 1
        self._hypotheses.note(change, self._position)
        self._report_overdue()
        index = self.state.index(change.kind)
        if change.new is not None:
            if is_pod:
                self._seen(old, cast("Pod", new), change.time)
            index.put(change.new)
        elif change.old is not None:
            index.drop(change.old)
            if is_pod:
                self._gone(cast("Pod", old).uid)
        return True

    def _is_sign(self, old: Pod, new: Pod) -> bool:
        """Whether a change shows that the scheduler has attempted a pod."""
        is_pending = not old.spec.node_name and self.state.is_responsible_for(old)
        return is_pending and (bool(new.spec.node_name) or reports_failure(old, new))

    def _gone(self, uid: str) -> None:
        """Forget a pod that was deleted."""
        self._judged.pop(uid, None)
        self._unseen.discard(uid)
        postponed = self._postponed.pop(uid, None)
        if postponed is not None and postponed.turn is not None:
            self.state.queue.done(postponed.turn)
        self._refusals.gone(uid)
        self._starts.listed.pop(uid, None)
        self._end_doubts(uid)

    def _seen(self, old: Pod | None, new: Pod, time: float) -> None:
        """Judge once more what may depend on a binding, before it is followed."""
        if old is None:
            self._starts.pod_came()
        if old is None or old.spec.node_name or not new.spec.node_name:
            return
        self._unseen.discard(new.uid)
        if new.uid not in self._judged:
            if self.state.is_responsible_for(old):
                self._report(Judgement(new, 1, None, None, None, time))
            return
        place, found = self._judged.pop(new.uid), self._open.get(new.uid)
        if found is not None:
            found.bound = self._position
            found.awaited |= self._hypotheses.undecided(found.place)
        if place is not None:
            self._refusals.bound(place, differs=found is not None)
        self._end_doubts(new.uid)

    def _take_until(self, old: Pod, new: Pod) -> bool:
        """Take pods from the queue up to one that was decided; False if none has to be taken."""
        postponed = self._postponed.pop(old.uid, None)
        if postponed is not None:
            postponed.reported, postponed.decision = True, None
            self._taken.append(postponed)
            return True
        known, waiting = self.state.pod(old), self._hypotheses.waiting(old)
        followed = waiting.failed_unseen and reports_failure(old, new)
        if known is None or old.uid in self._judged or followed:
            waiting.failed_unseen = False
            return False
        queue = self.state.queue
        if queue.pool_of(known) == "active":
            while (turn := queue.pop()) is not None:
                self._taken.append(_Taken(turn, turn.pod, turn.number))
                if turn.pod.uid == old.uid:
                    return True
        if new.spec.node_name:
            # It backs off or waits, as far as this queue knows: it was decided some time until now.
            self._taken.append(_Taken(None, known, 2))
        return bool(self._taken)

    # Resolving ----------------------------------------------------------------------------------

    def _resolve(self, taken: _Taken) -> bool:
        """Judge the first pod that was taken, if its node is known; False if it must wait."""
        pod = self.state.pod(taken.pod)
        if pod is None or pod.spec.node_name or pod.uid in self._judged:
            self._end(taken)
            return True
        node, gone, at = self._ahead.outcome(pod.uid)
        if self.cluster.profile(pod).extenders:
            self._place_unjudged(taken, node)
            return True
        if taken.decision is None:
            taken.decision = self.cluster.decided(taken.pod)
        decision = taken.decision
        if decision.node is None and (taken.turn is not None or node is None):
            if self._nomination_follows(pod.uid, decision):
                return False
            if node is None or not self._judge_earlier(taken, node, at):
                self._fail(taken)
        elif taken.turn is not None and self._ahead.failure(pod) is not None:
            self._resolve_failed(taken)
        elif node is not None:
            self._judge(taken, node, at)
        elif gone or self._waited_long({pod.uid}):
            self._give_up(taken, decision.node, gone=gone)
        else:
            return False
        return True

    def _place_unjudged(self, taken: _Taken, node: str | None) -> None:
        """Place a pod of a profile with extenders, which cannot be asked in hindsight."""
        if node is not None:
            self._judged[taken.pod.uid] = None
            self.cluster.place(taken.pod, node, None)
            self._report(Judgement(taken.pod, taken.attempt, None, None, None, self._now))
        self._end(taken)

    def _judge_earlier(self, taken: _Taken, node: str, bound_at: float) -> bool:
        """Judge a pod that there is no node for now, if there was before the last changes."""
        waiting = self._hypotheses.waiting(taken.pod)
        if self._ahead.failure(taken.pod) or not self._hypotheses.changes_since(waiting.since):
            return False
        place = self._hypotheses.place(taken.pod, node, self._position, taken.attempt, bound_at)
        if not self._hypotheses.explained(place, self._ahead):
            return False
        waiting.failed = True
        self._judge(taken, node, bound_at)
        return True

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

    def _nomination_follows(self, uid: str, decision: Decision) -> bool:
        """Whether the pod will be nominated to a node, and its status is still to be seen."""
        preemption = decision.preemption
        if preemption is None or preemption.node is None or self._ahead.has(uid):
            return False
        return not self._waited_long({uid})

    @property
    def _is_full(self) -> bool:
        return len(self._ahead) > self._most_ahead

    def _waited_long(self, uids: Collection[str]) -> bool:
        """Whether what is not seen of some pods by now is not waited for."""
        if self._finished or self._is_full:
            return True
        since = self._now + self._wait_seconds
        if self._reading is not None:
            return self._reading.read_up_to(uids, since)
        return self._ahead.until > since

    def _end(self, taken: _Taken) -> None:
        if taken.turn is not None:
            self.state.queue.done(taken.turn)
        self._taken.popleft()

    def _give_up(self, taken: _Taken, chosen: str | None, *, gone: bool) -> None:
        """Return a pod whose node is not seen to the queue, although there was one for it."""
        self._is_cut |= self._finished and not gone
        if self._is_full and not gone:
            self._unseen.add(taken.pod.uid)
        self._hypotheses.waiting(taken.pod).chosen = chosen
        self._fail(taken)

    def _fail(self, taken: _Taken) -> None:
        """Return a pod to the queue: its attempt found no node."""
        self._taken.popleft()
        if taken.turn is None:
            return
        decision = taken.decision
        assert decision is not None
        self.cluster.move_on(decision)
        profile = self.cluster.profile(taken.pod)
        result = AttemptResult(taken.pod, decision, profile, taken.attempt, self._now, 0.0, 0.0)
        pod = self.state.pod(taken.pod) or taken.pod
        reported = self._ahead.failure(pod)
        if reported is not None:
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
        """Compare a placement with what Podium decides, and place the pod on its node."""
        pod, plain = taken.pod, taken.decision
        assert plain is not None
        decision = plain
        found = PlacementComparison(decision.pod, decision.node, node, SAME, time=self._now)
        if decision.node != node:
            decision = self.cluster.decided(pod, recording=True)
            found = compare_placement(decision, node, self._now)
        place = self._hypotheses.place(pod, node, self._position, taken.attempt, bound_at)
        listed = self._starts.listed.pop(pod.uid, "")
        if found.kind == DIFFERENT:
            found = _as_good(found, LOOKED_AT, self.cluster.looked_at.explained(pod, node))
        if found.kind == DIFFERENT:
            listed = self._hypotheses.explained(place, self._ahead)
        if found.kind != LOOKED_AT:
            found = _as_good(found, OTHER_ORDER, listed)
        profile = self.cluster.profile(pod)
        needed = self._min_count(pod)
        judgement = Judgement(pod, taken.attempt, found, decision, profile, self._now, needed)
        if found.kind == DIFFERENT:
            suspects = self._refusals.suspects_of(place)
            seldom = self.cluster.looked_at.seldom(pod, node)
            unsure = bool(self._unseen)
            self._keep(_Open(place, judgement, plain, suspects, seldom, unsure=unsure))
        else:
            self._report(judgement)
        self._refusals.placed(place, late=bound_at - self._now > self._retry_seconds)
        self.cluster.looked_at.note(pod, node)
        self.cluster.move_on(decision)
        self._hypotheses.placed(place)
        self._judged[pod.uid] = place
        self.cluster.place(pod, node, decision)
        self._end(taken)
        self._end_doubts(pod.uid)

    def _keep(self, found: _Open) -> None:
        """Keep a placement that differs until it is reported."""
        self._open[found.place.pod.uid] = found
        self._unexplained += not found.seldom
        self._recent.append(found)
        if len(self._recent) > MOST_MATRICES:
            oldest = self._recent.popleft()
            oldest.judgement = replace(oldest.judgement, decision=oldest.plain)

    def _end_doubts(self, uid: str) -> None:
        """Report the placements that waited for a pod alone."""
        for each in list(self._open.values()):
            each.awaited.discard(uid)
            if each.bound and not each.awaited:
                self._report_open(each)

    def _report_overdue(self) -> None:
        """Report a placement that has waited for other pods for long."""
        first = next(iter(self._open.values()), None)
        if first is None:
            return
        if len(self._open) > self._most_ahead:
            first.unsure = True
            self._report_open(first)
            return
        since = first.judgement.time + self._wait_seconds
        if self._now <= since:
            return
        awaited = {*first.awaited, first.place.pod.uid}
        if self._reading is None or (
            not any(self._ahead.has(uid) for uid in awaited)
            and self._reading.read_up_to(awaited, since)
        ):
            self._report_open(first)

    def _report_open(self, found: _Open) -> None:
        """Report a placement, as different unless there is an *order* in which it is not."""
        place, judgement = found.place, found.judgement
        del self._open[place.pod.uid]
        assert judgement.comparison is not None
        bound = found.bound or self._position
        refused = self._refusals.explains(place.pod.uid)
        order = REFUSED.format(refused) if refused else ""
        order = order or self._hypotheses.explained_later(place, bound)
        unsure = found.unsure and not order
        self._unexplained += bool(found.seldom) - bool(order or unsure)
        comparison = _as_good(judgement.comparison, OTHER_ORDER, order)
        if not order and not unsure and self._unexplained <= 1 + MOST_UNEXPLAINED * place.number:
            comparison = _as_good(comparison, LOOKED_AT, found.seldom)
            self._unexplained -= bool(found.seldom)
        is_undecided = unsure or (self._is_cut and not order)
        self._report(replace(judgement, comparison=None if is_undecided else comparison))

    def _min_count(self, pod: Pod) -> int | None:
        """How many pods of a pod's group must have a node; None if the group is not known."""
        namespace, _, name = pod.group.partition("/")
        group = self.state.cache.columns.catalog.pod_groups.get(name, namespace)
        return None if group is None else group.min_count


def _as_good(found: PlacementComparison, kind: str, why: str) -> PlacementComparison:
    """A comparison with what explains it; unchanged if nothing does."""
    return replace(found, kind=kind, detail="", why=(why, *found.why)) if why else found


def judge_history(entries: Iterable[Entry], rules_of: RulesOf, agreement: Agreement) -> None:
    """Feed the changes of a history to a judge, which reports to *agreement*.

    A segment that continues the one before begins with a checkpoint, which says nothing new. One
    that begins with an empty cluster is of another run, and is judged apart.
    """
    judge: Judge | None = None
    in_checkpoint, missed = False, 0
    for entry in entries:
        if isinstance(entry, SegmentStart):
            in_checkpoint = judge is not None and not entry.empty
            if not in_checkpoint:
                missed += _finished(judge)
                judge = Judge(rules_of(entry.header), agreement.judged)
        elif isinstance(entry, Checkpoint):
            in_checkpoint = False
        elif isinstance(entry, ObjectChange) and not in_checkpoint and is_read(entry.kind):
            assert judge is not None
            judge.feed(entry)
            judge.advance()
    missed += _finished(judge)
    waiting = judge.waiting if judge is not None else 0
    agreement.missed, agreement.waiting = lambda: missed, lambda: waiting


def _finished(judge: Judge | None) -> int:
    """Judge what is left; the pods that the other scheduler found no node for and Podium did."""
    if judge is None:
        return 0
    judge.finish()
    return judge.missed
