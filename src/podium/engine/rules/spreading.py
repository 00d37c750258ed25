"""Spreading: the plugin PodTopologySpread, and SelectorSpreadPriority of v1.13.

Hard constraints reject domains with too many more pods than the emptiest one; soft ones score.
A pod without constraints of its own gets the profile's defaults, with a selector made from its
services and its controller. The priority spreads the pods of one service or controller.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import numpy as np

from podium.engine.framework.causes import (
    MOST_NAMED,
    Cause,
    DomainCount,
    MissingTopologyLabel,
    ScoreNumber,
    Skew,
)
from podium.engine.framework.choices import WakeUps
from podium.engine.framework.declaration import (
    Arguments,
    Errors,
    EventContext,
    Events,
    FeatureGates,
    PluginDeclaration,
    PriorityDeclaration,
    arguments_record,
    plain,
)
from podium.engine.framework.rule import (
    SKIPPED,
    Activity,
    AttemptError,
    BatchTrials,
    Everywhere,
    FilterRule,
    Scope,
    ScoreRule,
    Watched,
    all_rows,
)
from podium.engine.framework.trace import Prepared
from podium.engine.rows.node_match import label_keys
from podium.engine.rows.rows import Flags, Ints, K, ManyRows, OneRow, Rows, Scalar, as_array, as_int
from podium.engine.rows.written import logarithm, quotient, written
from podium.engine.rules.node_affinity import matches_required_node, required_node
from podium.engine.rules.plugins import MAX_SCORE, WAKE_UPS, counted_by, label_key_errors
from podium.engine.rules.priorities import BOTH_PROVIDERS, HIGHEST_PRIORITY
from podium.engine.rules.taints import has_untolerated
from podium.engine.state.catalog import selectors_of, services_of
from podium.engine.state.label_column import ABSENT
from podium.engine.state.pod_class import KeptPerClass
from podium.engine.state.selector_index import anchor_of_any
from podium.engine.state.verdicts import FITS, Reason
from podium.objects.field_errors import child, duplicate, forbidden, invalid, required, unsupported
from podium.objects.go_types import INT32, STRING, STRING_MAP, Slice, go_json, named, record
from podium.objects.kinds.meta import LabelSelector, LabelSelectorRequirement
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod, TopologySpreadConstraint
from podium.objects.names import quoted
from podium.objects.selectors.faults import label_selector_fault
from podium.objects.selectors.selectors import (
    EVERYTHING,
    NOTHING,
    Requirement,
    Selector,
    SelectorError,
    from_label_selector,
    from_map_literal,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from podium.engine.framework.rule import Memo
    from podium.engine.rows.row_groups import RowGroups
    from podium.engine.state.catalog import Catalog
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.tallies import LabelSet, Tally
    from podium.engine.state.view import View
    from podium.objects.kinds.workloads import ReplicaSet, StatefulSet


def tally_live_pods(view: View, namespace: str, selectors: tuple[Selector, ...]) -> Tally:
    """A tally of the pods of a namespace, not being deleted, that some selector matches."""
    return view.pods.tally(
        ("living", namespace, selectors),
        lambda labels: _is_live_match(labels, namespace, selectors),
        lambda: anchor_of_any(selectors),
    )


def _is_live_match(labels: LabelSet, namespace: str, selectors: tuple[Selector, ...]) -> bool:
    return (
        labels.namespace == namespace
        and not labels.terminating
        and any(selector.matches(labels.labels) for selector in selectors)
    )


HOST = "kubernetes.io/hostname"
HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
_KIND = {HARD: "hard", SOFT: "soft"}
SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOST, when_unsatisfiable=SOFT),
    TopologySpreadConstraint(
        max_skew=5, topology_key="topology.kubernetes.io/zone", when_unsatisfiable=SOFT
    ),
)


@dataclass(frozen=True, slots=True)
class SpreadDefaults:
    """Constraints for pods without any: the built-in ones (System) or the profile's (List)."""

    kind: str = "System"
    constraints: tuple[TopologySpreadConstraint, ...] = SYSTEM_DEFAULTS
    #: The hard and the soft ones, and what a class keeps of them for its pods.
    by_action: dict[str, tuple[TopologySpreadConstraint, ...]] = field(
        init=False, compare=False, repr=False
    )
    kept: dict[str, KeptPerClass[tuple[Constraint, ...]]] = field(
        init=False, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        """Sort the constraints by what is done where they cannot be satisfied."""
        actions, listed = (HARD, SOFT), self.constraints
        by_action = {a: tuple(c for c in listed if c.when_unsatisfiable == a) for a in actions}
        object.__setattr__(self, "by_action", by_action)
        object.__setattr__(self, "kept", {action: KeptPerClass() for action in actions})


@dataclass(frozen=True, slots=True)
class Constraint:
    """A topology spread constraint, compiled for one class of pods."""

    key: str
    max_skew: int
    selector: Selector
    min_domains: int
    honours_affinity: bool
    honours_taints: bool
    #: Its tally, with the tallies among which it was found.
    _known: list[tuple[dict[object, Tally], Tally]] = field(
        default_factory=list, compare=False, repr=False
    )
    #: The rows on which its pods count for a score; None if these are all.
    counted: KeptPerClass[np.ndarray | None] = field(
        default_factory=KeptPerClass, compare=False, repr=False
    )

    @property
    def pods(self) -> str:
        """The pods that count, as a selector that `kubectl` takes; equal requirements once."""
        return ",".join(dict.fromkeys(map(str, self.selector.requirements)))

    def tally(self, cls: PodClass, view: View) -> Tally:
        """A tally of the pods that count. An empty selector counts none, though it matches all."""
        tallies, known = view.pods.tallies, self._known
        if known and known[0][0] is tallies:
            return known[0][1]
        selectors = () if self.selector.empty else (self.selector,)
        found = tally_live_pods(view, cls.namespace, selectors)
        known[:] = [(tallies, found)]
        return found


def constraints_of(
    pod: Incoming, view: View, action: str, defaults: SpreadDefaults
) -> tuple[Constraint, ...]:
    """The hard or soft constraints of a pod: its own, if it has any at all, else the defaults."""
    cls = pod.cls
    own = cls.spec.topology_spread_constraints
    if not own and not defaults.by_action[action]:
        return ()
    # Own constraints have selectors of their own, whatever services and controllers there are.
    changes = 0 if own else view.catalog.selections.changes
    return defaults.kept[action].of(
        cls,
        changes,
        lambda: _own(cls, own, action) if own else _default(cls, view, action, defaults),
    )


def _own(cls: PodClass, own: list[TopologySpreadConstraint], action: str) -> tuple[Constraint, ...]:
    try:
        return tuple(
            _compiled(each, own_selector(each, cls.labels.labels))
            for each in own
            if each.when_unsatisfiable == action
        )
    except SelectorError as error:
        faults = (
            label_selector_fault(c.label_selector) for c in own if c.when_unsatisfiable == action
        )
        what = f"obtaining pod's {_KIND[action]} topology spread constraints"
        raise AttemptError(f"{what}: {next(filter(None, faults))}") from error


def _default(
    cls: PodClass, view: View, action: str, defaults: SpreadDefaults
) -> tuple[Constraint, ...]:
    wanted = defaults.by_action[action]
    selector = default_selector(cls, view.catalog) if wanted else EVERYTHING
    return () if selector.empty else tuple(_compiled(each, selector) for each in wanted)


def _compiled(each: TopologySpreadConstraint, selector: Selector) -> Constraint:
    return Constraint(
        key=each.topology_key,
        max_skew=each.max_skew,
        selector=selector,
        min_domains=each.min_domains if each.min_domains is not None else 1,
        honours_affinity=each.node_affinity_policy != "Ignore",
        honours_taints=each.node_taints_policy == "Honor",
    )


def own_selector(each: TopologySpreadConstraint, labels: Mapping[str, str]) -> Selector:
    """The constraint's selector, with the pod's values of matchLabelKeys added."""
    if each.label_selector is None:
        return NOTHING
    selector = from_label_selector(each.label_selector)
    shared = [
        Requirement(k, "In", (labels[k],)) for k in each.match_label_keys or () if k in labels
    ]
    return Selector((*selector.requirements, *shared)) if shared else selector


def default_selector(cls: PodClass, catalog: Catalog) -> Selector:
    """The selectors of the pod's services and controller together; everything without any."""
    pairs: dict[str, str] = {}
    for service in services_of(cls, catalog):
        pairs.update(service.spec.selector or {})
    owner = cls.owner
    if owner is None and not pairs:
        return EVERYTHING
    if owner is not None and (owner.kind, owner.api_version) == ("ReplicationController", "v1"):
        controller = catalog.replication_controllers.get(owner.name, cls.namespace)
        pairs.update((controller.spec.selector if controller else None) or {})
    selector = from_map_literal(pairs)
    if owner is None or owner.api_version != "apps/v1":
        return selector
    found: ReplicaSet | StatefulSet | None = None
    if owner.kind == "ReplicaSet":
        found = catalog.replica_sets.get(owner.name, cls.namespace)
    elif owner.kind == "StatefulSet":
        found = catalog.stateful_sets.get(owner.name, cls.namespace)
    if found is None:
        return selector
    try:
        more = from_label_selector(found.spec.selector)
    except SelectorError:
        more = EVERYTHING
    # A controller without a selector adds nothing.
    return Selector((*selector.requirements, *more.requirements))


def counted_rows(cls: PodClass, constraint: Constraint, at: Rows[K]) -> Flags[K]:
    """The rows where a constraint counts pods, by nodeAffinityPolicy and nodeTaintsPolicy."""
    counted = at.flags(True)  # noqa: FBT003 - a column of True
    if constraint.honours_affinity and any(part is not None for part in required_node(cls)):
        counted = counted & matches_required_node(cls, at)
    if constraint.honours_taints:
        shut = at.flag(
            at.view.nodes.facts.taints, lambda t: has_untolerated(cls.spec.tolerations, t)
        )
        counted = counted & (shut ^ True)
    return counted


SKEW_EXCEEDED = Reason("node(s) didn't match pod topology spread constraints")
TOPOLOGY_LABEL_MISSING = Reason(
    "node(s) didn't match pod topology spread constraints (missing required label)", curable=False
)
#: One number, or an array of them.
Number = Any
#: More pods than any domain has.
MANY = 1 << 62

_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")


@dataclass(frozen=True, slots=True)
class PodTopologySpreadArgs:
    """Constraints for pods that have none of their own."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = ""


def _complete(found: PodTopologySpreadArgs, _: FeatureGates) -> PodTopologySpreadArgs:
    return replace(found, defaulting_type=found.defaulting_type or "System")


def _check(found: PodTopologySpreadArgs, path: str, _: FeatureGates) -> Errors:
    """The constraints are checked even where they must not be."""
    kind, where = found.defaulting_type, child(path, "defaultingType")
    if kind not in ("System", "List"):
        yield unsupported(where, go_json(kind), ("System", "List"))
    elif kind == "System" and found.default_constraints:
        yield invalid(where, go_json(kind), "when .defaultConstraints are not empty")
    seen = set()
    for index, constraint in enumerate(found.default_constraints):
        here = child(path, f"defaultConstraints[{index}]")
        yield from _constraint_errors(constraint, here)
        key = constraint.topology_key, constraint.when_unsatisfiable
        if key in seen:
            yield duplicate(here, quoted(f"{{{', '.join(key)}}}"))
        seen.add(key)


def _constraint_errors(found: TopologySpreadConstraint, path: str) -> Errors:
    if found.max_skew <= 0:
        yield invalid(f"{path}.maxSkew", str(found.max_skew), "not in valid range (0, inf)")
    if not found.topology_key:
        yield required(f"{path}.topologyKey", "can not be empty")
    else:
        yield from label_key_errors(found.topology_key, f"{path}.topologyKey")
    action = found.when_unsatisfiable
    if not action:
        yield required(f"{path}.whenUnsatisfiable", "can not be empty")
    elif action not in _ACTIONS:
        yield unsupported(f"{path}.whenUnsatisfiable", go_json(action), _ACTIONS)
    if found.label_selector is not None:
        yield forbidden(
            f"{path}.labelSelector",
            "constraint must not define a selector, as they deduced for each pod",
        )


_REQUIREMENT = record(
    "v1.LabelSelectorRequirement",
    LabelSelectorRequirement,
    key=STRING,
    operator=named("v1.LabelSelectorOperator"),
    values=Slice(STRING, list),
)
_LABEL_SELECTOR = record(
    "v1.LabelSelector",
    LabelSelector,
    match_labels=STRING_MAP,
    match_expressions=Slice(_REQUIREMENT, list),
)
_CONSTRAINT = record(
    "v1.TopologySpreadConstraint",
    TopologySpreadConstraint,
    max_skew=INT32,
    topology_key=STRING,
    when_unsatisfiable=named("v1.UnsatisfiableConstraintAction"),
    label_selector=_LABEL_SELECTOR,
    min_domains=INT32,
    node_affinity_policy=named("v1.NodeInclusionPolicy"),
    node_taints_policy=named("v1.NodeInclusionPolicy"),
    match_label_keys=Slice(STRING, list),
)
POD_TOPOLOGY_SPREAD_ARGUMENTS: Final = Arguments(
    arguments_record(
        PodTopologySpreadArgs,
        default_constraints=Slice(_CONSTRAINT),
        defaulting_type=named("v1.PodTopologySpreadConstraintsDefaulting"),
    ),
    _check,
    _complete,
)


@dataclass(slots=True)
class _CountedNodes:
    """The rows that a hard constraint counts, with their domains; kept until nodes change."""

    rows: np.ndarray
    ids: np.ndarray
    domains: np.ndarray
    #: Whether these are all the rows that have the key: then sums per domain are at hand.
    complete: bool
    #: Whether every row has the key.
    everywhere: bool
    #: When they were last compared, the number of pods beyond which a domain has too many, and the
    #: domains that have; kept until pods or nodes change.
    compared: tuple[tuple[int, int], int, np.ndarray] | None = None

    def lowest(self, counts: np.ndarray) -> int:
        """The fewest pods of any of the domains; there must be one."""
        # Mostly all values of the key but the absent one: then none have to be picked.
        everything = len(self.domains) == len(counts) - 1
        return int(np.minimum.reduce(counts[1:] if everything else counts[self.domains]))


#: The rows that count for each hard constraint, kept while nodes and constraints stay.
_COUNTED_NODES: KeptPerClass[list[tuple[Constraint, _CountedNodes]]] = KeptPerClass()


class PodTopologySpread(FilterRule):
    """No domain may have more pods than the emptiest one by more than maxSkew."""

    kinds = ("Service", "ReplicationController", "ReplicaSet", "StatefulSet")
    name = "PodTopologySpread"

    def __init__(self, defaults: SpreadDefaults | None = None) -> None:
        self.defaults = defaults or SpreadDefaults()

    def scope(self, cls: PodClass) -> Scope:
        """The cluster, for pods with hard constraints of their own or by default."""
        own = cls.spec.topology_spread_constraints
        listed = own or self.defaults.constraints
        hard = any(each.when_unsatisfiable == HARD for each in listed)
        return Scope.CLUSTER if hard else Scope.NONE

    def may_refuse(self, cls: PodClass) -> bool:
        """A selector of the pod that cannot be compiled fails the attempt."""
        own = cls.spec.topology_spread_constraints or ()
        return any(label_selector_fault(each.label_selector) for each in own)

    def pre_filter(self, pod: Incoming, view: View) -> None:
        """A selector that cannot be compiled fails the attempt."""
        try:
            constraints_of(pod, view, HARD, self.defaults)
        except AttemptError as error:
            raise AttemptError(f"get constraints from pod: {error}") from error

    def activity(self, pod: Incoming, view: View) -> Activity:
        """Skipped without hard constraints; idle while every domain meets all of them.

        If every node is a domain of its own, pods elsewhere count by the fewest of a domain only.
        """
        constraints = constraints_of(pod, view, HARD, self.defaults)
        if not constraints:
            return Activity.SKIPPED
        met = all(
            nodes.everywhere and not self._skewed_domains(pod, each, nodes, view).any()
            for each, nodes in self._counted_nodes(pod.cls, constraints, view)
        )
        if met:
            return Activity.IDLE
        columns = map(view.nodes.label_column, (each.key for each in constraints))
        near = all(column.one_row_each for column in columns)
        return Activity.OWN_ROW if near else Activity.ACTIVE

    def row_context(self, pod: Incoming, view: View) -> Hashable:
        """The constraints, and the fewest pods of a domain for each."""
        constraints = constraints_of(pod, view, HARD, self.defaults)
        per_constraint = self._counted_nodes(pod.cls, constraints, view)
        return (
            constraints,
            *(self._skewed_beyond(pod, each, nodes, view) for each, nodes in per_constraint),
        )

    def answer_key(self, pod: Incoming, view: View) -> Hashable:
        """The constraints, and the domains that would exceed maxSkew for each."""
        constraints = constraints_of(pod, view, HARD, self.defaults)
        per_constraint = self._counted_nodes(pod.cls, constraints, view)
        return (
            constraints,
            *(
                self._skewed_domains(pod, each, nodes, view).tobytes()
                for each, nodes in per_constraint
            ),
        )

    def batch_trials(self, pod: Incoming, at: ManyRows) -> BatchTrials:
        """On every row: only counts are read."""
        return all_rows(at)

    def domain_keys(self, pod: Incoming, view: View) -> tuple[str, ...]:
        """The topology keys of the hard constraints."""
        return tuple(each.key for each in constraints_of(pod, view, HARD, self.defaults))

    def filter(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The reason of the first constraint that is not met."""
        verdicts = at.view.verdicts
        missing = verdicts.of(self.name, (TOPOLOGY_LABEL_MISSING,))
        skewed = verdicts.of(self.name, (SKEW_EXCEEDED,))
        constraints = constraints_of(pod, at.view, HARD, self.defaults)
        codes = at.full(FITS)
        for constraint, nodes in reversed(self._counted_nodes(pod.cls, constraints, at.view)):
            too_many = self._skewed(pod, constraint, nodes, at, constraints)
            codes = at.where(too_many, skewed, codes)
            codes = at.where(at.has_label(constraint.key), codes, missing)
        return codes

    def prepared(self, pod: Incoming, view: View) -> Iterator[Prepared]:
        """The counts per domain of each constraint that must be met."""
        constraints = constraints_of(pod, view, HARD, self.defaults)
        for each, nodes in self._counted_nodes(pod.cls, constraints, view):
            counts = self._counts(pod.cls, each, nodes, view)
            values = view.nodes.label_column(each.key).values
            found = [f"{values[d] or ''} {int(counts[d])}" for d in nodes.domains.tolist()]
            more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
            text = f"{', '.join(found[:MOST_NAMED])}{more}, maxSkew {each.max_skew}"
            yield Prepared(self.name, f"{each.pods} by {each.key}", text)

    def causes(self, pod: Incoming, at: OneRow, memo: Memo) -> Iterator[Cause]:
        """The constraints that are not met: counts per domain and the skew."""
        constraints = constraints_of(pod, at.view, HARD, self.defaults)
        for each, nodes in self._counted_nodes(pod.cls, constraints, at.view):
            if each.key not in at.node_labels:
                yield MissingTopologyLabel(TOPOLOGY_LABEL_MISSING.text, each.key)
            elif as_int(self._skewed(pod, each, nodes, at, constraints)):
                key = (self.name, each)
                if key not in memo:
                    memo[key] = self._counts(pod.cls, each, nodes, at.view)
                change = as_int(self._change(pod.cls, each, constraints, at)) if at.modified else 0
                yield self._skew(pod, (each, nodes), memo[key], at, change)

    def cause_keys(self, pod: Incoming, at: ManyRows) -> list[Hashable]:
        """The domains of the row."""
        constraints = constraints_of(pod, at.view, HARD, self.defaults)
        return label_keys(dict.fromkeys(each.key for each in constraints), at)

    def _skew(
        self,
        pod: Incoming,
        counted: tuple[Constraint, _CountedNodes],
        counts: np.ndarray,
        at: OneRow,
        change: int,
    ) -> Skew:
        """The numbers behind a constraint that is not met on a row."""
        each, nodes = counted
        here = as_int(at.label_entry(counts, each.key)) + change
        minimum = 0
        if len(nodes.domains) and len(nodes.domains) >= max(each.min_domains, 1):
            lowest = _lowest_count(nodes.domains, counts, each.key, at, at.full(here))
            minimum = as_int(lowest)
        values = at.view.nodes.label_column(each.key).values
        fewest = nodes.domains[np.argsort(counts[nodes.domains], kind="stable")][:MOST_NAMED]
        domains = tuple(DomainCount(values[d] or "", int(counts[d])) for d in fewest.tolist())
        return Skew(
            SKEW_EXCEEDED.text,
            each.key,
            at.node_labels[each.key],
            each.pods,
            here,
            int(each.selector.matches(pod.cls.labels.labels)),
            minimum,
            each.max_skew,
            len(nodes.domains),
            each.min_domains,
            domains,
        )

    def _skewed(
        self,
        pod: Incoming,
        constraint: Constraint,
        nodes: _CountedNodes,
        at: Rows[K],
        constraints: tuple[Constraint, ...],
    ) -> Flags[K]:
        if not at.modified:
            domains = self._skewed_domains(pod, constraint, nodes, at.view)
            return at.label_flag(domains, constraint.key)
        counts = self._counts(pod.cls, constraint, nodes, at.view)
        change = self._change(pod.cls, constraint, constraints, at)
        here = at.label_entry(counts, constraint.key) + change
        enough = len(nodes.domains) >= max(constraint.min_domains, 1)
        most = self._allowed_lead(pod, constraint)
        if not enough:
            return here > most
        return here > _lowest_count(nodes.domains, counts, constraint.key, at, here) + most

    def _allowed_lead(self, pod: Incoming, constraint: Constraint) -> int:
        """How many more pods than the emptiest domain a domain may have before the pod comes."""
        return constraint.max_skew - int(constraint.selector.matches(pod.cls.labels.labels))

    def _skewed_domains(
        self, pod: Incoming, constraint: Constraint, nodes: _CountedNodes, view: View
    ) -> np.ndarray:
        """The domains that the pod would take beyond maxSkew."""
        return self._skewed_now(pod, constraint, nodes, view)[1]

    def _skewed_beyond(
        self, pod: Incoming, constraint: Constraint, nodes: _CountedNodes, view: View
    ) -> int:
        """The number of pods beyond which a domain is one of those."""
        return self._skewed_now(pod, constraint, nodes, view)[0]

    def _skewed_now(
        self, pod: Incoming, constraint: Constraint, nodes: _CountedNodes, view: View
    ) -> tuple[int, np.ndarray]:
        """That number and those domains."""
        now = (view.journal.epoch, view.journal.changes)
        known = nodes.compared
        if known is None or known[0] != now:
            counts = self._counts(pod.cls, constraint, nodes, view)
            lowest = 0
            if len(nodes.domains) and len(nodes.domains) >= constraint.min_domains:
                lowest = nodes.lowest(counts)
            most = self._allowed_lead(pod, constraint) + lowest
            known = nodes.compared = (now, most, counts > most)
        return known[1], known[2]

    def _counts(
        self, cls: PodClass, constraint: Constraint, nodes: _CountedNodes, view: View
    ) -> np.ndarray:
        """Matching pods per domain id, on the rows that count."""
        tally = constraint.tally(cls, view)
        if nodes.complete:
            return tally.by_domain(constraint.key)
        size = len(view.nodes.label_column(constraint.key).values)
        weights = tally.rows[nodes.rows]
        return np.bincount(nodes.ids, weights=weights, minlength=size).astype(np.int64)

    def _change(
        self,
        cls: PodClass,
        constraint: Constraint,
        constraints: tuple[Constraint, ...],
        at: Rows[K],
    ) -> Ints[K]:
        """The change of the count by the trial, on rows that the constraint counts."""
        counted = counted_rows(cls, constraint, at)
        for each in constraints:
            counted = counted & at.has_label(each.key)
        return at.where(counted, _count_added(cls.namespace, constraint.selector, at), 0)

    def _counted_nodes(
        self, cls: PodClass, constraints: tuple[Constraint, ...], view: View
    ) -> list[tuple[Constraint, _CountedNodes]]:
        now = (view.journal.epoch, view.journal.node_changes)
        return _COUNTED_NODES.of(
            cls,
            (now, constraints),
            lambda: [
                (each, self._find_counted_nodes(cls, each, constraints, view))
                for each in constraints
            ],
        )

    def _find_counted_nodes(
        self, cls: PodClass, constraint: Constraint, constraints: tuple[Constraint, ...], view: View
    ) -> _CountedNodes:
        at = ManyRows(view, view.nodes.order)
        flags = counted_rows(cls, constraint, at)
        for each in constraints:
            flags = flags & at.has_label(each.key)
        rows = view.nodes.order[as_array(flags)]
        ids = view.nodes.label_column(constraint.key).ids[rows]
        holders = int(at.has_label(constraint.key).sum())
        everywhere = holders == len(view.nodes.order)
        domains = np.bincount(ids).nonzero()[0]
        return _CountedNodes(rows, ids, domains, len(rows) == holders, everywhere)


def _count_added(namespace: str, selector: Selector, at: Rows[K]) -> Ints[K] | int:
    """How many matching pods the trial added.

    Upstream counts pods being deleted here as well, and an empty selector matches all pods.
    """
    return at.gained_labels((namespace, selector), partial(_is_selected, namespace, selector))


def _is_selected(namespace: str, selector: Selector, labels: LabelSet) -> bool:
    return labels.namespace == namespace and selector.matches(labels.labels)


def _lowest_count(
    domains: np.ndarray, counts: np.ndarray, key: str, at: Rows[K], here: Ints[K]
) -> Ints[K]:
    """The fewest pods of any domain, when the domain of the row has `here` pods."""
    inside = np.zeros(len(counts), np.bool_)
    inside[domains] = True
    numbers = counts[domains]
    first = int(np.argmin(numbers))
    fewest, others = int(numbers[first]), int(np.delete(numbers, first).min(initial=MANY))
    elsewhere = at.where(at.label_ids(key) == int(domains[first]), others, at.full(fewest))
    least = at.where(here < elsewhere, here, elsewhere)
    return at.where(at.label_flag(inside, key), least, fewest)


class _GroupedConstraint(NamedTuple):
    """A soft constraint as groups of rows read it."""

    constraint: Constraint
    tally: Tally
    #: The number of the label value of each group; None for the host name.
    ids: list[int] | None
    weight: tuple[float, float]


#: The soft constraints of a class for some groups, kept while nodes and groups stay.
_GROUPED: KeptPerClass[tuple[_GroupedConstraint, ...]] = KeptPerClass()


class PodTopologySpreadScore(ScoreRule):
    """Prefers domains with few matching pods; keys with more domains weigh more."""

    kinds = ("Service", "ReplicationController", "ReplicaSet", "StatefulSet")
    name = "PodTopologySpread"
    always = Scope.CLUSTER
    normalizes = True
    formula = (
        "matching pods in the node's domains, keys with more domains weigh more; fewer are better"
    )

    def __init__(self, defaults: SpreadDefaults | None = None) -> None:
        self.defaults = defaults or SpreadDefaults()

    def pre_score(self, pod: Incoming, view: View) -> str:
        """The error of a selector that cannot be compiled."""
        try:
            constraints_of(pod, view, SOFT, self.defaults)
        except AttemptError as error:
            return f"calculating preScoreState: {error}"
        return ""

    def watched(self, cls: PodClass) -> Watched:
        """Services and controllers that select the pod."""
        return Watched.SELECTORS

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:
        """Skipped without soft constraints."""
        return None if constraints_of(pod, view, SOFT, self.defaults) else SKIPPED

    def group_keys(self, pod: Incoming, view: View) -> tuple[str, ...]:
        """The topology keys besides the host name."""
        constraints = constraints_of(pod, view, SOFT, self.defaults)
        return tuple(each.key for each in constraints if each.key != HOST)

    def group_tallies(self, pod: Incoming, view: View) -> tuple[Tally, ...]:
        """The pods that count on the row itself, where the host name is a topology key."""
        constraints = constraints_of(pod, view, SOFT, self.defaults)
        return tuple(each.tally(pod.cls, view) for each in constraints if each.key == HOST)

    def _needs_all(self, cls: PodClass) -> bool:
        return bool(cls.spec.topology_spread_constraints) or self.defaults.kind == "List"

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """The sum over the constraints of matching pods times weight; fewer is better."""
        return at.either(
            lambda rows: self._column(pod, rows),
            lambda row: self._column(pod, ManyRows(row.view, np.array([row.row])))[0],
        )

    def _column(self, pod: Incoming, at: ManyRows) -> np.ndarray:
        view, cls = at.view, pod.cls
        constraints = constraints_of(pod, view, SOFT, self.defaults)
        ignored = self._ignored(cls, constraints, at)
        total: np.ndarray | None = None
        for each in constraints:
            if each.key == HOST:
                kept = len(at) - (0 if ignored is None else int(ignored.sum()))
                part = _weigh(at.on_row(each.tally(cls, view)), _weight(each, kept))
            else:
                domains = self._domains(each.key, ignored, at)
                counts = self._counts(cls, each, constraints, view)
                part = _weigh(counts, _weight(each, domains)).take(at.label_ids(each.key))
            if not view.nodes.all_have(each.key):
                part = np.where(at.has_label(each.key), part, 0.0)
            total = part if total is None else total + part
        rounded = np.zeros(len(at), np.int64)
        if total is not None:
            rounded = np.floor(total + 0.5).astype(np.int64)
        return rounded if ignored is None else np.where(ignored, 0, rounded)

    def of_few(self, pod: Incoming, groups: RowGroups, count: int) -> list[int] | None:
        """The same where every node has all keys."""
        at, cls = groups.rows, pod.cls
        constraints = constraints_of(pod, at.view, SOFT, self.defaults)
        known = _GROUPED.of(
            cls, (at, constraints), lambda: self._grouped_constraints(cls, constraints, at)
        )
        totals: list[float] | None = None
        for each in known:
            if each.ids is None:
                numbers = groups.tallied[each.tally]
                weight = _weight(each.constraint, count)
            else:
                counts = each.tally.by_domain(each.constraint.key)
                numbers = [counts.item(i) for i in each.ids]
                weight = each.weight
            parts = [_weigh(number, weight) for number in numbers]
            if totals is None:
                totals = parts
            else:
                totals = [total + part for total, part in zip(totals, parts, strict=True)]
        if totals is None:
            return None
        raw = [math.floor(total + 0.5) for total in totals]
        most, least = max(raw), min(raw)
        if least < 0:
            return None
        return [_final(each, most, least) if most else MAX_SCORE for each in raw]

    def _grouped_constraints(
        self, cls: PodClass, constraints: tuple[Constraint, ...], at: ManyRows
    ) -> tuple[_GroupedConstraint, ...]:
        """What `of_few` reads of the constraints; nothing where nodes lack keys or do not count."""
        parts: list[_GroupedConstraint] = []
        for each in constraints:
            key, tally = each.key, each.tally(cls, at.view)
            if not at.view.nodes.all_have(key):
                return ()
            if key == HOST:
                parts.append(_GroupedConstraint(each, tally, None, (0.0, 0.0)))
            elif self._counted(cls, each, constraints, at.view) is not None:
                return ()
            else:
                weight = _weight(each, self._domains(key, None, at))
                parts.append(_GroupedConstraint(each, tally, at.label_id_list(key), weight))
        return tuple(parts)

    def _domains(self, key: str, ignored: np.ndarray | None, at: ManyRows) -> int:
        """How many domains the feasible rows have; no value and an empty one are the same."""

        def distinct() -> int:
            ids = at.label_ids(key)
            present = np.bincount(ids if ignored is None else ids[~ignored], minlength=1) > 0
            empty = at.view.nodes.label_column(key).index.get("", ABSENT)
            both = empty != ABSENT and empty < len(present) and present[ABSENT] and present[empty]
            return int(present.sum()) - int(both)

        if ignored is not None:
            return distinct()  # which rows are ignored depends on all keys of the class
        return at.remembered(("domains", key), distinct)

    def _counts(
        self, cls: PodClass, each: Constraint, constraints: tuple[Constraint, ...], view: View
    ) -> np.ndarray:
        """Matching pods per domain id, on the rows that count; no value is an empty one here."""
        tally, rows = each.tally(cls, view), self._counted(cls, each, constraints, view)
        column = view.nodes.label_column(each.key)
        empty = column.index.get("", ABSENT)
        if rows is None and (empty == ABSENT or self._needs_all(cls)):
            return tally.by_domain(each.key)
        size = len(column.values)
        if rows is None:
            rows = view.nodes.order
        counts = np.bincount(column.ids[rows], weights=tally.rows[rows], minlength=size)
        if empty != ABSENT:
            counts[empty] += counts[ABSENT]
        return counts

    def _counted(
        self, cls: PodClass, each: Constraint, constraints: tuple[Constraint, ...], view: View
    ) -> np.ndarray | None:
        """The rows where the pods of a constraint count; None if these are all."""
        now = (view.journal.epoch, view.journal.node_changes, constraints, self._needs_all(cls))
        return each.counted.of(cls, now, lambda: self._find_counted(cls, each, constraints, view))

    def _find_counted(
        self, cls: PodClass, each: Constraint, constraints: tuple[Constraint, ...], view: View
    ) -> np.ndarray | None:
        everywhere = ManyRows(view, view.nodes.order)
        counted = as_array(counted_rows(cls, each, everywhere))
        outside = self._ignored(cls, constraints, everywhere)
        counted = counted if outside is None else counted & ~outside
        return None if counted.all() else view.nodes.order[counted]

    def _ignored(
        self, cls: PodClass, constraints: tuple[Constraint, ...], at: ManyRows
    ) -> np.ndarray | None:
        """Rows without a topology key that all scored rows must have; None if there are none."""
        have = at.view.nodes.all_have
        if not self._needs_all(cls) or all(have(each.key) for each in constraints):
            return None

        def lacking() -> np.ndarray | None:
            found = np.zeros(len(at), np.bool_)
            for each in constraints:
                found |= ~at.has_label(each.key)
            return _flags_or_none(found)

        return at.remembered(("ignored", *(each.key for each in constraints)), lacking)

    def numbers(self, pod: Incoming, at: OneRow, among: ManyRows) -> Iterator[ScoreNumber]:
        """The matching pods in the node's domain of each constraint."""
        constraints = constraints_of(pod, at.view, SOFT, self.defaults)
        for each in constraints:
            value = at.node_labels.get(each.key)
            if value is None:
                yield ScoreNumber(f"no label {each.key}", 0)
            elif each.key == HOST:
                count = as_int(at.on_row(each.tally(pod.cls, at.view)))
                yield ScoreNumber(f"{each.pods} on the node", count)
            else:
                counts = self._counts(pod.cls, each, constraints, at.view)
                count = int(counts[as_int(at.label_ids(each.key))])
                yield ScoreNumber(f"{each.pods} in {each.key}={value}", count)

    def normalize(self, pod: Incoming, at: ManyRows, raw: np.ndarray) -> np.ndarray:
        """100 for the fewest pods; 0 for ignored rows."""
        constraints = constraints_of(pod, at.view, SOFT, self.defaults)
        ignored = self._ignored(pod.cls, constraints, at)
        counted = raw if ignored is None else raw[~ignored]
        most = int(np.maximum.reduce(counted, initial=0))
        least = int(np.minimum.reduce(counted)) if len(counted) else 0
        if most == 0:
            scores = np.full(len(raw), MAX_SCORE)
        else:
            scores = at.divide(_lead(raw, most, least), most)
        return scores if ignored is None else np.where(ignored, 0, scores)

    def score_among(self, pod: Incoming, at: OneRow, among: ManyRows) -> Any:
        """The sum for one of the rows that fit; their domains give the constraints weights."""
        view, cls = at.view, pod.cls
        constraints = constraints_of(pod, view, SOFT, self.defaults)
        ignored = self._ignored(cls, constraints, among)
        if ignored is not None and ignored[among.index == at.row].any():
            return at.full(0)
        total: Any = 0
        for each in constraints:
            if not as_int(at.has_label(each.key)):
                continue
            if each.key == HOST:
                domains = len(among) - (0 if ignored is None else int(ignored.sum()))
                count = at.on_row(each.tally(cls, view))
            else:
                domains = self._domains(each.key, ignored, among)
                counts = self._counts(cls, each, constraints, view)
                count = written(int(counts[as_int(at.label_ids(each.key))]))
            _, skew = _weight(each, domains)
            total += _weigh(count, (logarithm(written(domains) + 2), skew))
        return at.truncate(total + 0.5)

    def normalize_one(
        self,
        pod: Incoming,
        at: OneRow,
        among: ManyRows,
        raw: np.ndarray,
        own: Ints[Scalar],
    ) -> Any:
        """The same for one row."""
        constraints = constraints_of(pod, at.view, SOFT, self.defaults)
        ignored = self._ignored(pod.cls, constraints, among)
        if ignored is not None and ignored[among.index == at.row].any():
            return at.full(0)
        counted = raw if ignored is None else raw[~ignored]
        most, least = int(counted.max(initial=0)), int(counted.min())
        if most == 0:
            return at.full(MAX_SCORE)
        lead: Any = _lead(own, written(most), written(least))
        return at.divide(lead, written(most))


def _weight(each: Constraint, domains: int) -> tuple[float, float]:
    """What a pod counts for by a constraint whose key has so many domains, and what is added."""
    return math.log(domains + 2), float(each.max_skew - 1)


def _weigh(pods: Number, weight: tuple[float, float]) -> Number:
    """What matching pods in a domain count for."""
    return pods * weight[0] + weight[1]


def _lead(raw: Number, most: int, least: int) -> Number:
    """A hundred times by how much a score is below that with the most pods, and the least one."""
    return MAX_SCORE * (most + least - raw)


def _final(raw: Number, most: int, least: int) -> Number:
    """100 for the fewest pods; the most are not 0, and nothing is negative."""
    return _lead(raw, most, least) // most


def _flags_or_none(flags: np.ndarray) -> np.ndarray | None:
    return flags if flags.any() else None


def _defaults(found: PodTopologySpreadArgs) -> SpreadDefaults:
    system = found.defaulting_type == "System"
    return SpreadDefaults(
        found.defaulting_type, SYSTEM_DEFAULTS if system else found.default_constraints
    )


class _Spread(msgspec.Struct, frozen=True):
    key: str
    selector: Selector
    honors_taints: bool


def _spreads(pod: Pod) -> list[_Spread]:
    """The hard constraints of a pod; defaults of the profile are soft and do not reject."""
    return [
        _Spread(each.topology_key, _selector(each, pod), each.node_taints_policy == "Honor")
        for each in pod.spec.topology_spread_constraints or ()
        if each.when_unsatisfiable == "DoNotSchedule"
    ]


def _selector(constraint: TopologySpreadConstraint, pod: Pod) -> Selector:
    selector = from_label_selector(constraint.label_selector)
    keys = [key for key in constraint.match_label_keys or () if key in pod.labels]
    if selector.nothing or not keys:
        return selector
    same = tuple(Requirement(key, "In", (pod.labels[key],)) for key in keys)
    return Selector(selector.requirements + same)


def spread_pod_changed(
    waiting: Pod, old: Pod | None, new: Pod | None, wake_ups: WakeUps = WAKE_UPS
) -> bool:
    """A pod that is counted came or went, or is counted otherwise than before."""
    counts = counted_by(wake_ups, old, new)
    if any(pod and not _is_involved(pod, waiting, counts) for pod in (old, new)):
        return False
    spreads = _spreads(waiting)
    if old and new:
        tolerates_more = new.uid == waiting.uid and old.spec.tolerations != new.spec.tolerations
        return any(
            (tolerates_more and spread.honors_taints)
            or spread.selector.matches(old.labels) != spread.selector.matches(new.labels)
            for spread in spreads
        )
    pod = new or old
    return pod is not None and any(spread.selector.matches(pod.labels) for spread in spreads)


def _is_involved(pod: Pod, waiting: Pod, counts: Callable[[Pod], bool]) -> bool:
    if pod.uid == waiting.uid:
        return True
    return counts(pod) and pod.namespace == waiting.namespace


def spread_node_changed(waiting: Pod, old: Node | None, new: Node | None) -> bool:
    """A node that has all the keys came, went, moved or got other taints."""
    spreads = _spreads(waiting)
    had, has = (node is not None and _has_keys(spreads, node.labels) for node in (old, new))
    if old is None or new is None or had != has:
        return had or has
    moved = any(old.labels.get(each.key) != new.labels.get(each.key) for each in spreads)
    return has and (moved or (old.spec.taints or []) != (new.spec.taints or []))


def _has_keys(spreads: Sequence[_Spread], labels: Mapping[str, str]) -> bool:
    return all(spread.key in labels for spread in spreads)


def _spread_events(context: EventContext) -> Events:
    changed = partial(spread_pod_changed, wake_ups=context.wake_ups)
    return {
        "Pod Add": changed,
        "Pod Delete": changed,
        "Pod UpdatePodLabel": changed,
        "Pod UpdatePodToleration": changed,
        "Node Add": spread_node_changed,
        "Node Delete": spread_node_changed,
        "Node UpdateNodeLabel": spread_node_changed,
        "Node UpdateNodeTaint": spread_node_changed,
    }


POD_TOPOLOGY_SPREAD: Final = PluginDeclaration(
    "PodTopologySpread",
    "preFilter filter preScore score",
    "pods spread over zones and nodes",
    filter=lambda found, _: PodTopologySpread(_defaults(found)),
    score=lambda found, _: PodTopologySpreadScore(_defaults(found)),
    arguments=POD_TOPOLOGY_SPREAD_ARGUMENTS,
    weight=2,
    pre_filter_error='reading "PreFilterPodTopologySpread" from cycleState: not found',
    pre_score_error='error reading "PreScorePodTopologySpread" from cycleState: not found',
    events=_spread_events,
)


ZONE_WEIGHT = 2.0 / 3.0


class SelectorSpreadPriority(ScoreRule):
    """Prefers nodes, and with two thirds of the weight zones, with few pods of the same owner.

    Owners are services and controllers. Zone totals cover the feasible nodes only.
    """

    kinds: tuple[str, ...] = ("Service", "ReplicationController", "ReplicaSet", "StatefulSet")
    name = "SelectorSpreadPriority"
    formula = "fewer pods of the same owner on the node (1/3) and in its zone (2/3) are better"
    always = Scope.CLUSTER
    normalizes = True

    def watched(self, cls: PodClass) -> Watched:
        """Services and controllers that select the pod."""
        return Watched.SELECTORS

    def everywhere(self, pod: Incoming, view: View) -> Everywhere | None:
        """The highest score if no service or controller selects the pod."""
        return None if selectors_of(pod.cls, view.catalog) else Everywhere(HIGHEST_PRIORITY)

    def score(self, pod: Incoming, at: Rows[K]) -> Ints[K]:
        """How many pods of the same owner the node holds."""
        selectors = selectors_of(pod.cls, at.view.catalog)
        if not selectors:
            return at.full(0)
        return at.on_row(tally_live_pods(at.view, pod.cls.namespace, selectors))

    def numbers(self, pod: Incoming, at: OneRow, among: ManyRows) -> Iterator[ScoreNumber]:
        """The pods of the same owner on the node, and on the nodes of its zone that fit."""
        selectors = selectors_of(pod.cls, at.view.catalog)
        if not selectors:
            return
        tally = tally_live_pods(at.view, pod.cls.namespace, selectors)
        yield ScoreNumber("pods of the same owner on the node", as_int(at.on_row(tally)))
        zones = at.view.nodes.facts.zone
        if zone := zones.ids.item(at.row):
            there = among.index[among.ids(zones) == zone]
            count = int(tally.rows[there].sum())
            yield ScoreNumber("on the nodes of its zone that fit", count)

    def normalize(self, pod: Incoming, at: ManyRows, raw: np.ndarray) -> np.ndarray:
        """Fewer pods score higher; in floating point, truncated at the end."""
        zones = at.ids(at.view.nodes.facts.zone)
        by_zone = _by_zone(zones, raw)
        most = int(raw.max(initial=0))
        if (most + 1) * len(by_zone) > len(raw):
            return _spread(raw, most, by_zone, zones)
        # Few distinct pairs of count and zone: rate each pair once.
        counts = np.tile(np.arange(most + 1), len(by_zone))
        pairs = np.repeat(np.arange(len(by_zone)), most + 1)
        table = _spread(counts, most, by_zone, pairs)
        found: np.ndarray = table[zones * (most + 1) + raw]
        return found

    def normalize_one(
        self,
        pod: Incoming,
        at: OneRow,
        among: ManyRows,
        raw: np.ndarray,
        own: Ints[Scalar],
    ) -> Any:
        """The same for one row."""
        zones = at.view.nodes.facts.zone
        by_zone = _by_zone(among.ids(zones), raw)
        spread = fewer_is_better(own, written(int(raw.max(initial=0))))
        zone = zones.ids.item(at.row)
        if not zone:
            return at.truncate(spread)
        there = written(int(by_zone[zone]))
        zoned = fewer_is_better(there, written(int(by_zone.max())))
        return at.truncate(_mixed(spread, zoned, quotient(2, 3)))


def _by_zone(zones: np.ndarray, raw: np.ndarray) -> np.ndarray:
    """The pods in each zone; none in zone 0, which stands for rows without a zone."""
    by_zone = np.bincount(zones, weights=raw, minlength=1)
    by_zone[0] = 0
    return by_zone


def _spread(counts: np.ndarray, most: int, by_zone: np.ndarray, zones: np.ndarray) -> np.ndarray:
    """Scores of nodes with these counts in these zones; zone 0 means no zone."""
    spread = fewer_is_better(counts, most)
    zoned = fewer_is_better(by_zone, int(by_zone.max()))[zones]
    mixed: np.ndarray = np.where(zones > 0, _mixed(spread, zoned, ZONE_WEIGHT), spread)
    return mixed.astype(np.int64, copy=False)


def _mixed(spread: Any, zoned: Any, weight: float) -> Any:
    """The score by node, and with this weight that by zone."""
    return spread * (1.0 - weight) + weight * zoned


def fewer_is_better(counts: Any, most: int) -> Any:
    """Scores from the highest, for no pods, down to 0, for the most."""
    if most <= 0:
        return counts * 0 + float(HIGHEST_PRIORITY)
    return float(HIGHEST_PRIORITY) * ((most - counts) / most)


class ServiceSpreadingPriority(SelectorSpreadPriority):
    """The older name of SelectorSpreadPriority; upstream gives it the same inputs."""

    name = "ServiceSpreadingPriority"


SELECTOR_SPREAD_PRIORITY: Final = PriorityDeclaration(
    "SelectorSpreadPriority",
    "few pods of the same service or controller on the node and in its zone",
    plain(SelectorSpreadPriority),
    providers=BOTH_PROVIDERS,
)

SERVICE_SPREADING_PRIORITY: Final = PriorityDeclaration(
    "ServiceSpreadingPriority",
    "an old name of SelectorSpreadPriority",
    plain(ServiceSpreadingPriority),
)
