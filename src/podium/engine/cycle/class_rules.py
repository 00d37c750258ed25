"""The rules of a profile that are concerned with a pod at all, found once per form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.framework.class_scopes import scopes_of
from podium.engine.framework.rule import Positioned, Scope
from podium.engine.pipelines.scoring import pre_score_fault

if TYPE_CHECKING:
    from podium.engine.framework.profile import Profile
    from podium.engine.framework.rule import FilterRule, ReserveRule
    from podium.engine.state.pod_class import Incoming, PodClass
    from podium.engine.state.view import View


class FormRules:
    """The rules of one profile that are concerned with pods of one form."""

    __slots__ = ("_fault", "filters", "pre_filters", "refusing", "reserving", "seen_by")

    def __init__(self, cls: PodClass, profile: Profile) -> None:
        self._fault: str | None = None
        #: The rules that may refuse such pods, or name nodes for them.
        self.refusing: list[FilterRule] = [r for r in profile.pre_filters if r.may_refuse(cls)]
        #: The rules that may set something aside for such pods.
        self.reserving: list[ReserveRule] = [
            rule for rule in profile.reserve_rules if rule.scope(cls) is not Scope.NONE
        ]
        #: The filters that can reject such pods, with their positions.
        self.filters: list[Positioned] = [
            Positioned(position, rule)
            for position, (rule, scope) in enumerate(
                zip(profile.predicates, scopes_of(cls, profile).filters, strict=True)
            )
            if scope is not Scope.NONE
        ]

        names = {each.rule.name for each in self.filters}
        #: The rules of the PreFilter stage: whether each may refuse such pods or name nodes for
        #: them, and whether its filter can reject them.
        self.pre_filters: list[tuple[FilterRule, bool, bool]] = [
            (rule, rule in self.refusing, rule.name in names) for rule in profile.pre_filters
        ]
        #: The names of these rules.
        self.seen_by = frozenset(rule.name for rule in profile.pre_filters)

    def scoring_fault(self, pod: Incoming, view: View, profile: Profile) -> str:
        """Why such pods cannot be scored, whatever the rows; asked once."""
        if self._fault is None:
            self._fault = pre_score_fault(pod, view, profile)
        return self._fault


def rules_for(pod: Incoming, profile: Profile) -> FormRules:
    """The rules of the profile for pods of the form of this one."""
    memo, token = pod.cls.form.memo, profile.token
    found: FormRules | None = memo.get(token)
    if found is None:
        found = memo[token] = FormRules(pod.cls, profile)
    return found
