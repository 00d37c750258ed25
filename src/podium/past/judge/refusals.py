"""Bindings that were refused, which cannot be seen: such a pod counted on another node for a while.

A pod that is bound late may have been bound twice: the first binding was refused, the pod counted
on no node until its next attempt, and its node is the best as of then. While its binding is awaited
it is a suspect. A placement that nothing else explains is tried with each suspect on no node, and
on the nodes that are the best for the suspect.

The evidence is joint: of the placements that differ while the binding of a suspect is awaited,
suspects have to explain more than half. Wrong rules give many differences that have no such cause.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from podium.past.judge.judged_cluster import Trial

if TYPE_CHECKING:
    from podium.past.judge.hypotheses import Placed
    from podium.past.judge.judged_cluster import JudgedCluster

#: How many suspects are tried, and on how many nodes each. More bindings are not refused at a time,
#: and a node that explains something is among the first few.
MOST_REFUSED: Final = 8
#: How many placements a suspect may leave unexplained before it is tried no more.
MOST_UNEXPLAINED: Final = 8
#: The share of pods whose bindings may have been refused, and how many at least.
RARE: Final = 1 / 100
FEWEST_RARE: Final = 1


@dataclass(slots=True)
class _Suspect:
    place: Placed
    #: How many placements that differ while its binding is awaited suspects explain, less others.
    balance: int = 0
    #: The placements that do not differ if the pod counted elsewhere, by uid.
    explained: set[str] = field(default_factory=set)


class Refusals:
    """The pods whose bindings are awaited for long."""

    def __init__(self, cluster: JudgedCluster) -> None:
        self._cluster = cluster
        self._suspects: dict[str, _Suspect] = {}
        self._judged = self._believed = 0

    def placed(self, place: Placed, *, late: bool) -> None:
        """Note a placement, whose binding may be *late*."""
        self._judged += 1
        if late:
            self._suspects[place.pod.uid] = _Suspect(place)

    def suspects_of(self, place: Placed) -> set[str]:
        """The uids of the suspects that may explain a placement that differs."""
        suspects = sorted(self._suspects.values(), key=lambda each: -each.place.bound_at)
        found = {
            each.place.pod.uid
            for each in suspects[:MOST_REFUSED]
            if each.balance >= -MOST_UNEXPLAINED and self._may_explain(each, place)
        }
        for each in suspects:
            each.balance += 1 if found else -1
        return found

    def _may_explain(self, suspect: _Suspect, place: Placed) -> bool:
        trial = Trial(self._cluster)
        trial.remove([suspect.place.pod])
        best = self._cluster.best_nodes(suspect.place.pod)
        for node in (None, *best[:MOST_REFUSED]):
            trial.add(suspect.place.pod, node)
            if self._cluster.is_best(place.pod, place.node):
                suspect.explained.add(place.pod.uid)
                break
            trial.back(1)
        trial.back()
        return place.pod.uid in suspect.explained

    def bound(self, place: Placed, *, differs: bool) -> set[str]:
        """The placements that are explained, when the binding of a pod is followed.

        If its own placement *differs*, it is tried in the state as it is.
        """
        suspect = self._suspects.pop(place.pod.uid, None)
        if suspect is None:
            return set()
        found = suspect.explained
        if differs:
            trial = Trial(self._cluster)
            trial.remove([place.pod])
            is_best = self._cluster.is_best(place.pod, place.node)
            trial.back()
            found |= {place.pod.uid} if is_best else set()
            suspect.balance += 1 if is_best else -1
        few = FEWEST_RARE + RARE * self._judged
        if not found or suspect.balance <= 0 or self._believed >= few:
            return set()
        self._believed += 1
        return found

    def gone(self, uid: str) -> None:
        """Note that a pod was deleted."""
        self._suspects.pop(uid, None)
