"""Refused bindings, which cannot be seen: the pod counted on another node for a while.

The first binding of a pod that is bound late may have been refused. The pod then counted on no node
until its next attempt, and its node is the best as of that attempt. While its binding is awaited it
is a suspect. A placement that nothing else explains is tried with each suspect on no node, and on
the nodes that are the best for the suspect.

The evidence is joint. Suspects have to explain more than half of the placements that differ while
the binding of a suspect is awaited: wrong rules give many differences without this cause. And as
soon as a placement has no explanation at all, a suspect has to explain several. A pod that was
refused counted elsewhere for a second, and all pods decided meanwhile saw that. Its own placement
is the best as of its binding, and not as of its turn. By chance it explains a placement or two.
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
#: How many placements a suspect must explain, its own among them; more if its own is no evidence.
FEWEST_EXPLAINED: Final = 3
FEWEST_OTHERS: Final = 5
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
    #: Whether its binding was followed, and its own placement is no evidence against it.
    is_possible: bool = False
    is_believed: bool = False

    @property
    def explains_itself(self) -> bool:
        """Whether its own placement differs as of its turn, and does not as of its binding."""
        return self.place.pod.uid in self.explained

    def is_likely(self, unexplained: int) -> bool:
        """Whether it explains too much for chance, if so many placements have no explanation."""
        fewest = FEWEST_EXPLAINED if self.explains_itself else FEWEST_OTHERS
        fewest = fewest if unexplained else 1
        return self.is_possible and self.balance > 0 and len(self.explained) >= fewest


class Refusals:
    """The pods whose bindings are awaited for long."""

    def __init__(self, cluster: JudgedCluster) -> None:
        self._cluster = cluster
        self._suspects: dict[str, _Suspect] = {}
        #: What may explain a placement that differs, by its uid, until that is reported.
        self._explaining: dict[str, list[_Suspect]] = {}
        self._judged = self._believed = 0
        #: How many placements that are followed have no suspect.
        self._unexplained = 0

    def placed(self, place: Placed, *, late: bool) -> None:
        """Note a placement, whose binding may be *late*."""
        self._judged += 1
        if late:
            self._suspects[place.pod.uid] = _Suspect(place)

    def suspects_of(self, place: Placed) -> set[str]:
        """The uids of the suspects that may explain a placement that differs."""
        suspects = sorted(self._suspects.values(), key=lambda each: -each.place.bound_at)
        found = [
            each
            for each in suspects[:MOST_REFUSED]
            if each.balance >= -MOST_UNEXPLAINED and self._may_explain(each, place)
        ]
        for each in suspects:
            each.balance += 1 if found else -1
        self._explaining[place.pod.uid] = found
        return {each.place.pod.uid for each in found}

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

    def bound(self, place: Placed, *, differs: bool) -> None:
        """Follow the binding of a pod.

        If its own placement *differs*, it is tried in the state as it is.
        """
        uid = place.pod.uid
        suspect = self._suspects.pop(uid, None)
        if suspect is not None:
            suspect.is_possible = not differs or self._is_best(place)
            suspect.balance += differs * (1 if suspect.is_possible else -1)
            if differs and suspect.is_possible:
                suspect.explained.add(uid)
                self._explaining[uid].append(suspect)
        self._unexplained += differs and not self._explaining[uid]

    def _is_best(self, place: Placed) -> bool:
        trial = Trial(self._cluster)
        trial.remove([place.pod])
        found = self._cluster.is_best(place.pod, place.node)
        trial.back()
        return found

    def explains(self, uid: str) -> str:
        """The pod whose refused binding explains a placement that is reported now; "" for none."""
        found = self._explaining.pop(uid, [])
        likely = [each for each in found if each.is_likely(self._unexplained)]
        if not likely:
            return ""
        best = max(likely, key=lambda each: (each.explains_itself, len(each.explained)))
        if not best.is_believed:
            if self._believed >= FEWEST_RARE + RARE * self._judged:
                return ""
            best.is_believed = True
            self._believed += 1
        return best.place.pod.key

    def gone(self, uid: str) -> None:
        """Note that a pod was deleted."""
        self._suspects.pop(uid, None)
