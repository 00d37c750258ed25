"""A proven lower bound for the number of nodes that a workload needs.

A mixed-integer program whose solutions include every placement that the rules allow: whole nodes,
but pods that may be divided between nodes. Its optimum, or what the solver has proven about it when
its time is over, is a bound for every scheduler with these rules. The solver is HiGHS, of the extra
`podium[solve]`.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from podium.cluster.simulation import Simulation
from podium.engine.framework.plan import plan_of
from podium.engine.framework.rule import Scope
from podium.engine.pipelines.filtering import run_filters
from podium.engine.rows.rows import ManyRows
from podium.engine.state.accounting import NATIVE
from podium.engine.state.affinity_terms import compiled_with_namespaces
from podium.engine.state.verdicts import FITS
from podium.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.framework.profile import Profile
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.objects.kinds.pod import Pod
    from podium.what_if.compare.compaction import PackedWorkload

#: The rules about room; one of them must be there for room to count.
_ROOM: Final = frozenset({"GeneralPredicates", "PodFitsResources", "NodeResourcesFit"})
_PORTS: Final = frozenset({"GeneralPredicates", "PodFitsHostPorts", "NodePorts"})
_POD_AFFINITY: Final = frozenset({"MatchInterPodAffinity", "InterPodAffinity"})
_HOST: Final = "kubernetes.io/hostname"
#: A bound a little above a whole number is that number: the solver computes with this accuracy.
_ACCURACY: Final = 1e-6
DIVIDED: Final = "pods cannot be divided between nodes"


@dataclass(frozen=True, slots=True)
class LowerBound:
    """The lower bound, and the constraints that it ignores."""

    nodes: int
    ignored: tuple[str, ...]


def lower_bound(
    workload: PackedWorkload, profiles: Sequence[Profile], *, seconds: float = 20.0
) -> LowerBound:
    """No placement of the workload by these rules uses fewer nodes than this.

    The bound holds if the workload fits at all. The solver stops after *seconds* with what it has
    proven until then.
    """
    return LowerBound(
        _Program(workload, profiles).solve(seconds), tuple(_ignored(workload, profiles))
    )


@dataclass(frozen=True, slots=True)
class _Group:
    """Nodes that are the same for the program."""

    count: int
    free: tuple[int, ...]
    slots: int
    accepts: tuple[bool, ...]


class _Program:
    """The groups of nodes, the classes of pods, and the rows of the program."""

    def __init__(self, workload: PackedWorkload, profiles: Sequence[Profile]) -> None:
        first, *others = profiles
        self._simulation = Simulation(first, others=others)
        pool = [node for node in workload.objects.nodes if not node.spec.unschedulable]
        self._simulation.load(workload.on(pool))
        self._columns = self._simulation.cache.columns
        classes = Counter[int]()
        self._samples: dict[int, Pod] = {}
        for pod in workload.pods:
            kind = self._columns.pods.incoming(pod).cls
            classes[kind.id] += 1
            self._samples.setdefault(kind.id, pod)
        self.numbers = list(classes.values())
        self.pods = [self._columns.pods.incoming(self._samples[each]) for each in classes]
        self._profiles = [self._simulation.profile_of(each.pod) for each in self.pods]
        self._enforced = all(_has(profile, _ROOM) for profile in self._profiles)
        self.columns = self._resources()
        self.requests = [self._request(each.cls) for each in self.pods]
        self.groups = self._groups()

    def _resources(self) -> list[int]:
        """The columns of resources that count."""
        if not self._enforced:
            return []
        scalars = {column for each in self.pods for column in each.cls.scalars}
        return [*range(len(NATIVE)), *(sorted(scalars) if self._counts_scalars() else ())]

    def _counts_scalars(self) -> bool:
        """Whether no extender manages extended resources, which are then ignored here."""
        return not any(profile.extenders for profile in self._profiles)

    def _request(self, cls: PodClass) -> tuple[int, ...]:
        wanted = dict(enumerate(cls.wanted)) | cls.scalars
        return tuple(max(0, wanted.get(column, 0)) for column in self.columns)

    def _groups(self) -> list[_Group]:
        """Nodes by free room and by the pods that they accept."""
        view = self._columns
        rows = view.nodes.order
        accepts = [self._accepting(pod, profile, rows) for pod, profile in self._pairs()]
        matrix = np.array(accepts, np.bool_).reshape(len(self.pods), len(rows))
        free = [
            np.maximum(view.nodes.allocatable[column][rows] - view.pods.requested[column][rows], 0)
            for column in self.columns
        ]
        slots = np.maximum(view.nodes.allowed_pods[rows] - view.pods.counts[rows], 0)
        found = Counter[tuple[tuple[int, ...], int, tuple[bool, ...]]]()
        for place in range(len(rows)):
            room = tuple(int(column[place]) for column in free)
            found[room, int(slots[place]), tuple(matrix[:, place].tolist())] += 1
        return [_Group(number, *key) for key, number in found.items()]

    def _pairs(self) -> list[tuple[Incoming, Profile]]:
        return list(zip(self.pods, self._profiles, strict=True))

    def _accepting(self, pod: Incoming, profile: Profile, rows: np.ndarray) -> np.ndarray:
        """On which nodes the rules that look at the node alone accept the pod."""
        rules = plan_of(pod.cls, profile).filters
        of_node = [each for each in rules if each.rule.scope(pod.cls) is Scope.NODE]
        accepted: np.ndarray = (
            run_filters(pod, ManyRows(self._columns, rows), of_node).codes == FITS
        )
        return accepted

    def most(self, kind: int, group: _Group) -> int:
        """How many pods of a class fit on one empty node of a group, at most."""
        pod, profile = self.pods[kind], self._profiles[kind]
        found = group.slots if self._enforced else self.numbers[kind]
        for free, wanted in zip(group.free, self.requests[kind], strict=True):
            if wanted:
                found = min(found, free // wanted)
        one_per_node = (pod.cls.ports and _has(profile, _PORTS)) or (
            _has(profile, _POD_AFFINITY) and self._avoids_itself(pod.pod)
        )
        return min(found, 1) if one_per_node else found

    def _avoids_itself(self, pod: Pod) -> bool:
        """Whether two such pods cannot be on one node; every node must have its own host name."""
        column = self._columns.nodes.label_column(_HOST)
        ids = column.ids[self._columns.nodes.order]
        if len(np.unique(ids)) != len(ids):
            return False
        anti = pod.spec.affinity and pod.spec.affinity.pod_anti_affinity
        for term in (anti and anti.required) or ():
            found = compiled_with_namespaces(term, pod.namespace)
            plain = not (
                term.namespaces
                or term.namespace_selector is not None
                or term.match_label_keys
                or term.mismatch_label_keys
            )
            per_host = term.topology_key == _HOST and plain and not found.error
            if per_host and found.selector.matches(pod.labels):
                return True
        return False

    def solve(self, seconds: float) -> int:
        """The bound, by HiGHS."""
        if not self.pods:
            return 0
        highs = _solver(seconds)
        for group in self.groups:
            highs.addVar(0.0, float(group.count))
        for index in range(len(self.groups)):
            highs.changeColCost(index, 1.0)
            highs.changeColIntegrality(index, _integer())
        shares: dict[tuple[int, int], int] = {}
        for kind in range(len(self.pods)):
            for place, group in enumerate(self.groups):
                if group.accepts[kind] and self.most(kind, group) > 0:
                    shares[kind, place] = len(self.groups) + len(shares)
                    highs.addVar(0.0, float(self.numbers[kind]))
        self._rows(highs, shares)
        highs.run()
        info = highs.getInfo()
        found = info.mip_dual_bound if math.isfinite(info.mip_dual_bound) else 1.0
        return max(1, math.ceil(found - _ACCURACY))

    def _rows(self, highs: Any, shares: dict[tuple[int, int], int]) -> None:
        for kind, number in enumerate(self.numbers):
            here = [index for (each, _), index in shares.items() if each == kind]
            if here:  # a pod that fits nowhere has no part in the program
                _row(highs, dict.fromkeys(here, 1.0), float(number), float(number))
        for place, group in enumerate(self.groups):
            inside = {kind: index for (kind, each), index in shares.items() if each == place}
            if self._enforced:
                slots = dict.fromkeys(inside.values(), 1.0)
                _row(highs, {**slots, place: -float(group.slots)}, -math.inf, 0.0)
            for column in range(len(self.columns)):
                room = max(group.free[column], 1)
                used = {
                    index: self.requests[kind][column] / room
                    for kind, index in inside.items()
                    if self.requests[kind][column]
                }
                if used:
                    _row(highs, {**used, place: -1.0}, -math.inf, 0.0)
            for kind, index in inside.items():
                at_most = min(self.most(kind, group), self.numbers[kind])
                _row(highs, {index: 1.0, place: -float(at_most)}, -math.inf, 0.0)


def _row(highs: Any, values: dict[int, float], low: float, high: float) -> None:
    indices = np.array(list(values), np.int32)
    highs.addRow(low, high, len(values), indices, np.array(list(values.values()), np.float64))


def _solver(seconds: float) -> Any:
    highs = _highspy().Highs()
    highs.setOptionValue("output_flag", False)  # noqa: FBT003  the solver's own signature
    highs.setOptionValue("time_limit", seconds)
    highs.setOptionValue("threads", 1)
    return highs


def _integer() -> Any:
    return _highspy().HighsVarType.kInteger


def _highspy() -> Any:
    """The solver's module, which has no types."""
    try:
        return import_module("highspy")
    except ImportError:
        raise InputError("a lower bound needs a solver", hint="podium[solve] brings one") from None


def _has(profile: Profile, names: frozenset[str]) -> bool:
    return any(rule.name in names for rule in profile.predicates)


def _ignored(workload: PackedWorkload, profiles: Sequence[Profile]) -> list[str]:
    """What the program leaves out, of what the rules and the workload have."""
    found = [DIVIDED]
    specs = [pod.spec for pod in workload.pods]
    affinities = [spec.affinity for spec in specs if spec.affinity is not None]
    if any(each.pod_affinity and each.pod_affinity.required for each in affinities):
        found.append("required pod affinity")
    anti = [term for each in affinities for term in _anti_terms(each)]
    if anti:
        found.append("required pod anti-affinity, except of pods to their own kind per node")
    if any(spec.topology_spread_constraints for spec in specs):
        found.append("topology spread constraints")
    if any(v.persistent_volume_claim for spec in specs for v in spec.volumes or ()):
        found.append("volumes: their zones, nodes and limits")
    if any(port.host_port for s in specs for c in s.containers or () for port in c.ports or ()):
        found.append("host ports of different kinds of pods")
    if any(spec.resource_claims for spec in specs):
        found.append("devices")
    rules = [rule for profile in profiles for rule in profile.predicates]
    if any(not type(rule).__module__.startswith("podium.engine.rules.") for rule in rules):
        found.append("rules of your own")
    if any(profile.extenders for profile in profiles):
        found.append("extenders")
    return found


def _anti_terms(affinity: Any) -> list[Any]:
    part = affinity.pod_anti_affinity
    return list((part and part.required) or ())
