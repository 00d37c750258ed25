"""What may have happened, where the cluster does not show it.

Pods of one priority are decided in the order of their arrival. When exactly a decision was made
cannot be seen, nor what the scheduler counted on a node for a while. A placement that is not on one
of the best nodes is therefore tried in the states that each hypothesis allows. There has to be
evidence for a hypothesis, and the states that it may cost are limited, or everything could be
excused; `docs/history.md` says how many wrong placements are.

| what may have happened: the pod was decided … | the evidence | states, at most |
|---|---|---|
| before some nominations | they came since the pod did | `MOST_TRIES` |
| before pods that were taken earlier | higher priority, or failed once | `MOST_TRIES` |
| after pods that were taken later | other priority, or failed once; bound soon | `MOST_TRIES` |
| among pods that were listed with it at a start | that order is not known | `MOST_TRIES` |
| before nodes and placed pods changed | they changed since it came | `MOST_TRIES`, each with few |
| while others had failed without a report | they fit nowhere then | `MOST_FAILED` pods |
| while another pod counted elsewhere | its binding came late or never | `RARE` of all pods |
| as late as its binding | its first binding may be refused | `RARE` of all pods |
| after what came before its binding | as above, or vanished unbound | twice `MOST_TRIES` |
| on other nodes than were looked at here | a share is looked at | see `looked_at` |

Each hypothesis is a generator: it changes the state of the judge through a `Trial`, and yields a
sentence. The state is as before when the trial is taken back.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import count as numbers
from typing import TYPE_CHECKING, Final, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod
    from podium.past.format.reading import ObjectChange
    from podium.past.judge.judge import Judge

_Item = TypeVar("_Item")

#: How many placements and changes are kept: a burst of some seconds.
MOST_RECENT: Final = 4096
#: How many states one hypothesis may cost: a quarter of a second in a cluster of 1,000 nodes.
MOST_TRIES: Final = 96
#: How many pods may have counted elsewhere, and on how many nodes each. More are not refused in
#: the time between two decisions, and a good node is among the first few.
MOST_REFUSED: Final = 8
#: How many bindings of pods that were listed together may overtake one: as many as are in flight.
MOST_OVERTAKEN: Final = 256
#: Beside how many states pods that vanished are tried, and then beside every such one.
MOST_BESIDE: Final = 16
#: How many of the last pods may have failed without a report: each costs `MOST_TRIES` decisions.
MOST_FAILED: Final = 16
#: The share of pods whose bindings may have been refused to explain other placements, and how many
#: at least: bindings are seldom refused, and what is rare explains no more.
RARE: Final = 1 / 100
FEWEST_RARE: Final = 1
BEFORE_CHANGES: Final = "decided before the last changes of nodes and pods"


@dataclass(frozen=True, slots=True)
class Placed:
    """A pod on the node where it really went, and when it was taken from the queue."""

    pod: Pod
    node: str
    position: int = 0
    attempt: int = 1
    #: Its place in the order of decisions.
    number: int = 0
    #: Where it was first seen, or reported as failed last.
    since: int = 0
    #: Whether it was bound so late that its first binding may have been refused.
    late: bool = False
    #: Whether an attempt failed before, or Podium found no node.
    failed: bool = False
    #: Whether it was listed with others in an order that cannot be known.
    unordered: bool = False


@dataclass(frozen=True, slots=True)
class Noted:
    """A change of a node or a placed pod, and where it was followed."""

    change: ObjectChange
    position: int

    @property
    def since(self) -> int:
        """Where it was first seen."""
        return self.position


class Trial:
    """Changes of the judge's state, which are taken back in reverse order."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._columns = judge.state.cache.columns
        self._undo: list[Callable[[], object]] = []

    def __len__(self) -> int:
        return len(self._undo)

    def back(self, to: int = 0) -> None:
        """Take back all changes but the first *to*."""
        while len(self._undo) > to:
            self._undo.pop()()

    def node_of(self, pod: Pod) -> str | None:
        """The node that a pod counts on."""
        resident = self._columns.pods.by_uid.get(pod.uid)
        return None if resident is None else self._columns.nodes.names[resident.row]

    def remove(self, places: Iterable[Placed]) -> None:
        """Let some pods count on no node."""
        for pod in (each.pod for each in places):
            node = self.node_of(pod)
            if node is not None:
                self._columns.remove_pod(pod.uid)
                self._undo.append(lambda pod=pod, node=node: self._columns.add_pod(pod, node))  # type: ignore[misc]

    def add(self, pod: Pod, node: str | None) -> None:
        """Let a pod count on a node, unless it counts on one."""
        if node is not None and self.node_of(pod) is None:
            self._columns.add_pod(pod, node)
            self._undo.append(lambda: self._columns.remove_pod(pod.uid))

    def end_nominations(self, uids: Collection[str]) -> None:
        """Let some pods be nominated to no node."""
        if uids:
            self._judge.count_nominated()
            pods = self._columns.pods
            every = pods.nominated
            pods.nominated = {
                node: [each for each in some if each.uid not in uids]
                for node, some in every.items()
            }
            self._undo.append(lambda: setattr(pods, "nominated", every))

    def undo(self, changes: Iterable[Noted]) -> None:
        """Take back some changes of the cluster, the last of them first."""
        for change in (each.change for each in changes):
            self._exchange(change, change.new, change.old)

    def redo(self, change: ObjectChange) -> None:
        """Make a change of the cluster that was undone."""
        self._exchange(change, change.old, change.new)

    def _exchange(self, change: ObjectChange, now: object, then: object) -> None:
        if self._put(change, now, then):
            self._undo.append(lambda: self._put(change, then, now))

    def _put(self, change: ObjectChange, now: object, then: object) -> bool:
        """Put one version of a node or a placed pod into the place of another one."""
        cache, columns = self._judge.state.cache, self._columns
        if change.kind == "Node":
            if then is not None:
                cache.put_node(cast("Node", then))
            else:
                cache.drop_node(cast("Node", now))
            return True
        before, after = cast("Pod | None", now), cast("Pod | None", then)
        if before is not None and before.spec.node_name:
            if columns.pods.by_uid.get(before.uid) is None or cache.is_assumed(before.uid):
                return False
            columns.remove_pod(before.uid)
        if after is not None and after.spec.node_name:
            if columns.pods.by_uid.get(after.uid) is not None:
                return False
            columns.add_pod(after)
        return True


class Hypotheses:
    """What was decided and what changed lately, and what may have happened instead."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._placed: deque[Placed] = deque(maxlen=MOST_RECENT)
        self._numbers = numbers(1)
        #: How many placements there are, and the pods whose refused bindings explain some.
        self._judged = 0
        self._refused: set[str] = set()
        #: The pod whose binding is taken as refused in the state that is tried; "" for none.
        self._suspect = ""
        self._changes: deque[Noted] = deque(maxlen=MOST_RECENT)
        #: Where each pending pod was first seen, or reported last as failed.
        self._since: dict[str, int] = {}
        self._pending: dict[str, Pod] = {}
        self._has_failed: set[str] = set()
        #: Where pods were nominated to nodes, by uid, in that order.
        self._nominated: dict[str, int] = {}
        #: Pods whose failure was followed before the change that reports it.
        self.failed_unseen: set[str] = set()
        #: Pods that were decided and whose binding never came, on the node that Podium chose.
        self._unbound: dict[str, Placed] = {}
        #: Pods that were deleted before they were bound to a node, and where they came and went.
        self._vanished: deque[tuple[Pod, int, int]] = deque(maxlen=MOST_RECENT)
        #: Pods that a scheduler listed when it started, in an order that cannot be known.
        self.unordered: set[str] = set()
        #: Placements whose binding is not followed yet, by uid.
        self._in_flight: dict[str, Placed] = {}

    # What happened ------------------------------------------------------------------------------

    def note(self, change: ObjectChange, position: int) -> None:
        """Note a change that is followed now."""
        if change.kind == "Pod":
            self._note_pod(change, position)
        elif change.kind == "Node" and _matters(change.old, change.new):
            self._changes.append(Noted(change, position))

    def _note_pod(self, change: ObjectChange, position: int) -> None:
        old, new = cast("Pod | None", change.old), cast("Pod | None", change.new)
        pod = cast("Pod", new if new is not None else old)
        uid, was, is_ = pod.uid, bool(old and old.spec.node_name), bool(new and new.spec.node_name)
        if new is None and uid in self._pending and self._is_own(pod):
            self._vanished.append((pod, self._since[uid], position))
        if new is None or is_:
            for kept in (self._since, self._pending, self._nominated, self._unbound):
                kept.pop(uid, None)
            for group in (self._has_failed, self.failed_unseen, self.unordered):
                group.discard(uid)
        elif old is None:
            self._since[uid], self._pending[uid] = position, pod
        if new is not None and new.status.nominated_node_name and not is_:
            self._nominated.setdefault(uid, position)
        bound = old is not None and is_ and not was and self._is_own(old)
        if new is None or bound:
            self._in_flight.pop(uid, None)
        if (was or is_) and not bound and _matters(old, new):
            self._changes.append(Noted(change, position))

    def _is_own(self, pod: Pod) -> bool:
        return self._judge.state.is_responsible_for(pod)

    def pending(self) -> Sequence[Pod]:
        """The pods without a node that the scheduler decides about, in the order of arrival."""
        return [pod for pod in self._pending.values() if self._is_own(pod)]

    def failed(self, pod: Pod, position: int, *, reported: bool) -> None:
        """Note that an attempt failed: if that was reported, the next one is made from now on.

        Otherwise only Podium finds no node, and the pod may have been placed before.
        """
        if reported:
            self._since[pod.uid] = position
        self._has_failed.add(pod.uid)
        self._nominated.pop(pod.uid, None)
        if pod.status.nominated_node_name:
            self._nominated[pod.uid] = position

    def found_no_node(self, pod: Pod) -> None:
        """Note that Podium finds no node for a pod that was placed: it may have failed at first."""
        self._has_failed.add(pod.uid)

    def changes_since(self, pod: Pod) -> Sequence[Noted]:
        """The changes of nodes and placed pods since a pod came, or was reported as failed."""
        since = self._since.get(pod.uid, 0)
        return [each for each in self._changes if each.position > since]

    def place(self, pod: Pod, node: str, position: int, attempt: int, *, late: bool) -> Placed:
        """The placement that is decided next; `placed` notes it."""
        since = self._since.get(pod.uid, 0)
        failed, unordered = pod.uid in self._has_failed, pod.uid in self.unordered
        number = next(self._numbers)
        return Placed(pod, node, position, attempt, number, since, late, failed, unordered)

    def placed(self, place: Placed) -> None:
        """Note a placement."""
        self._judged += 1
        self._placed.append(place)
        self._in_flight[place.pod.uid] = place

    def never_bound(self, pod: Pod, node: str | None) -> None:
        """Note a pod whose node was never seen; it counted somewhere for a while."""
        if node is not None:
            self._unbound[pod.uid] = Placed(pod, node)

    def undecided(self, place: Placed) -> set[str]:
        """The pods that wait for a node and may have been decided before a placement."""
        return {
            pod.uid
            for pod in self.pending()
            if (pod.priority != place.pod.priority or pod.uid in self._has_failed)
            and not self._judge.state.cache.is_assumed(pod.uid)
        }

    # Asking -------------------------------------------------------------------------------------

    def explained(self, place: Placed, ahead: Iterable[ObjectChange]) -> str:
        """What may have happened before a placement is followed, as a sentence; "" for nothing."""
        before = self._maybe_later(place)
        return self._first_true(
            place,
            self._before_nominations,
            lambda trial, place: self._before_others(trial, place, before),
            lambda trial, place: self._after_others(trial, place, ahead),
            lambda trial, place: self._among_listed(trial, place, ahead),
            lambda trial, place: self._before_changes(trial, place, before),
            lambda trial, place: self._beside_failed(trial, place, before),
            self._beside_unbound,
        )

    def explained_as_of_binding(self, place: Placed) -> str:
        """The same when the binding is followed: the decision may have been made just before."""
        return self._first_true(place, self._as_of_binding)

    def explained_later(self, place: Placed, bound: int) -> str:
        """The same once all pods are decided that were there when the pod was *bound*."""
        return self._first_true(place, lambda trial, place: self._later(trial, place, bound))

    def _first_true(
        self, place: Placed, *hypotheses: Callable[[Trial, Placed], Iterator[str]]
    ) -> str:
        """The sentence of the first state in which the node is one of the best."""
        for hypothesis in hypotheses:
            trial = Trial(self._judge)
            try:
                for sentence in hypothesis(trial, place):
                    if self._judge.is_best(place.pod, place.node):
                        self._refused.update({self._suspect} - {""})
                        return sentence
            finally:
                trial.back()
                self._suspect = ""
        return ""

    def _may_be_refused(self, pod: Pod) -> bool:
        """Whether a binding of a pod may have been refused; that is believed of few pods."""
        few = FEWEST_RARE + RARE * self._judged
        return pod.uid in self._refused or len(self._refused) < few

    def fails_in_another_order(self, pod: Pod) -> bool:
        """Whether there may have been no node for a pod some time since it came.

        A pod that was deleted meanwhile, before it was bound, may have counted on any node.
        """
        since = self._since.get(pod.uid, 0)
        if self._vanished and self._vanished[-1][2] > since:
            return True
        return self._fails_before(pod, self.changes_since(pod))

    def _fails_before(self, pod: Pod, changes: Sequence[Noted]) -> bool:
        """Whether there was no node for a pod before some of the last changes."""
        trial, done = Trial(self._judge), 0
        last = changes[-MOST_TRIES:]
        try:
            for power in range(len(last).bit_length() + 1):
                count = min(1 << power, len(last))
                trial.undo(last[::-1][done:count])
                done = count
                if last and self._judge.decided(pod).node is None:
                    return True
        finally:
            trial.back()
        return False

    def agreement(self, places: Sequence[Placed]) -> float:
        """The share of pods that are on one of their best nodes if they are decided in turn.

        Pods that there is no node for fail at first, and say nothing about the order.
        """
        agree = compared = 0
        trial = Trial(self._judge)
        for each in places:
            best = self._judge.best_nodes(each.pod)
            agree += each.node in best
            compared += bool(best)
            trial.add(each.pod, each.node)
        trial.back()
        return agree / compared if compared else 1.0

    # The hypotheses -----------------------------------------------------------------------------

    def _before_nominations(self, trial: Trial, place: Placed) -> Iterator[str]:
        for ended in _endings(self._nominated_since(place.since)):
            trial.end_nominations(ended)
            yield f"decided before the last {len(ended)} nominations"
            trial.back()

    def _before_others(self, trial: Trial, _: Placed, before: Sequence[Placed]) -> Iterator[str]:
        for some in _endings(before):
            trial.remove(some)
            trial.end_nominations(self._nominated_since(some[0].position))
            yield _named("before", some[0], some)
            trial.back()

    def _after_others(
        self, trial: Trial, place: Placed, ahead: Iterable[ObjectChange]
    ) -> Iterator[str]:
        after = self._bound_soon(place.pod, ahead)
        done = 0
        for count in _counts(len(after)):
            for each in after[done:count]:
                trial.add(each.pod, each.node)
            done = count
            yield _named("after", after[count - 1], after[:count])

    def _among_listed(
        self, trial: Trial, place: Placed, ahead: Iterable[ObjectChange]
    ) -> Iterator[str]:
        """Pods bound shortly before are taken from the node, others added to the better nodes."""
        if not place.unordered:
            return
        earlier = [each for each in self._placed if each.unordered][-MOST_OVERTAKEN:]
        later = self._bound_soon(place.pod, ahead, self.unordered)
        for moved in range(MOST_TRIES + 1):
            yield f"decided before or after {moved} pods that were listed with it"
            best = self._judge.best_nodes(place.pod)
            added = next((each for each in later if each.node in best), None)
            taken = next((each for each in earlier[::-1] if each.node == place.node), None)
            if added is not None:
                later.remove(added)
                trial.add(added.pod, added.node)
            elif taken is not None or earlier:
                taken = taken or earlier[-1]
                earlier.remove(taken)
                trial.remove([taken])
            else:
                return

    def _before_changes(
        self, trial: Trial, place: Placed, before: Sequence[Placed]
    ) -> Iterator[str]:
        """Of the pods *before* it, which may have been decided later, all were, or a few."""
        changes, done = self.changes_since(place.pod)[::-1], 0
        for count in _counts(len(changes)):
            trial.undo(changes[done:count])
            done, undone = count, len(trial)
            first = changes[count - 1].position
            trial.end_nominations(self._nominated_since(first))
            ended = len(trial)
            for some in ((), *_few([each for each in before if each.position >= first])):
                trial.remove(some)
                yield BEFORE_CHANGES
                trial.back(ended)
            trial.back(undone)

    def _beside_failed(
        self, trial: Trial, place: Placed, before: Sequence[Placed]
    ) -> Iterator[str]:
        failed = self._may_have_failed(trial, self.changes_since(place.pod), before)
        for some in (*_endings(failed), *_beginnings(failed)):
            trial.remove(some)
            yield _named("before", some[0], some)
            trial.back()
        if failed:
            yield from self._before_changes(trial, place, [*before, *failed])

    def _may_have_failed(
        self, trial: Trial, changes: Sequence[Noted], known: Sequence[Placed]
    ) -> list[Placed]:
        """The last pods, besides *known* ones, that there was no node for before some changes."""
        if not changes:
            return []
        uids = {each.pod.uid for each in known}
        recent = [
            each
            for each in self._placed
            if each.position >= changes[0].position and each.pod.uid not in uids
        ]
        found = []
        for each in recent[-MOST_FAILED:]:
            trial.remove([each])
            since = [change for change in self._changes if change.position > each.since]
            if self._fails_before(each.pod, since):
                found.append(each)
            trial.back()
        return found

    def _beside_unbound(self, trial: Trial, place: Placed) -> Iterator[str]:
        for each in list(self._unbound.values())[-MOST_TRIES:]:
            trial.add(each.pod, each.node)
            yield f"decided while {each.pod.key} counted on {each.node}, which was not bound"
            trial.back()
        late = [each for each in self._in_flight.values() if each.late]
        late = [each for each in late[:MOST_REFUSED] if self._may_be_refused(each.pod)]
        for other in late:
            if other.pod.uid == place.pod.uid:
                continue
            self._suspect = other.pod.uid
            trial.remove([other])
            yield f"decided while {other.pod.key} was not bound to {other.node} yet"
            for node in self._judge.best_nodes(other.pod)[:MOST_REFUSED]:
                trial.add(other.pod, node)
                yield f"decided while {other.pod.key} counted on {node}"
                trial.back(1)
            trial.back()

    def _as_of_binding(self, trial: Trial, place: Placed) -> Iterator[str]:
        if trial.node_of(place.pod) is not None and self._may_be_refused(place.pod):
            self._suspect = place.pod.uid
            trial.remove([place])
            yield "decided later, as of its binding"

    def _later(self, trial: Trial, place: Placed, bound: int) -> Iterator[str]:
        """The state before the placement, then with more and more of what came until the binding.

        Pods that vanished meanwhile are tried beside the first states, and beside some others.
        """
        later = [each for each in self._placed if each.number > place.number]
        changes = [each for each in self._changes if each.position > place.position]
        first: list[Placed | Noted] = [each for each in changes if each.position <= bound]
        first += [each for each in later if each.since < bound and _may_overtake(each, place)]
        gone = sorted(
            (each for each in self._vanished if each[1] < bound and each[2] > place.position),
            key=lambda each: each[1],
        )
        for key in (_position, _since):
            first.sort(key=key)
            trial.end_nominations(self._nominated_since(place.position))
            trial.undo(changes[::-1])
            nodes = {each.pod.uid: trial.node_of(each.pod) for each in (place, *later)}
            trial.remove([place, *later])
            done = 0
            for number, count in enumerate((0, *_counts(len(first)))):
                for item in first[done:count]:
                    _redo(trial, item, nodes)
                done = count
                sentence = _after([each for each in first[:count] if isinstance(each, Placed)])
                yield sentence
                if number < MOST_BESIDE or number % MOST_BESIDE == 0:
                    yield from self._beside_vanished(
                        trial, place, [pod for pod, _, _ in gone[:MOST_REFUSED]], sentence
                    )
            trial.back()

    def _beside_vanished(
        self, trial: Trial, place: Placed, gone: Sequence[Pod], sentence: str
    ) -> Iterator[str]:
        """Each counts on the node that is best for it, another one than the pod's if there is."""
        before = len(trial)
        for pod in gone:
            nodes = self._judge.best_nodes(pod)
            trial.add(pod, next((each for each in nodes if each != place.node), None))
            yield sentence
        trial.back(before)

    # The evidence -------------------------------------------------------------------------------

    def _nominated_since(self, position: int) -> list[str]:
        """The pods that were nominated from a position on."""
        return [uid for uid, at in self._nominated.items() if at >= position]

    def _maybe_later(self, place: Placed) -> list[Placed]:
        """Pods that were taken before this one, and may have been decided after it."""
        found, again = [], place.attempt > 1 or place.failed
        for each in reversed(self._placed):
            if each.position < place.since:
                break
            overtook = each.pod.priority > place.pod.priority
            if again or overtook or each.attempt > 1 or each.failed:
                found.append(each)
        return found[::-1]

    def _bound_soon(
        self, pod: Pod, ahead: Iterable[ObjectChange], others: Collection[str] = ()
    ) -> list[Placed]:
        """Pods that are not decided yet and bound soon, of another priority or after a failure.

        Those that are among *others* are found too.
        """
        state, found = self._judge.state, []
        for change in ahead:
            new = cast("Pod | None", change.new)
            if change.kind != "Pod" or new is None or not new.spec.node_name:
                continue
            known = state.pod(new)
            if known is None or known.spec.node_name or known.uid == pod.uid:
                continue
            if not self._is_own(known) or state.cache.is_assumed(known.uid):
                continue
            differs = known.priority != pod.priority or known.uid in self._has_failed
            if differs or known.uid in others:
                found.append(Placed(known, new.spec.node_name))
                if len(found) >= MOST_TRIES:
                    break
        return found


def _redo(trial: Trial, item: Placed | Noted, nodes: dict[str, str | None]) -> None:
    """Place a pod on its node again, or make a change again; a deleted pod has no node."""
    if isinstance(item, Placed):
        trial.add(item.pod, nodes.get(item.pod.uid))
        return
    trial.redo(item.change)
    if item.change.new is None and item.change.old is not None:
        nodes.pop(item.change.old.metadata.uid, None)


def _may_overtake(other: Placed, place: Placed) -> bool:
    """Whether a pod that was taken after another one may have been decided before it."""
    return other.pod.priority != place.pod.priority or other.failed


def _matters(old: Node | Pod | object, new: Node | Pod | object) -> bool:
    """Whether a change of a node or a placed pod can change a decision."""
    if old is None or new is None:
        return True
    one, other = cast("Node", old), cast("Node", new)
    if one.spec != other.spec or one.metadata.labels != other.metadata.labels:
        return True
    if one.kind == "Node":
        return one.status != other.status
    return cast("Pod", old).terminating != cast("Pod", new).terminating


def _position(each: Placed | Noted) -> int:
    return each.position


def _since(each: Placed | Noted) -> int:
    return each.since


def _counts(most: int) -> Iterator[int]:
    """1, 2, 3 … and then in growing steps up to *most*; no more than `MOST_TRIES` in all."""
    count = 1
    while count < most:
        yield count
        count = max(count + 1, count * 5 // 4 if count > MOST_TRIES // 2 else 0)
    if most:
        yield most


def _endings(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    """The last item, the last two and so on; of many, fewer and fewer."""
    return (items[len(items) - count :] for count in _counts(len(items)))


def _beginnings(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    return (items[:count] for count in _counts(len(items)))


def _few(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    """All items, then the last ones and the first ones: one, two, and soon more at a step."""
    if items:
        yield items
    count, step = 1, 1
    while count < len(items):
        yield items[len(items) - count :]
        yield items[:count]
        count, step = count + step, step + count // 3


def _named(when: str, first: Placed, others: Sequence[Placed]) -> str:
    more = f" and {len(others) - 1} more" if len(others) > 1 else ""
    return f"decided {when} {first.pod.key}{more}"


def _after(others: Sequence[Placed]) -> str:
    if not others:
        return "decided after changes of nodes and pods"
    return _named("after", others[-1], others)
