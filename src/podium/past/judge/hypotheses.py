"""What may have happened, where the cluster does not show it.

Pods of one priority are decided in the order of their arrival. When exactly a decision was made
cannot be seen, nor what the scheduler counted on a node for a while. A placement that is not on one
of the best nodes is therefore tried in the states that each hypothesis allows. Each hypothesis
needs evidence, and the states that it may cost are limited: otherwise everything could be excused.
`docs/history.md` says how many wrong placements are.

| what may have happened: the pod was decided … | the evidence | the cost in states, at most |
|---|---|---|
| before changes, nominations and other pods | they came since it did | `MOST_TRIES` × `_few` |
| the same, and other pods had failed before | they fit nowhere then | as above |
| among pods that were listed with it at a start | their order is not known | `MOST_TRIES` |
| while another pod counted on a node | its binding never came | 1 for each |
| after what came before its binding | it came since the turn | twice `MOST_TRIES` |
| the same, and a pod counted that vanished | it was deleted unbound | `MOST_VANISHED` for some |
| while a pod counted elsewhere | its binding is late | see `refusals` |
| among other nodes than were looked at here | a share is looked at | see `looked_at` |

Other pods are those that may have been decided in another order: of another priority, or after an
attempt that failed. All hypotheses are one generator at the turn of the pod, and one after its
binding. Each changes the cluster through a `Trial`, yields a sentence and takes the trial back.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import count as numbers
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeVar, cast

from podium.past.judge.judged_cluster import Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod
    from podium.past.format.reading import ObjectChange
    from podium.past.judge.judged_cluster import JudgedCluster

_Item = TypeVar("_Item")

#: How many placements and changes are kept: a burst of some seconds.
MOST_RECENT: Final = 4096
#: How many states one hypothesis may cost: a quarter of a second in a cluster of 1,000 nodes.
MOST_TRIES: Final = 96
#: How many pods may have vanished meanwhile: more do not in the time between two decisions.
MOST_VANISHED: Final = 8
#: How many bindings of pods that were listed together may overtake one: as many as are in flight.
MOST_OVERTAKEN: Final = 256
#: Beside how many states pods that vanished are tried; then beside one state in as many.
MOST_BESIDE: Final = 16
#: How many of the last pods may have failed without a report: each costs `MOST_TRIES` decisions.
MOST_FAILED: Final = 16


@dataclass(frozen=True, slots=True)
class Placed:
    """A pod on the node where it really went, and when it was taken from the queue."""

    pod: Pod
    node: str
    position: int = 0
    #: Its place in the order of decisions.
    number: int = 0
    #: Where it was first seen, or reported as failed last.
    since: int = 0
    #: When it was seen as bound.
    bound_at: float = 0.0
    #: Whether an attempt failed before, or Podium found no node.
    failed: bool = False
    #: Whether it was listed with others in an order that cannot be known.
    unordered: bool = False
    #: Where the search for its node began in the list of nodes.
    start: int = 0


@dataclass(frozen=True, slots=True)
class Noted:
    """A change of a node or a placed pod, and where it was followed."""

    change: ObjectChange
    position: int

    @property
    def since(self) -> int:
        """Where it was first seen."""
        return self.position


@dataclass(slots=True)
class UndecidedPod:
    """A pod without a node, and what is known of its attempts."""

    pod: Pod
    #: Where it was first seen, or reported as failed last.
    since: int
    #: Where it was nominated to a node; 0 if it was not.
    nominated: int = 0
    #: Whether an attempt failed, or Podium found no node.
    failed: bool = False
    #: Whether its failure was followed before the change that reports it.
    failed_unseen: bool = False
    #: Whether it was listed with others in an order that cannot be known.
    unordered: bool = False
    #: The node that Podium chose, if its binding never came: it counted somewhere for a while.
    chosen: str | None = None


class Hypotheses:
    """What was decided and what changed lately, and what may have happened instead."""

    def __init__(self, cluster: JudgedCluster) -> None:
        self._cluster = cluster
        self._placed: deque[Placed] = deque(maxlen=MOST_RECENT)
        self._changes: deque[Noted] = deque(maxlen=MOST_RECENT)
        self._numbers = numbers(1)
        self._waiting: dict[str, UndecidedPod] = {}
        #: Pods that were deleted before they were bound to a node, and where they came and went.
        self._vanished: deque[tuple[Pod, int, int]] = deque(maxlen=MOST_RECENT)

    # What happened ------------------------------------------------------------------------------

    def note(self, change: ObjectChange, position: int) -> None:
        """Note a change that is followed now."""
        if change.kind not in {"Node", "Pod"}:
            return
        is_decision = change.kind == "Pod" and self._note_pod(change, position)
        if not is_decision and _matters(change.old, change.new):
            self._changes.append(Noted(change, position))

    def _note_pod(self, change: ObjectChange, position: int) -> bool:
        """Note a change of a pod; False if it is one of a placed pod and no binding."""
        old, new = cast("Pod | None", change.old), cast("Pod | None", change.new)
        pod = cast("Pod", new if new is not None else old)
        if new is None or new.spec.node_name:
            known = self._waiting.pop(pod.uid, None)
            if new is None and known is not None and self._is_own(pod):
                self._vanished.append((pod, known.since, position))
        elif old is None:
            self._waiting[pod.uid] = UndecidedPod(pod, position)
        known = self._waiting.get(pod.uid)
        if known is not None and pod.status.nominated_node_name and not known.nominated:
            known.nominated = position
        if old is not None and old.spec.node_name:
            return False
        return new is None or not new.spec.node_name or (old is not None and self._is_own(old))

    def _is_own(self, pod: Pod) -> bool:
        return self._cluster.state.is_responsible_for(pod)

    def waiting(self, pod: Pod) -> UndecidedPod:
        """What is known of a pod without a node."""
        return self._waiting.get(pod.uid) or UndecidedPod(pod, 0)

    def pending(self) -> Sequence[Pod]:
        """The pods without a node that the scheduler decides about, in the order of arrival."""
        return [each.pod for each in self._waiting.values() if self._is_own(each.pod)]

    def failed(self, pod: Pod, position: int, *, reported: bool) -> None:
        """Note that an attempt failed: if that was reported, the next one is made from now on.

        Otherwise only Podium finds no node, and the pod may have been placed before.
        """
        known = self.waiting(pod)
        known.failed = True
        known.nominated = position if pod.status.nominated_node_name else 0
        if reported:
            known.since, known.failed_unseen = position, True

    def changes_since(self, since: int) -> Sequence[Noted]:
        """The changes of nodes and placed pods from a position on."""
        return [each for each in self._changes if each.position > since]

    def place(self, pod: Pod, node: str, position: int, attempt: int, bound_at: float) -> Placed:
        """The placement that is decided next; `placed` notes it."""
        known = self.waiting(pod)
        return Placed(
            pod,
            node,
            position,
            next(self._numbers),
            known.since,
            bound_at,
            known.failed or attempt > 1,
            known.unordered,
            self._cluster.state.cache.start,
        )

    def placed(self, place: Placed) -> None:
        """Note a placement."""
        self._placed.append(place)

    def undecided(self, place: Placed) -> set[str]:
        """The pods that wait for a node and may have been decided before a placement."""
        return {pod.uid for pod in self.pending() if self._may_overtake(pod, place.pod)}

    # Asking -------------------------------------------------------------------------------------

    def explained(self, place: Placed, ahead: Iterable[ObjectChange]) -> str:
        """What may have happened before a placement is followed, as a sentence; "" for nothing."""
        return self._first_true(place, lambda trial: self._at_turn(trial, place, ahead))

    def explained_later(self, place: Placed, bound: int) -> str:
        """The same once all pods are decided that were there when the pod was *bound*."""
        return self._first_true(place, lambda trial: self._later(trial, place, bound))

    def _first_true(self, place: Placed, states: Callable[[Trial], Iterator[str]]) -> str:
        """The sentence of the first state in which the node is one of the best."""
        trial = Trial(self._cluster)
        try:
            for sentence in states(trial):
                if self._cluster.is_best(place.pod, place.node):
                    return sentence
        finally:
            trial.back()
        return ""

    def fails_in_another_order(self, pod: Pod) -> bool:
        """Whether there may have been no node for a pod some time since it came.

        A pod that was deleted meanwhile, before it was bound, may have counted on any node.
        """
        since = self.waiting(pod).since
        if self._vanished and self._vanished[-1][2] > since:
            return True
        return self._fails_before(pod, since)

    def _fails_before(self, pod: Pod, since: int) -> bool:
        """Whether there was no node for a pod before some of the last changes."""
        trial, done = Trial(self._cluster), 0
        last = self.changes_since(since)[-MOST_TRIES:]
        try:
            for power in range(len(last).bit_length() + 1):
                count = min(1 << power, len(last))
                trial.undo(each.change for each in last[::-1][done:count])
                done = count
                if last and self._cluster.decided(pod).node is None:
                    return True
        finally:
            trial.back()
        return False

    # The hypotheses -----------------------------------------------------------------------------

    def _at_turn(self, trial: Trial, place: Placed, ahead: Iterable[ObjectChange]) -> Iterator[str]:
        others = self._may_be_later(place)
        yield from self._earlier(trial, place, others)
        yield from self._among_listed(trial, place, ahead)
        failed = self._may_have_failed(trial, place, others)
        if failed:
            yield from self._earlier(trial, place, [*others, *failed])
        for each in self._waiting.values():
            if each.chosen is not None:
                trial.add(each.pod, each.chosen)
                yield f"decided while {each.pod.key} counted on {each.chosen}, which was not bound"
                trial.back()

    def _earlier(self, trial: Trial, place: Placed, others: Sequence[Placed]) -> Iterator[str]:
        """Before more and more changes; all *others*, or a few of them, were decided after it."""
        changes, done = self.changes_since(place.since)[::-1], 0
        for count in (0, *_counts(len(changes))):
            trial.undo(each.change for each in changes[done:count])
            done, undone = count, len(trial)
            first = changes[count - 1].position if count else place.since
            for some in ((), *_few([each for each in others if each.position >= first])):
                trial.remove(each.pod for each in some)
                trial.end_nominations(self._nominated_since(some[0].position if some else first))
                yield _before(some)
                trial.back(undone)
        trial.back()

    def _among_listed(
        self, trial: Trial, place: Placed, ahead: Iterable[ObjectChange]
    ) -> Iterator[str]:
        """Pods bound shortly before are taken from the node, others added to the better nodes."""
        if not place.unordered:
            return
        earlier = [each for each in self._placed if each.unordered][-MOST_OVERTAKEN:]
        later = self._bound_soon(place, ahead)
        for moved in range(MOST_TRIES + 1):
            yield f"decided before or after {moved} pods that were listed with it"
            best = self._cluster.best_nodes(place.pod)
            added = next((each for each in later if each.node in best), None)
            if added is not None:
                later.remove(added)
                trial.add(added.pod, added.node)
            elif earlier:
                on_it = (each for each in earlier[::-1] if each.node == place.node)
                taken = next(on_it, earlier[-1])
                earlier.remove(taken)
                trial.remove([taken.pod])
            else:
                break
        trial.back()

    def _later(self, trial: Trial, place: Placed, bound: int) -> Iterator[str]:
        """The state before the placement, then with more and more of what came until the binding.

        Pods that vanished meanwhile are tried beside the first states, and beside some others.
        """
        later = [each for each in self._placed if each.number > place.number]
        changes = self.changes_since(place.position)
        first: list[Placed | Noted] = [each for each in changes if each.position <= bound]
        first += [
            each
            for each in later
            if each.since < bound and (each.pod.priority != place.pod.priority or each.failed)
        ]
        gone = [each for each in self._vanished if each[1] < bound and each[2] > place.position]
        pods = [pod for pod, _, _ in sorted(gone, key=lambda each: each[1])][:MOST_VANISHED]
        for key in ("position", "since"):
            first.sort(key=attrgetter(key))
            trial.begin_at(place.start)
            trial.end_nominations(self._nominated_since(place.position))
            trial.undo(each.change for each in changes[::-1])
            nodes = {each.pod.uid: trial.node_of(each.pod) for each in (place, *later)}
            trial.remove(each.pod for each in (place, *later))
            done = 0
            for number, count in enumerate((0, *_counts(len(first)))):
                for item in first[done:count]:
                    _redo(trial, item, nodes)
                done, before = count, len(trial)
                sentence = _after([each for each in first[:count] if isinstance(each, Placed)])
                yield sentence
                if number < MOST_BESIDE or number % MOST_BESIDE == 0:
                    for pod in pods:
                        best = self._cluster.best_nodes(pod)
                        trial.add(pod, next((each for each in best if each != place.node), None))
                        yield sentence
                    trial.back(before)
            trial.back()

    # The evidence -------------------------------------------------------------------------------

    def _nominated_since(self, position: int) -> list[str]:
        """The pods that were nominated from a position on."""
        return [uid for uid, each in self._waiting.items() if each.nominated >= max(position, 1)]

    def _may_be_later(self, place: Placed) -> list[Placed]:
        """Pods that were taken before this one, and may have been decided after it."""
        return [
            each
            for each in self._placed
            if each.position >= place.since
            and (place.failed or each.failed or each.pod.priority > place.pod.priority)
        ]

    def _may_overtake(self, other: Pod, pod: Pod) -> bool:
        """Whether a pod that is not decided yet may have been decided before one that is."""
        known = self.waiting(other)
        differs = other.priority != pod.priority or known.failed
        return differs and not self._cluster.state.cache.is_assumed(other.uid)

    def _may_have_failed(
        self, trial: Trial, place: Placed, known: Sequence[Placed]
    ) -> list[Placed]:
        """The last pods, besides *known* ones, that there was no node for before some changes."""
        changes = self.changes_since(place.since)
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
            trial.remove([each.pod])
            if self._fails_before(each.pod, each.since):
                found.append(each)
            trial.back()
        return found

    def _bound_soon(self, place: Placed, ahead: Iterable[ObjectChange]) -> list[Placed]:
        """Pods that are bound soon and may have been decided before, or were listed with it."""
        state, found = self._cluster.state, []
        for change in ahead:
            new = cast("Pod | None", change.new)
            if change.kind != "Pod" or new is None or not new.spec.node_name:
                continue
            known = state.pod(new)
            if known is None or known.spec.node_name or known.uid == place.pod.uid:
                continue
            listed = place.unordered and self.waiting(known).unordered
            if self._is_own(known) and (listed or self._may_overtake(known, place.pod)):
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


def _counts(most: int) -> Iterator[int]:
    """1, 2, 3 … and then in growing steps up to *most*; no more than `MOST_TRIES` in all."""
    count = 1
    while count < most:
        yield count
        count = max(count + 1, count * 5 // 4 if count > MOST_TRIES // 2 else 0)
    if most:
        yield most


def _few(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    """All items, then the last ones and the first ones: one, two, and soon more at a step."""
    if items:
        yield items
    count, step = 1, 1
    while count < len(items):
        yield items[len(items) - count :]
        yield items[:count]
        count, step = count + step, step + count // 3


def _before(others: Sequence[Placed]) -> str:
    return _named("before", others[0], others) if others else "decided before the last changes"


def _after(others: Sequence[Placed]) -> str:
    return _named("after", others[-1], others) if others else "decided after changes"


def _named(when: str, first: Placed, others: Sequence[Placed]) -> str:
    more = f" and {len(others) - 1} more" if len(others) > 1 else ""
    return f"decided {when} {first.pod.key}{more}"
