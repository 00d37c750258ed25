"""Smallest sets of pods whose eviction lets a pod fit on a node, with the claims that they hold.

All pods that could be in the way are removed first; if the pod fits then, they are put back one by
one, and those stay away without which it does not fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from podium.cluster.claims import deallocated
from podium.engine.state.affinity_terms import compiled_with_namespaces
from podium.library.absence import claims_of
from podium.library.lookup import Owners
from podium.library.workloads import budgets_of, is_owned_by_node, is_recreated
from podium.objects.kinds.pod import Affinity
from podium.objects.kinds.registry import RESOURCE_CLAIM
from podium.objects.selectors.selectors import SelectorError, from_label_selector

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from podium.cluster.cache.cache import Cache
    from podium.cluster.simulation import Simulation
    from podium.objects.kinds.devices import ResourceClaim
    from podium.objects.kinds.meta import LabelSelector
    from podium.objects.kinds.pod import Pod, PodAffinity
    from podium.objects.reading.collection import Objects


def claim_without(claim: ResourceClaim, gone: Collection[str]) -> ResourceClaim | None:
    """A claim after pods are gone, by their uids; None if it goes with the pod it was made for.

    The controller of claims takes back the devices of a claim that no pod uses any more.
    """
    consumers = claim.status.reserved_for or []
    left = [each for each in consumers if each.uid not in gone]
    if len(left) == len(consumers):
        return claim
    if left:
        return replace(claim, status=replace(claim.status, reserved_for=left))
    owner = claim.metadata.controller()
    if owner is not None and owner.kind == "Pod" and owner.uid in gone:
        return None
    return deallocated(claim)


class ClaimHolders:
    """Evicts pods from the cache of a simulation, together with the claims that they hold."""

    def __init__(self, cache: Cache, claims: Iterable[ResourceClaim]) -> None:
        """*claims* are those of the cluster before any eviction."""
        self._cache = cache
        self._shelf = cache.columns.catalog.resource_claims
        self._held: dict[str, list[ResourceClaim]] = {}
        self._gone: set[str] = set()
        for claim in claims:
            for consumer in claim.status.reserved_for or ():
                self._held.setdefault(consumer.uid, []).append(claim)

    def holds(self, pod: Pod) -> bool:
        """Whether the pod holds any claim."""
        return pod.uid in self._held

    def evict(self, pod: Pod) -> None:
        """Take a pod off its node, and its claims from it."""
        self._cache.remove_pod(pod)
        self._gone.add(pod.uid)
        self._write_claims(pod)

    def bring_back(self, pod: Pod) -> None:
        """Undo `evict`."""
        self._cache.add_pod(pod)
        self._gone.discard(pod.uid)
        self._write_claims(pod)

    def _write_claims(self, pod: Pod) -> None:
        for claim in self._held.get(pod.uid, ()):
            left = claim_without(claim, self._gone)
            if left is None:
                self._shelf.drop(claim)
            else:
                self._shelf.put(left)


_EVICTION: Final = 4.0
#: What it costs more: no owner brings it back, a budget forbids it, it is more important.
_BARE, _PROTECTED, _MORE_IMPORTANT = 3.0, 5.0, 4.0
#: More pods elsewhere than this are not looked at.
_ELSEWHERE: Final = 1000


class Budgets:
    """The budgets that allow no eviction now."""

    def __init__(self, objects: Objects) -> None:
        self._closed = [
            each
            for each in budgets_of(objects)
            if each.budget.status.disruptions_allowed <= 0 and not each.selector.empty
        ]

    def protect(self, pod: Pod) -> bool:
        """Whether a budget forbids the eviction of the pod."""
        return bool(pod.labels) and any(each.covers(pod) for each in self._closed)


class Evictions:
    """The pods of a simulation that could be evicted."""

    def __init__(self, simulation: Simulation, objects: Objects, budgets: Budgets) -> None:
        self._simulation, self._budgets = simulation, budgets
        #: Evicts the pods in the simulation, and brings them back.
        self.holders = ClaimHolders(simulation.cache, objects.of(RESOURCE_CLAIM))
        self._objects = objects
        self._siblings_of: tuple[str, frozenset[str]] = ("", frozenset())
        self._labels = {node.name: node.labels for node in objects.nodes}
        self._on: dict[str, list[Pod]] = {}
        self._all: list[Pod] = []
        #: The last pod that was asked about, and the pods that may keep it off nodes near them.
        self._conflicts: tuple[Pod, list[Pod]] | None = None
        for pod in objects.pods:
            if pod.spec.node_name and not pod.finished and not is_owned_by_node(pod):
                self._on.setdefault(pod.spec.node_name, []).append(pod)
                self._all.append(pod)

    def cost(self, victim: Pod, pod: Pod) -> float:
        """How much it asks to evict one pod for another."""
        bare = 0.0 if is_recreated(victim) else _BARE
        protected = _PROTECTED if self._budgets.protect(victim) else 0.0
        important = _MORE_IMPORTANT if victim.priority > pod.priority else 0.0
        return _EVICTION + bare + protected + important

    def ordered(self, pod: Pod, simulation: Simulation) -> list[str]:
        """The nodes to try, those first that lack the least of what the pod requests."""
        columns = simulation.cache.columns
        wanted = columns.pods.incoming(pod).cls
        amounts = [*enumerate(wanted.wanted), *wanted.scalars.items()]

        def lack(name: str) -> float:
            row, worst = columns.nodes.row_of[name], 0.0
            for column, amount in amounts:
                there = columns.nodes.allocatable[column].item(row)
                free = there - columns.pods.requested[column].item(row)
                if amount > free:
                    worst = max(worst, (amount - free) / max(there, 1))
            return worst

        return sorted(self._labels, key=lambda name: (lack(name), len(self._on.get(name, ()))))

    def smallest(self, pod: Pod, node: str, fits: Callable[[], bool]) -> list[Pod]:
        """Pods whose eviction makes *fits* true, none of which can stay; empty if none do."""
        siblings = self._siblings(pod)
        here = [each for each in self._on.get(node, []) if each.uid not in siblings]
        away = [each for each in self._elsewhere(pod, node) if each.uid not in siblings]
        if fits():
            return []
        best: list[Pod] = []
        friends = [each for each in here if _is_required(pod, each)]
        starts = [here, [each for each in here if each not in friends]]
        starts += [[*start, *away] for start in tuple(starts)] if away else []
        for start in starts:
            if not start:
                continue
            found = self._reprieved(start, pod, fits)
            if found and (not best or self._sum(found, pod) < self._sum(best, pod)):
                best = found
        return best

    def _siblings(self, pod: Pod) -> frozenset[str]:
        """The pods of the same workload, by uid: one would be evicted for the other."""
        if self._siblings_of[0] != pod.uid:
            owners = Owners(self._objects)
            mine = owners.workload(pod)
            found = () if mine[0] == "Pod" else self._all
            same = (each.uid for each in found if owners.workload(each) == mine)
            self._siblings_of = (pod.uid, frozenset(same))
        return self._siblings_of[1]

    def _sum(self, victims: Iterable[Pod], pod: Pod) -> float:
        return sum(self.cost(each, pod) for each in victims)

    def _reprieved(self, victims: Sequence[Pod], pod: Pod, fits: Callable[[], bool]) -> list[Pod]:
        """Those of the victims without whose eviction the pod does not fit."""
        holders = self.holders
        gone = {each.uid: each for each in victims}
        for each in victims:
            holders.evict(each)
        if fits():
            # What is dear to evict comes back first, and among the rest what is small.
            for each in sorted(victims, key=lambda v: (-self.cost(v, pod), self._size(v), v.key)):
                holders.bring_back(each)
                if fits():
                    del gone[each.uid]
                else:
                    holders.evict(each)
            needed = list(gone.values())
        else:
            needed = []
        for each in gone.values():
            holders.bring_back(each)
        return needed

    def _size(self, pod: Pod) -> int:
        """How much of its node the pod requests, roughly."""
        columns = self._simulation.cache.columns
        cls = columns.pods.incoming(pod).cls
        row = columns.nodes.row_of[pod.spec.node_name]
        shares = [
            amount * 1000 // max(columns.nodes.allocatable[column].item(row), 1)
            for column, amount in cls.taken
        ]
        return max(shares, default=0)

    def _elsewhere(self, pod: Pod, node: str) -> list[Pod]:
        """Pods on other nodes that may keep the pod off this one."""
        labels = self._labels.get(node, {})
        found = []
        if self._conflicts is None or self._conflicts[0] is not pod:
            wants_devices = bool(pod.spec.resource_claims)
            conflicts = [
                each
                for each in self._all
                if _may_conflict(pod, each) or (wants_devices and self.holders.holds(each))
            ]
            self._conflicts = (pod, conflicts)
        for each in self._conflicts[1]:
            name = each.spec.node_name
            if name == node:
                continue
            there = self._labels.get(name, {})
            near = any(there.get(key) == value for key, value in labels.items())
            if near or _share_claims(pod, each) or self.holders.holds(each):
                found.append(each)
            if len(found) > _ELSEWHERE:
                return []
        return found


def _may_conflict(pod: Pod, other: Pod) -> bool:
    """Whether a pod on another node may be a reason that the first pod fits nowhere near it."""
    if _share_claims(pod, other) and pod.namespace == other.namespace:
        return True
    mine, theirs = pod.spec.affinity or Affinity(), other.spec.affinity or Affinity()
    if _selects(mine.pod_anti_affinity, pod, other):
        return True
    if _selects(theirs.pod_anti_affinity, other, pod):
        return True
    return pod.namespace == other.namespace and any(
        _matches(each.label_selector, other)
        for each in pod.spec.topology_spread_constraints or ()
        if each.when_unsatisfiable == "DoNotSchedule"
    )


def _is_required(pod: Pod, other: Pod) -> bool:
    """Whether the pod wants to be near the other one."""
    affinity = pod.spec.affinity or Affinity()
    return _selects(affinity.pod_affinity, pod, other)


def _selects(part: PodAffinity | None, owner: Pod, other: Pod) -> bool:
    """Whether a required term of the owner selects the other pod, by labels alone or by more."""
    terms = (part and part.required) or ()
    return any(
        not (found := compiled_with_namespaces(term, owner.namespace)).error
        and found.selector.matches(other.labels)
        for term in terms
    )


def _matches(selector: LabelSelector | None, pod: Pod) -> bool:
    try:
        return from_label_selector(selector).matches(pod.labels)
    except SelectorError:
        return False


def _share_claims(pod: Pod, other: Pod) -> bool:
    return not {*claims_of(pod)}.isdisjoint(claims_of(other))
