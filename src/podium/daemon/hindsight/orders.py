"""The orders in which another scheduler may have decided, where the cluster does not show it.

Pods of one priority are decided in the order of their arrival. What cannot be seen is when exactly
a decision was made: a pod of higher priority may have come just after it, a pod that failed may
have been tried again any time since, and a change of a node or the deletion of a pod may have been
seen by the scheduler just before or just after. Each of these is one of the orders that are tried
here, on the state of the judge, which is afterwards as before.
"""

from __future__ import annotations

from collections import deque
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import count as numbers
from typing import TYPE_CHECKING, Final, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator, Sequence

    from podium.daemon.hindsight.judge import Judge
    from podium.engine.framework.profile import Profile
    from podium.history.reading import ObjectChange
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod

_Item = TypeVar("_Item")

#: How many placements, failures and changes are kept.
MOST_RECENT: Final = 4096
#: How many orders of one kind are tried.
MOST_TRIES: Final = 96
#: How many pods may have been refused, and on how many nodes each may have counted before.
MOST_REFUSED: Final = 8
#: How many bindings of pods that were listed together may have overtaken another one.
MOST_OVERTAKEN: Final = 256
#: How many states are tried beside pods that vanished, and how far apart those after them are.
MOST_BESIDE: Final = 16
#: How many of the last pods may have failed at first without a report.
MOST_FAILED: Final = 16
BEFORE_CHANGES: Final = "decided before the last changes of nodes and pods"


@dataclass(frozen=True, slots=True)
class Placed:
    """A pod on the node where it really went, and when it was taken from the queue."""

    pod: Pod
    node: str
    position: int
    attempt: int
    #: Its place in the order of decisions, and where it was first seen, or reported as
    #: failed last.
    number: int = 0
    since: int = 0
    #: Whether it was bound so late that its first binding may have been refused.
    late: bool = False
    #: Whether an attempt failed before, or Podium found no node.
    failed: bool = False
    #: Whether it was listed with others in an order that cannot be known.
    unordered: bool = False


@dataclass(frozen=True, slots=True)
class Undone:
    """A change that may have come after a decision although it was seen before."""

    change: ObjectChange
    position: int


class PossibleOrders:
    """What was decided and what changed lately, and the other orders of it."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._placed: deque[Placed] = deque(maxlen=MOST_RECENT)
        self._numbers = numbers(1)
        self._changes: deque[Undone] = deque(maxlen=MOST_RECENT)
        #: Where each pending pod was first seen, or reported last as failed.
        self._since: dict[str, int] = {}
        self._pending: dict[str, Pod] = {}
        self._has_failed: set[str] = set()
        #: Where pods were nominated to nodes, by uid, in that order.
        self._nominated: dict[str, int] = {}
        #: Pods whose failure was followed before the change that reports it.
        self.failed_unseen: set[str] = set()
        #: Pods that were decided and whose binding never came, on the node that Podium chose.
        self._unbound: dict[str, tuple[Pod, str]] = {}
        #: Pods that were deleted before they were bound to a node, and where: they may have counted
        #: on a node for a while.
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
        elif change.kind == "Node" and _node_matters(change):
            self._changes.append(Undone(change, position))

    def _note_pod(self, change: ObjectChange, position: int) -> None:
        old, new = cast("Pod | None", change.old), cast("Pod | None", change.new)
        pod = new if new is not None else old
        assert pod is not None
        if new is None and pod.uid in self._pending and self._is_own(pod):
            self._vanished.append((pod, self._since[pod.uid], position))
        if new is None or new.spec.node_name:
            self._since.pop(pod.uid, None)
            self._pending.pop(pod.uid, None)
            self._has_failed.discard(pod.uid)
            self._nominated.pop(pod.uid, None)
            self.failed_unseen.discard(pod.uid)
            self._unbound.pop(pod.uid, None)
            self.unordered.discard(pod.uid)
        if new is None:
            self._in_flight.pop(pod.uid, None)
        if old is None and new is not None and not new.spec.node_name:
            self._since[pod.uid] = position
            self._pending[pod.uid] = pod
        if new is not None and new.status.nominated_node_name and not new.spec.node_name:
            self._nominated.setdefault(pod.uid, position)
        was, is_ = (bool(each is not None and each.spec.node_name) for each in (old, new))
        own_binding = old is not None and is_ and not was and self._is_own(old)
        if own_binding:
            self._in_flight.pop(pod.uid, None)
        elif (was or is_) and _matters(old, new):
            self._changes.append(Undone(change, position))

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

    def changes_since(self, pod: Pod) -> bool:
        """Whether nodes or placed pods changed since a pod came, or was reported as failed."""
        last = self._changes[-1].position if self._changes else 0
        return last > self._since.get(pod.uid, 0)

    def found_no_node(self, pod: Pod) -> None:
        """Note that Podium finds no node for a pod that was placed: it may have failed at first."""
        self._has_failed.add(pod.uid)

    def place(self, pod: Pod, node: str, position: int, attempt: int, *, late: bool) -> Placed:
        """The placement that is decided next; `placed` notes it."""
        since = self._since.get(pod.uid, 0)
        failed, unordered = pod.uid in self._has_failed, pod.uid in self.unordered
        number = next(self._numbers)
        return Placed(pod, node, position, attempt, number, since, late, failed, unordered)

    def placed(self, place: Placed) -> None:
        """Note a placement."""
        self._placed.append(place)
        self._in_flight[place.pod.uid] = place

    def never_bound(self, pod: Pod, node: str | None) -> None:
        """Note a pod whose node was never seen; it counted somewhere for a while."""
        if node is not None:
            self._unbound[pod.uid] = (pod, node)

    def agreement(self, places: Sequence[tuple[Pod, str, Profile]]) -> float:
        """The share of pods that are on one of their best nodes if they are decided in turn.

        Pods that there is no node for fail at first, and say nothing about the order.
        """
        agree = compared = 0
        with ExitStack() as added:
            for pod, node, profile in places:
                best = self._judge.best_nodes(pod, profile)
                agree += node in best
                compared += bool(best)
                added.enter_context(self._with([Placed(pod, node, 0, 1)]))
        return agree / compared if compared else 1.0

    # Other orders -------------------------------------------------------------------------------

    def other_order(self, place: Placed, ahead: Iterable[ObjectChange], profile: Profile) -> str:
        """A sentence about an order in which the node is one of the best; "" if there is none."""
        pod = place.pod
        since = self._since.get(pod.uid, 0)
        again = place.attempt > 1 or pod.uid in self._has_failed
        before = self._maybe_later(pod, since, again=again)
        for ended in _endings(self._nominated_since(since)):
            with self._judge.without_nominations(ended):
                if self._best(place, profile):
                    return f"decided before the last {len(ended)} nominations"
        for some in _endings(before):
            ended = self._nominated_since(some[0].position)
            with self._without(some), self._judge.without_nominations(ended):
                if self._best(place, profile):
                    return _decided_first(some)
        after = self._maybe_earlier(pod, ahead)
        for some in _beginnings(after):
            with self._with(some):
                if self._best(place, profile):
                    return _decided_after(some)
        return (
            self._overtaken(place, ahead, profile)
            or self._around_changes(place, before, profile)
            or self._unbound_order(place, profile)
        )

    def _overtaken(self, place: Placed, ahead: Iterable[ObjectChange], profile: Profile) -> str:
        """An order of pods listed at a start in which bindings overtook each other.

        Pods bound shortly before are taken from the node, and those bound shortly after are added
        to the nodes that are better, one after the other.
        """
        if not place.unordered:
            return ""
        earlier = [each for each in self._placed if each.unordered][-MOST_OVERTAKEN:]
        later = self._maybe_earlier(place.pod, ahead, self.unordered)
        moved = 0
        with ExitStack() as changed:
            while moved <= MOST_TRIES:
                best = self._judge.best_nodes(place.pod, profile)
                if place.node in best:
                    return f"decided before or after {moved} pods that were listed with it"
                added = next((each for each in later if each.node in best), None)
                taken = next((each for each in earlier[::-1] if each.node == place.node), None)
                if added is not None:
                    later.remove(added)
                    changed.enter_context(self._with([added]))
                elif taken is not None or earlier:
                    taken = taken or earlier[-1]
                    earlier.remove(taken)
                    changed.enter_context(self._without([taken]))
                else:
                    break
                moved += 1
        return ""

    def _around_changes(self, place: Placed, before: Sequence[Placed], profile: Profile) -> str:
        """An order in which nodes or placed pods changed later, or others failed before."""
        since = self._since.get(place.pod.uid, 0)
        changes = [each for each in self._changes if each.position > since]
        if self._before_changes(place, changes, before, profile):
            return BEFORE_CHANGES
        failed = self._may_have_failed(changes, before, profile)
        for some in (*_endings(failed), *_beginnings(failed)):
            with self._without(some):
                if self._best(place, profile):
                    return _decided_first(some)
        if failed and self._before_changes(place, changes, [*before, *failed], profile):
            return BEFORE_CHANGES
        return ""

    def _before_changes(
        self, place: Placed, changes: Sequence[Undone], before: Sequence[Placed], profile: Profile
    ) -> bool:
        """Whether the node is one of the best before some of the last changes.

        Of the pods *before* it, which may have been decided later, all were, or some of the last.
        """
        with closing(self._undoing(changes, _counts(len(changes)))) as undoing:
            for first in undoing:
                later = [each for each in before if each.position >= first.position]
                ended = self._nominated_since(first.position)
                with self._judge.without_nominations(ended):
                    for some in ((), *_few(later)):
                        with self._without(some):
                            if self._best(place, profile):
                                return True
        return False

    def _may_have_failed(
        self, changes: Sequence[Undone], known: Sequence[Placed], profile: Profile
    ) -> list[Placed]:
        """The last pods, besides *known* ones, that there was no node for before some changes.

        Their first attempt may have failed without a report, and they were placed later.
        """
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
            with self._without([each]):
                if self._fails_before_changes(each.pod, each.since, profile):
                    found.append(each)
        return found

    def undecided(self, place: Placed) -> set[str]:
        """The pods that wait for a node and may have been decided before a placement."""
        is_assumed = self._judge.state.cache.is_assumed
        return {
            uid
            for uid, pod in self._pending.items()
            if (pod.priority != place.pod.priority or uid in self._has_failed)
            and not is_assumed(uid)
            and self._is_own(pod)
        }

    def _may_overtake(self, other: Placed, place: Placed) -> bool:
        """Whether a pod that was taken after another one may have been decided before it."""
        return other.pod.priority != place.pod.priority or other.failed

    def decided_later(self, place: Placed, bound: int, profile: Profile) -> str:
        """A sentence about an order in which pods were decided first that were taken later.

        These are pods that were there before the pod was *bound*: a position in the order of
        changes. "" if the node is not one of the best in any of these orders.
        """
        later = [each for each in self._placed if each.number > place.number]
        changes = [each for each in self._changes if each.position > place.position]
        first: list[Placed | Undone] = [
            *(each for each in changes if each.position <= bound),
            *(each for each in later if each.since < bound and self._may_overtake(each, place)),
        ]
        ended = self._nominated_since(place.position)
        vanished = self._vanished_beside(place, bound)
        for key in (_when_taken, _when_seen):
            first.sort(key=key)
            with (
                self._judge.without_nominations(ended),
                closing(self._redoing(first, changes, [place, *later])) as redoing,
            ):
                for number, seen in enumerate(redoing):
                    # Pods that vanished are tried beside the first states, and some of the others.
                    beside = vanished if number < MOST_BESIDE or number % MOST_BESIDE == 0 else ()
                    if self._best(place, profile) or self._best_beside(beside, place, profile):
                        return _decided_after([each for each in seen if isinstance(each, Placed)])
        return ""

    def _vanished_beside(self, place: Placed, bound: int) -> list[Pod]:
        """The first pods that may have counted on a node meanwhile, and were never bound."""
        found = [each for each in self._vanished if each[1] < bound and each[2] > place.position]
        found.sort(key=lambda each: each[1])
        return [pod for pod, _, _ in found[:MOST_REFUSED]]

    def _best_beside(self, vanished: Sequence[Pod], place: Placed, profile: Profile) -> bool:
        """Whether the node is one of the best while pods counted somewhere that were never bound.

        Each counts on the node that is best for it, another one than the pod's if there is one.
        """
        with ExitStack() as added:
            for pod in vanished:
                nodes = self._judge.best_nodes(pod, profile)
                node = next((each for each in nodes if each != place.node), None)
                if node is None:
                    continue
                added.enter_context(self._with([Placed(pod, node, 0, 1)]))
                if self._best(place, profile):
                    return True
        return False

    def fails_in_another_order(self, pod: Pod, profile: Profile) -> bool:
        """Whether there may have been no node for a pod some time since it came.

        A pod that was deleted meanwhile, before it was bound, may have counted on any node.
        """
        since = self._since.get(pod.uid, 0)
        if self._vanished and self._vanished[-1][2] > since:
            return True
        return self._fails_before_changes(pod, since, profile)

    def _fails_before_changes(self, pod: Pod, since: int, profile: Profile) -> bool:
        changes = [each for each in self._changes if each.position > since][-MOST_TRIES:]
        counts = [1 << power for power in range(len(changes).bit_length())]
        with closing(self._undoing(changes, [*counts, len(changes)])) as undoing:
            return any(self._judge.decided(pod, profile).node is None for _ in undoing)

    def _nominated_since(self, position: int) -> list[str]:
        """The pods that were nominated from a position on."""
        return [uid for uid, at in self._nominated.items() if at >= position]

    def _unbound_order(self, place: Placed, profile: Profile) -> str:
        """An order in which another pod was not where it is now: a binding of it was refused."""
        for pod, node in list(self._unbound.values())[-MOST_TRIES:]:
            with self._with([Placed(pod, node, 0, 1)]):
                if self._best(place, profile):
                    return f"decided while {pod.key} counted on {node}, which was not bound"
        late = [each for each in self._in_flight.values() if each.late]
        for other in late[:MOST_REFUSED]:
            if other.pod.uid == place.pod.uid:
                continue
            with self._without([other]):
                if self._best(place, profile):
                    return f"decided while {other.pod.key} was not bound to {other.node} yet"
                for node in self._judge.best_nodes(other.pod, profile)[:MOST_REFUSED]:
                    with self._with([Placed(other.pod, node, 0, 1)]):
                        if self._best(place, profile):
                            return f"decided while {other.pod.key} counted on {node}"
        return ""

    def as_of_binding(self, pod: Pod, node: str, profile: Profile) -> str:
        """A sentence if the node is one of the best when the binding is seen; "" otherwise."""
        columns = self._judge.state.cache.columns
        if columns.pods.by_uid.get(pod.uid) is None:
            return ""
        with self._without([Placed(pod, node, 0, 1)]):
            if self._judge.is_best(pod, node, profile):
                return "decided later, as of its binding"
        return ""

    def _best(self, place: Placed, profile: Profile) -> bool:
        return self._judge.is_best(place.pod, place.node, profile)

    def _maybe_later(self, pod: Pod, since: int, *, again: bool) -> list[Placed]:
        """Pods that were taken before this one, and may have been decided after it."""
        found = []
        for each in reversed(self._placed):
            if each.position < since:
                break
            overtook = each.pod.priority > pod.priority
            if again or overtook or each.attempt > 1 or each.failed:
                found.append(each)
        found.reverse()
        return found

    def _maybe_earlier(
        self, pod: Pod, ahead: Iterable[ObjectChange], others: Collection[str] = ()
    ) -> list[Placed]:
        """Pods that were not decided yet in this order, and were bound soon after.

        They have another priority or failed before, or are among *others*.
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
                found.append(Placed(known, new.spec.node_name, 0, 1))
                if len(found) >= MOST_TRIES:
                    break
        return found

    # Changes of the state that are taken back ---------------------------------------------------

    @contextmanager
    def _without(self, places: Sequence[Placed]) -> Iterator[None]:
        """The state without some pods."""
        columns = self._judge.state.cache.columns
        removed = []
        for each in places:
            resident = columns.pods.by_uid.get(each.pod.uid)
            if resident is not None:
                removed.append((each.pod, columns.nodes.names[resident.row]))
                columns.remove_pod(each.pod.uid)
        try:
            yield
        finally:
            for pod, node in removed:
                columns.add_pod(pod, node)

    @contextmanager
    def _with(self, places: Sequence[Placed]) -> Iterator[None]:
        """The state with some more pods."""
        columns = self._judge.state.cache.columns
        added = []
        for each in places:
            if columns.pods.by_uid.get(each.pod.uid) is None:
                columns.add_pod(each.pod, each.node)
                added.append(each.pod.uid)
        try:
            yield
        finally:
            for uid in reversed(added):
                columns.remove_pod(uid)

    def _undoing(self, changes: Sequence[Undone], counts: Iterable[int]) -> Generator[Undone]:
        """Undo more and more of the last changes: as many as each of the growing counts says.

        Yields the first change that is undone; the state is as before when it is closed.
        """
        done: list[Undone] = []
        undone = 0
        try:
            for count in counts:
                more = changes[len(changes) - count : len(changes) - undone]
                done += [
                    each
                    for each in reversed(more)
                    if self._exchange(each.change, each.change.new, each.change.old)
                ]
                if count > undone:
                    undone = count
                    yield changes[-count]
        finally:
            for each in reversed(done):
                self._exchange(each.change, each.change.old, each.change.new)

    def _redoing(
        self,
        first: Sequence[Placed | Undone],
        changes: Sequence[Undone],
        places: Sequence[Placed],
    ) -> Generator[Sequence[Placed | Undone]]:
        """The state before some changes and placements, then after more and more of the *first*.

        Yields those that are done again; the state is as before when it is closed.
        """
        columns = self._judge.state.cache.columns
        with ExitStack() as restored:
            restored.enter_context(self._undone(changes))
            nodes = {}
            for each in places:
                resident = columns.pods.by_uid.get(each.pod.uid)
                if resident is not None:
                    nodes[each.pod.uid] = columns.nodes.names[resident.row]
            restored.enter_context(self._without(places))
            done = 0
            for count in (0, *_counts(len(first))):
                for item in first[done:count]:
                    if isinstance(item, Placed):
                        node = nodes.get(item.pod.uid)
                        if node is not None:
                            columns.add_pod(item.pod, node)
                            restored.callback(columns.remove_pod, item.pod.uid)
                    elif self._exchange(item.change, item.change.old, item.change.new):
                        change = item.change
                        restored.callback(self._exchange, change, change.new, change.old)
                        if change.new is None and change.old is not None:
                            nodes.pop(change.old.metadata.uid, None)
                done = count
                yield first[:count]

    @contextmanager
    def _undone(self, changes: Sequence[Undone]) -> Iterator[None]:
        """The state before some changes of nodes and placed pods."""
        with closing(self._undoing(changes, [len(changes)])) as undoing:
            for _ in undoing:
                break
            yield

    def _exchange(self, change: ObjectChange, now: object, then: object) -> bool:
        """Put one version of a node or a placed pod into the place of another one."""
        cache = self._judge.state.cache
        if change.kind == "Node":
            if then is not None:
                cache.put_node(cast("Node", then))
            else:
                cache.drop_node(cast("Node", now))
            return True
        before, after = cast("Pod | None", now), cast("Pod | None", then)
        columns = cache.columns
        placed = before is not None and bool(before.spec.node_name)
        if placed and before is not None:
            if columns.pods.by_uid.get(before.uid) is None or cache.is_assumed(before.uid):
                return False
            columns.remove_pod(before.uid)
        if after is not None and after.spec.node_name:
            if columns.pods.by_uid.get(after.uid) is not None:
                return False
            columns.add_pod(after)
        return True


def _matters(old: Pod | None, new: Pod | None) -> bool:
    """Whether a change of a placed pod can change a decision."""
    if old is None or new is None:
        return True
    return (
        old.spec != new.spec
        or old.metadata.labels != new.metadata.labels
        or old.terminating != new.terminating
    )


def _node_matters(change: ObjectChange) -> bool:
    """Whether a change of a node is more than a sign of life."""
    old, new = cast("Node | None", change.old), cast("Node | None", change.new)
    if old is None or new is None:
        return True
    return (
        old.spec != new.spec
        or old.metadata.labels != new.metadata.labels
        or old.status != new.status
    )


def _endings(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    """The last item, the last two and so on; of many, fewer and fewer."""
    for count in _counts(len(items)):
        yield items[len(items) - count :]


def _few(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    """All items, then the last ones and the first ones: one, two, and soon more at a step."""
    if items:
        yield items
    count, step = 1, 1
    while count < len(items):
        yield items[len(items) - count :]
        yield items[:count]
        count, step = count + step, step + count // 3


def _beginnings(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    for count in _counts(len(items)):
        yield items[:count]


def _counts(most: int) -> Iterator[int]:
    """1, 2, 3 … and then in growing steps up to *most*; no more than `MOST_TRIES` in all."""
    count = 1
    while count < most:
        yield count
        count = max(count + 1, count * 5 // 4 if count > MOST_TRIES // 2 else 0)
    if most:
        yield most


def _when_taken(each: Placed | Undone) -> int:
    return each.position


def _when_seen(each: Placed | Undone) -> int:
    """Where a change was followed, or a pod that was placed was first seen."""
    return each.since if isinstance(each, Placed) else each.position


def _decided_first(others: Sequence[Placed]) -> str:
    names = f"{others[0].pod.key} and {len(others) - 1} more" if len(others) > 1 else ""
    return f"decided before {names or others[0].pod.key}"


def _decided_after(others: Sequence[Placed]) -> str:
    if not others:
        return "decided after changes of nodes and pods"
    names = f"{others[-1].pod.key} and {len(others) - 1} more" if len(others) > 1 else ""
    return f"decided after {names or others[-1].pod.key}"
