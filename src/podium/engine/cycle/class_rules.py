"""The rules of a profile that are concerned with a pod class at all, found once per class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.framework.rule import Scope
from podium.engine.pipelines.filtering import positioned
from podium.engine.pipelines.scoring import pre_score_fault

if TYPE_CHECKING:
    from podium.engine.framework.profile import Profile
    from podium.engine.framework.rule import FilterRule, Positioned, ReserveRule
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View


class ClassRules:
    """What the stages need to know about one class of pods and one profile."""

    __slots__ = ("_fault", "filters", "refusing", "reserving")

    def __init__(self, pod: Incoming, profile: Profile) -> None:
        cls = pod.cls
        #: The filters that can reject pods of this class, with their positions.
        self.filters: list[Positioned] = positioned(pod, profile.predicates)
        #: The rules that may refuse pods of this class, or name nodes for them.
        self.refusing: list[FilterRule] = [r for r in profile.pre_filters if r.may_refuse(cls)]
        #: The rules that may set something aside for pods of this class.
        self.reserving: list[ReserveRule] = [
            rule for rule in profile.reserve_rules if rule.scope(cls) is not Scope.NONE
        ]
        self._fault: str | None = None

    def scoring_fault(self, pod: Incoming, view: View, profile: Profile) -> str:
        """Why pods of this class cannot be scored, whatever the rows; asked once."""
        if self._fault is None:
            self._fault = pre_score_fault(pod, view, profile)
        return self._fault


def rules_for(pod: Incoming, profile: Profile) -> ClassRules:
    """The rules of the profile for the class of the pod."""
    found: ClassRules | None = pod.cls.memo.get(profile.token)
    if found is None:
        found = pod.cls.memo[profile.token] = ClassRules(pod, profile)
    return found
