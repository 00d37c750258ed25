"""A named set of rules and options: everything that one generation or one Policy decides.

The engine never asks which generation it serves; it runs what the profile lists. `generation` is
for those who show the profile or wake its pods.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from podium.engine.framework.rule import ReserveRule
from podium.engine.framework.tuning import DEFAULT_TUNING, Tuning

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.engine.framework.extenders import Extender
    from podium.engine.framework.generation import Generation
    from podium.engine.framework.post_filter import GroupPostFilter, PostFilter
    from podium.engine.framework.rule import FilterRule, Gate, PermitRule, ScoreRule
    from podium.engine.state.accounting import Accounting
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View


@dataclass(frozen=True, slots=True)
class Weighted:
    """A score rule and its weight."""

    priority: ScoreRule
    weight: int

    @property
    def name(self) -> str:
        """The priority's name."""
        return self.priority.name


@dataclass(frozen=True, slots=True)
class Profile:
    """What to run, in order, and how."""

    name: str
    #: In the order they run.
    predicates: tuple[FilterRule, ...]
    #: Sorted by name, as they are reported.
    priorities: tuple[Weighted, ...]
    accounting: Accounting
    #: What must hold for the pod itself before any node is looked at: an error text, or nothing.
    checks: tuple[Callable[[Incoming, View], str], ...] = ()
    #: Names as configured, sorted; some of them may never run.
    configured_predicates: tuple[str, ...] = ()
    extenders: tuple[Extender, ...] = ()
    #: What may hold a pod back before it is tried at all.
    gates: tuple[Gate, ...] = ()
    #: Rules that look at the pod before any node, in order.
    pre_filters: tuple[FilterRule, ...] = ()
    #: What is tried when no node fits, in order.
    post_filters: tuple[PostFilter, ...] = ()
    #: What is tried when too few pods of a pod group fit, in order.
    group_post_filters: tuple[GroupPostFilter, ...] = ()
    #: Whether pods of a pod group are scheduled together.
    schedules_groups: bool = False
    #: Scores that must be ready before any node is scored, in order.
    pre_scores: tuple[ScoreRule, ...] = ()
    max_score: int = 10
    #: Whether a score outside 0 to `max_score` is an error.
    checks_scores: bool = False
    always_check_all: bool = False
    #: Whether the node promised to a pod is tried first, and taken if it fits.
    nominated_first: bool = False
    #: Whether a nomination ends with an attempt of a profile without post-filters.
    clears_without_post_filter: bool = True
    #: Whether the pods nominated to a node count for the affinity of others.
    nominees_count_for_affinity: bool = False
    #: Of all nodes, how many percent of feasible ones are enough.
    percentage_of_nodes_to_score: int = 100
    #: How many workers look at nodes side by side; one decides the same as many, but for ties.
    parallelism: int = 16
    #: Whether 0 percent means a share that shrinks as the cluster grows.
    adaptive_sampling: bool = False
    #: Whether the first feasible node is enough when nothing would tell nodes apart.
    first_if_equal: bool = False
    #: `cursors`: zones in turn, with cursors that stay where they are; `list`: one list of nodes,
    #: zones in turn, taken up where the last pod stopped.
    node_order: str = "cursors"
    #: Whether the errors of all nodes are reported, or only that of the first.
    all_errors: bool = True
    #: Whether waiting pods go by priority; otherwise in the order of arrival.
    by_priority: bool = True
    #: `round-robin`, `first`, `random:SEED`, or `kube-scheduler`: the root of its heap.
    ties: str = "round-robin"
    scheduler_name: str = "default-scheduler"
    #: Things users should know about this configuration.
    notes: tuple[str, ...] = ()
    tuning: Tuning = DEFAULT_TUNING
    #: Rules that only reserve; filters that reserve as well need not be listed.
    reserves: tuple[ReserveRule, ...] = ()
    #: Rules that may reject or delay a pod once its node is chosen, in order.
    permits: tuple[PermitRule, ...] = ()
    #: The release that it is a profile of; None for rules that were put together by hand.
    generation: Generation | None = field(default=None, repr=False)
    #: All rules that set something aside on the chosen node, in order.
    reserve_rules: tuple[ReserveRule, ...] = field(init=False, repr=False, compare=False)
    #: Whether feasible nodes are compared at all: by priorities, or by extenders.
    compares_nodes: bool = field(init=False, repr=False, compare=False)
    #: Whether the search never ends early, however many nodes there are.
    wants_all_nodes: bool = field(init=False, repr=False, compare=False)
    #: Scores above this, or below 0, fail the attempt; None if any score is allowed.
    highest_score: int | None = field(init=False, repr=False, compare=False)
    #: Stands for this very profile where something is kept for it; found faster than the profile.
    token: object = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Collect what follows from the rules and is needed at every decision."""
        filters = (rule for rule in self.predicates if isinstance(rule, ReserveRule))
        object.__setattr__(self, "reserve_rules", (*filters, *self.reserves))
        asks = any(each.filter_verb or each.prioritize_verb for each in self.extenders)
        compares = asks or bool(self.priorities)
        object.__setattr__(self, "compares_nodes", compares)
        percentage = self.percentage_of_nodes_to_score
        limited = 0 < percentage < 100 or (percentage == 0 and self.adaptive_sampling)
        first_only = self.first_if_equal and not compares
        object.__setattr__(self, "wants_all_nodes", not limited and not first_only)
        highest = self.max_score if self.checks_scores else None
        object.__setattr__(self, "highest_score", highest)
        object.__setattr__(self, "token", object())

    @property
    def clears_nominations(self) -> bool:
        """Whether no post-filter decides about a nomination, so that it ends with the attempt."""
        return self.clears_without_post_filter and not self.post_filters

    @property
    def preemption(self) -> bool:
        """Whether pods of lower priority may be evicted for a pod that fits nowhere."""
        return any(each.evicts_pods for each in self.post_filters)
