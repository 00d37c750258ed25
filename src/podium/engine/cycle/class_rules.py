"""The rules of a profile that are concerned with a pod class at all, found once per class."""

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


class ClassRules:
    """What the stages need to know about one class of pods and one profile."""

    __slots__ = ("_cls", "_fault", "_filters", "_profile", "refusing", "reserving")

    def __init__(self, pod: Incoming, profile: Profile) -> None:
        cls = pod.cls
        self._cls: PodClass = cls
        self._profile = profile
        self._filters: list[Positioned] | None = None
        #: The rules that may refuse pods of this class, or name nodes for them.
        self.refusing: list[FilterRule] = [r for r in profile.pre_filters if r.may_refuse(cls)]
        #: The rules that may set something aside for pods of this class.
        self.reserving: list[ReserveRule] = [
            rule for rule in profile.reserve_rules if rule.scope(cls) is not Scope.NONE
        ]
        self._fault: str | None = None

    @property
    def filters(self) -> list[Positioned]:
        """The filters that can reject pods of this class, with their positions."""
        if self._filters is None:
            scopes = scopes_of(self._cls, self._profile).filters
            self._filters = [
                Positioned(position, rule)
                for position, rule in enumerate(self._profile.predicates)
                if scopes[position] is not Scope.NONE
            ]
        return self._filters

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
