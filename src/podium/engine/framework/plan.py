"""The plan for pods of one form under one profile: which rules are asked, and what is kept of them.

Pods of one form differ in names, labels and the like only (`PodForm`), so a plan is made once and
serves all their classes. `RulePlan.lines` shows it: why a decision took as long as it did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from podium.engine.framework.rule import FilterRule, Positioned, Scope, ScoreRule, Watched

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from podium.engine.framework.profile import Profile, Weighted
    from podium.engine.framework.rule import ReserveRule, Rule
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View


class PlanLine(NamedTuple):
    """What is done about one rule."""

    #: `filter` or `score`.
    stage: str
    rule: str
    scope: Scope
    #: What is kept of its answers between decisions.
    kept: str
    #: When it is asked again.
    again: str


class RowRules(NamedTuple):
    """Rules that look at one row at a time, in order."""

    #: Filters whose answers change with the node only.
    of_node: Sequence[Positioned]
    #: Filters that look at the pods of the row as well.
    of_pods: Sequence[Positioned]
    #: Scores that are final row by row.
    flat: Sequence[Weighted]


class RowKey:
    """What rules of single rows read of a class; its hash is computed once."""

    __slots__ = ("_hash", "_parts")

    def __init__(self, parts: Hashable) -> None:
        self._parts = parts
        self._hash = hash(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowKey) and self._parts == other._parts

    def __hash__(self) -> int:
        return self._hash


class RulePlan:
    """The rules of a profile that concern pods of one form, by what their answers depend on."""

    __slots__ = (
        "_fault",
        "_form_key",
        "_form_keyed",
        "_keyed",
        "_scopes",
        "cluster",
        "filters",
        "joint",
        "pre_filters",
        "refusing",
        "reserving",
        "rows",
        "seen_by",
        "watches_anything",
        "watches_pods",
        "watches_selectors",
        "watches_terms",
    )

    def __init__(self, cls: PodClass, profile: Profile) -> None:
        self._fault: str | None = None
        of_node: list[Positioned] = []
        of_pods: list[Positioned] = []
        flat: list[Weighted] = []
        #: The filters that can reject such pods, with their positions.
        self.filters: list[Positioned] = []
        #: Those of them that look beyond single rows.
        self.cluster: list[Positioned] = []
        #: Scores that look at all feasible rows, or beyond the row.
        self.joint: list[Weighted] = []
        watched = Watched.NOTHING
        self._scopes: list[tuple[str, Rule, Scope]] = []
        keyed: list[tuple[Rule, Hashable]] = []
        for position, rule in enumerate(profile.predicates):
            scope = rule.scope(cls)
            self._scopes.append(("filter", rule, scope))
            if scope is Scope.NONE:
                continue
            positioned = Positioned(position, rule)
            self.filters.append(positioned)
            if scope.of_row:
                (of_node if scope is Scope.NODE else of_pods).append(positioned)
                keyed.append((rule, (position, scope)))
            else:
                self.cluster.append(positioned)
                watched |= rule.watched(cls)
        for number, each in enumerate(profile.priorities):
            scope = each.priority.scope(cls)
            self._scopes.append(("score", each.priority, scope))
            if scope.of_row and not each.priority.normalizes:
                flat.append(each)
                keyed.append((each.priority, (-number - 1, scope)))
            else:
                self.joint.append(each)
                watched |= each.priority.watched(cls)
        #: Of the rules that look beyond single rows: whether some are asked at every decision, and
        #: what the others look at.
        self.watches_anything = bool(watched & Watched.ANYTHING)
        self.watches_selectors = bool(watched & Watched.SELECTORS)
        self.watches_terms = bool(watched & Watched.TERMS)
        self.watches_pods = bool(watched & Watched.SELECTED_PODS)
        #: Filters and scores that look at single rows.
        self.rows = RowRules(of_node, of_pods, flat)
        #: Each of these with its place among the rules, and its scope: those whose keys are the
        #: same for all classes of the form, and the others.
        self._form_keyed = [each for each in keyed if each[0].keyed_by_form]
        self._keyed = [each for each in keyed if not each[0].keyed_by_form]
        #: The keys of the first, once they are known.
        self._form_key: RowKey | None = None
        #: The rules that may refuse such pods, or name nodes for them.
        self.refusing: list[FilterRule] = [
            rule
            for rule in profile.pre_filters
            if type(rule).pre_filter is not FilterRule.pre_filter
            and rule.scope(cls) is not Scope.NONE
            and rule.may_refuse(cls)
        ]
        #: The rules that may set something aside for such pods.
        self.reserving: list[ReserveRule] = [
            rule for rule in profile.reserve_rules if rule.scope(cls) is not Scope.NONE
        ]
        names = {each.rule.name for each in self.filters}
        #: The rules of the PreFilter stage: whether each may refuse such pods or name nodes for
        #: them, and whether its filter can reject them.
        self.pre_filters: list[tuple[FilterRule, bool, bool]] = [
            (rule, rule in self.refusing, rule.name in names) for rule in profile.pre_filters
        ]
        #: The names of these rules.
        self.seen_by = frozenset(rule.name for rule in profile.pre_filters)

    def row_key(self, cls: PodClass) -> Hashable:
        """Equal for classes that get the same answers on every row."""
        key = self._form_key
        if key is None or cls.host:
            key = RowKey(_row_keys(cls, self._form_keyed))
            if not cls.host:
                self._form_key = key
        return (key, _row_keys(cls, self._keyed)) if self._keyed else key

    def scoring_fault(self, pod: Incoming, view: View, profile: Profile) -> str:
        """Why such pods cannot be scored, whatever the rows; empty if they can. Asked once."""
        if self._fault is None:
            self._fault = ""
            if profile.priorities or profile.extenders:
                for rule in profile.pre_scores:
                    if fault := rule.pre_score(pod, view):
                        self._fault = f'running PreScore plugin "{rule.name}": {fault}'
                        break
        return self._fault

    @property
    def lines(self) -> list[PlanLine]:
        """What is done about each rule that concerns such pods, in order."""
        return [
            PlanLine(stage, rule.name, scope, *_kept(rule, scope))
            for stage, rule, scope in self._scopes
            if scope is not Scope.NONE
        ]


def _kept(rule: Rule, scope: Scope) -> tuple[str, str]:
    """What is kept of the answers of a rule, and when it is asked again."""
    if not scope.of_row:
        return "whether it is silent", "at every decision, unless it is silent"
    if isinstance(rule, ScoreRule) and rule.normalizes:
        return "whether it is the same", "at every decision, unless it is the same for all nodes"
    what = "the node" if scope is Scope.NODE else "the node or its pods"
    return "an answer per node", f"about a node, when {what} changed"


def _row_keys(cls: PodClass, keyed: Sequence[tuple[Rule, Hashable]]) -> Hashable:
    return tuple([(place, rule.row_key(cls)) for rule, place in keyed])


def plan_of(cls: PodClass, profile: Profile) -> RulePlan:
    """The plan of the profile for pods of the form of this class."""
    memo = cls.form.memo
    found: RulePlan | None = memo.get(profile.token)
    if found is None:
        found = memo[profile.token] = RulePlan(cls, profile)
    return found
