"""Which nodes another scheduler looked at, where it looks at a share of them.

kube-scheduler goes through its list of nodes from the place where it stopped before, until enough
nodes are found that fit. Its workers take chunks of the list and go through them side by side. Of
the last chunks, some nodes are looked at and others are not. Neither the place nor the workers can
be seen. Both are followed here:

| what cannot be seen | the evidence | what is allowed |
|---|---|---|
| where a search begins | it explains most of the last placements | one place, after `LEARNING` |
| how many workers run side by side | it explains most of the last placements | one number |
| which of them was faster at the end | none | `RACE` nodes for each; a chunk for each beyond |
| how many were rejected meanwhile | none | beginnings `DRIFT` of the list away |
| an interrupted worker, another number | it explains most that differ | `RARE` of all placements |

A place or a number is given up when another one explains clearly more. What seldom happens explains
a small share of the placements and no more, or every wrong one could be excused.
"""

from __future__ import annotations

from dataclasses import replace
from math import isqrt
from typing import TYPE_CHECKING, Final

import numpy as np

from podium.engine.cycle.searching import wanted_by
from podium.engine.state.verdicts import FITS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from podium.cluster.cache.cache import Cache
    from podium.cluster.decider import Decider
    from podium.engine.framework.decision import Decision
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.pod import Pod

#: How many nodes a worker may be ahead or behind when enough are found.
RACE: Final = 2
#: How far from the expected place a search may have begun, as a share of the list. It must explain
#: as many of the last placements as the expected place, less so many.
DRIFT: Final = 1 / 16
_AS_MANY: Final = 0.6
#: The share of placements that may be explained by what seldom happens, and how many at least. On
#: two cores that were busy with other work, 14 of 3,001 needed it.
RARE: Final = 1 / 100
FEWEST_RARE: Final = 1
#: How many placements it has to explain for each that nothing explains: wrong rules leave more.
BEYOND_CHANCE: Final = 4
#: How many chunks workers that were interrupted may have left unfinished.
MOST_UNFINISHED: Final = 2
#: After how many placements the place where a search begins is taken as known.
LEARNING: Final = 16
#: How much an earlier placement counts less than the next one; some thirty count.
_FADING: Final = 0.97
#: By how many placements another explanation must be ahead to be taken in place of the present one.
_AHEAD: Final = 2.5
#: How often nodes are left out, each time those with a better total, until the best one is found.
_ROUNDS: Final = 4

SHARE: Final = "best of the nodes that it looked at"
RACED: Final = f"{SHARE}, as far as its workers had come"
NEARBY: Final = f"{SHARE}, from a few places before or after"
SELDOM: Final = f"{SHARE}, if a worker was interrupted"
UNKNOWN_START: Final = f"{SHARE}; where its search began is not known yet"


class Search:
    """The verdicts and totals of all nodes about one pod, in the order of the list."""

    def __init__(
        self, decision: Decision, order: np.ndarray, names: list[str], wanted: int
    ) -> None:
        self.wanted = wanted
        self.order = order
        self.fits = decision.codes == FITS
        self.totals = np.zeros(len(order), np.int64)
        if decision.totals is not None:
            self.totals[self.fits] = decision.totals
        self._names = names

    @property
    def is_cut_short(self) -> bool:
        """Whether more nodes fit than are wanted."""
        return len(self.fits) == len(self.order) and int(self.fits.sum()) > self.wanted

    def place_of(self, node: str) -> int | None:
        """The place of a node that fits; None if it does not."""
        places = [
            at for at in self.fits.nonzero()[0].tolist() if self._names[self.order[at]] == node
        ]
        return places[0] if places else None

    def end(self) -> int:
        """How many nodes are looked at by one worker."""
        return int(self.fits.nonzero()[0][self.wanted])

    def starts(self, place: int, slack: int) -> np.ndarray:
        """From which places a search finds the node at *place* and none that is better."""
        size = len(self.fits)
        found = np.concatenate([[0], np.cumsum(np.concatenate([self.fits, self.fits]))])
        places = np.arange(size)
        at = np.where(places <= place, place, place + size)
        better = (self.fits & (self.totals > self.totals[place])).nonzero()[0]
        explains: np.ndarray = found[at + 1] - found[places] <= self.wanted + slack
        if len(better):
            both = np.concatenate([better, better + size])
            nearest = both[np.searchsorted(both, places)]
            explains &= found[nearest + 1] - found[places] > self.wanted - slack
        return explains


class LookedAt:
    """Follows the searches of another scheduler through its list of nodes."""

    def __init__(self, cache: Cache, decider: Decider, profiles: Mapping[str, Profile]) -> None:
        """*profiles* say how many nodes are wanted; the decider looks at all nodes."""
        self._cache, self._decider, self._profiles = cache, decider, profiles
        #: How many of the last placements each beginning explains, counted from the present one,
        #: and each number of workers.
        self._by_start = np.zeros(0)
        self._by_workers: dict[int, float] = {}
        self._workers = 1
        self._noted = 0
        #: How many placements what seldom happens explains, how many it does not, and how often it
        #: was believed.
        self._possible = self._impossible = self._believed = 0

    def decided(self, pod: Pod, *, recording: bool) -> Decision:
        """Decide about a pod as one worker does, with all nodes if it looks at all."""
        search = self._search(pod)
        if search is None:
            return self._look(pod, None, recording=recording)
        return self._look(pod, search.order[: search.end()], recording=recording)

    def is_best(self, pod: Pod, node: str) -> bool:
        """Whether a node is one of the best of those that are looked at, as far as is known."""
        search = self._search(pod)
        if search is None:
            decision = self._look(pod, None)
            return decision.node == node or node in decision.best
        place = search.place_of(node)
        return place is not None and self._allowed(pod, search, place, self._workers, exact=True)

    def explained(self, pod: Pod, node: str) -> str:
        """Why a node that is not the best for one worker was the best; "" if it was not."""
        search = self._search(pod)
        place = search.place_of(node) if search is not None else None
        if search is None or place is None:
            return ""
        if self._allowed(pod, search, place, self._workers, exact=True):
            return RACED if self._parallelism(pod) > 1 else SHARE
        if self._parallelism(pod) > 1 and self._began_nearby(search, place):
            return NEARBY
        return ""

    def seldom(self, pod: Pod, node: str) -> str:
        """What seldom happens and makes a node the best; "" if nothing does."""
        search = self._search(pod)
        place = search.place_of(node) if search is not None else None
        if search is None or place is None:
            return ""
        if self._noted < LEARNING and self._explains_all(search, place):
            return UNKNOWN_START
        if self._impossible > LEARNING + self._possible:
            return ""
        found = self._is_rare(pod, search, place)
        self._possible += found
        self._impossible += not found
        is_likely = self._possible >= BEYOND_CHANCE * self._impossible
        if found and is_likely and self._believed < FEWEST_RARE + RARE * self._noted:
            self._believed += 1
            return SELDOM
        return ""

    def note(self, pod: Pod, node: str) -> None:
        """Learn from a placement where searches begin, and how many workers there are."""
        search = self._search(pod)
        place = search.place_of(node) if search is not None else None
        if search is None or place is None:
            return
        self._noted += 1
        slack = self._slack(pod, 1)
        if len(self._by_start) != len(search.order):
            self._by_start = np.zeros(len(search.order))
        self._by_start = self._by_start * _FADING + search.starts(place, slack)
        best = int(self._by_start.argmax())
        ahead = _AHEAD if self._noted > LEARNING else 0.5
        if self._by_start[best] > self._by_start[0] + ahead:
            self._cache.advance(best)
            self._by_start = np.roll(self._by_start, -best)
            return
        for workers in self._numbers(pod):
            explains = self._allowed(pod, search, place, workers, exact=False)
            before = self._by_workers.get(workers, 0.0)
            self._by_workers[workers] = before * _FADING + explains
        likely = max(self._by_workers, key=lambda each: self._by_workers[each])
        if self._by_workers[likely] > self._by_workers.get(self._workers, 0.0) + _AHEAD:
            self._workers = likely

    # One search ---------------------------------------------------------------------------------

    def _search(self, pod: Pod) -> Search | None:
        """The search for nodes of a pod; None if all nodes are looked at."""
        profile = self._profiles[pod.spec.scheduler_name]
        size = len(self._cache.columns.nodes.order)
        wanted = wanted_by(profile, size)
        if wanted >= size:
            return None
        found = Search(
            self._look(pod, None), self._cache.order(), self._cache.columns.nodes.names, wanted
        )
        return found if found.is_cut_short else None

    def _look(self, pod: Pod, order: np.ndarray | None, *, recording: bool = True) -> Decision:
        profile = self._decider.profiles[pod.spec.scheduler_name]
        return self._decider.look(pod, profile, recording=recording, order=order)

    def _parallelism(self, pod: Pod) -> int:
        return self._profiles[pod.spec.scheduler_name].parallelism

    def _numbers(self, pod: Pod) -> Iterator[int]:
        """The numbers of workers that may run side by side."""
        workers = 1
        while workers <= self._parallelism(pod):
            yield workers
            workers *= 2

    def _slack(self, pod: Pod, workers: int) -> int:
        return RACE * workers if self._parallelism(pod) > 1 else 0

    def _turns(self, size: int, workers: int, parallelism: int) -> np.ndarray:
        """The places of the list in the order in which some workers come to them."""
        places = np.arange(size)
        chunk = _chunk(size, parallelism)
        chunks, inside = places // chunk, places % chunk
        return np.lexsort((chunks, inside, chunks // workers))

    def _allowed(self, pod: Pod, search: Search, place: int, workers: int, *, exact: bool) -> bool:
        """Whether a node is the best of those that so many workers looked at, or may have."""
        turns = self._turns(len(search.order), workers, self._parallelism(pod))
        slack = self._slack(pod, workers)
        return self._is_best_of(pod, search, place, turns, slack, exact=exact)

    def _is_best_of(
        self, pod: Pod, search: Search, place: int, turns: np.ndarray, slack: int, *, exact: bool
    ) -> bool:
        """Whether a node is the best of the first ones in *turns*, but for the last *slack*.

        While some workers are slow, others may have come as far as a chunk for each worker beyond.
        """
        found, most = turns[search.fits[turns]], self._parallelism(pod)
        beyond = most * _chunk(len(search.order), most) if most > 1 else 0
        certain, possible = found[: search.wanted - slack], found[: search.wanted + beyond]
        if place not in possible:
            return False
        if not exact:
            return not (search.totals[certain] > search.totals[place]).any()
        return self._best_without(pod, search, place, certain, possible)

    def _best_without(
        self, pod: Pod, search: Search, place: int, certain: np.ndarray, possible: np.ndarray
    ) -> bool:
        """Whether a node is the best if the better ones were not looked at, where that may be.

        Scores depend on the nodes that they are compared with, so each try is a decision.
        """
        rows, row = search.order[np.sort(possible)], int(search.order[place])
        surely = search.order[certain]
        for _ in range(_ROUNDS):
            decision = self._look(pod, rows)
            name = self._cache.columns.nodes.names[row]
            if decision.node == name or name in decision.best:
                return True
            totals = decision.totals
            if totals is None or name not in decision.feasible:
                return False
            better = rows[totals > totals[list(decision.feasible).index(name)]]
            if np.isin(better, surely).any():
                return False
            rows = rows[~np.isin(rows, better)]
        return False

    def _began_nearby(self, search: Search, place: int) -> bool:
        """Whether a search explains a placement that began a few places before or after.

        How many nodes were rejected until the workers stopped depends on the race, too.
        """
        if len(self._by_start) != len(search.order):
            return False
        explains = search.starts(place, RACE) & (self._by_start > self._by_start[0] - _AS_MANY)
        far = int(DRIFT * len(search.order))
        return bool(explains[: far + 1].any() or explains[-far:].any())

    def _explains_all(self, search: Search, place: int) -> bool:
        """Whether some beginning explains this placement and all before it."""
        if len(self._by_start) != len(search.order):
            return True
        return bool((search.starts(place, RACE) & (self._by_start >= self._by_start.max())).any())

    def _is_rare(self, pod: Pod, search: Search, place: int) -> bool:
        """Whether a node is the best for another number of workers, or if some were interrupted.

        A worker that is interrupted leaves the rest of its chunk, and others go on meanwhile.
        """
        if self._parallelism(pod) == 1:
            return False
        if any(
            self._allowed(pod, search, place, workers, exact=True)
            for workers in self._numbers(pod)
            if workers != self._workers
        ):
            return True
        size = len(search.order)
        chunk = _chunk(size, self._parallelism(pod))
        better = ((search.totals > search.totals[place]) & search.fits).nonzero()[0]
        looked = better[better < search.end()]
        left = {int(at) // chunk for at in looked.tolist()}
        if len(left) > MOST_UNFINISHED:
            return False
        unfinished = np.zeros(size, bool)
        for each in left:
            first, end = int(looked[looked // chunk == each].min()), (each + 1) * chunk
            # Where a chunk ends depends on where the search began, which is known to a few places.
            unfinished[first : place if first < place < end else end] = True
        turns = np.flatnonzero(~unfinished)
        return self._is_best_of(pod, search, place, turns, self._slack(pod, 1), exact=True)


def _chunk(size: int, parallelism: int) -> int:
    """How many nodes of a list a worker takes at a time."""
    return max(1, min(isqrt(size), size // parallelism + 1))


def whole(profiles: Mapping[str, Profile]) -> dict[str, Profile]:
    """The profiles, looking at all nodes."""
    return {
        name: replace(profile, percentage_of_nodes_to_score=100)
        for name, profile in profiles.items()
    }
