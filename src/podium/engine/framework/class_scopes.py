"""The scopes of all rules of a profile for the pod classes of one form, asked once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from podium.engine.framework.profile import Profile
    from podium.engine.framework.rule import Scope
    from podium.engine.state.pod_class import PodClass


class ClassScopes(NamedTuple):
    """What the answers of the rules depend on, for pods of one form."""

    #: Of each predicate of the profile, in order.
    filters: tuple[Scope, ...]
    #: Of each priority, in order.
    scores: tuple[Scope, ...]


def scopes_of(cls: PodClass, profile: Profile) -> ClassScopes:
    """The scopes of the rules of the profile."""
    memo = cls.form.memo
    found: ClassScopes | None = memo.get(profile.scopes_token)
    if found is None:
        found = memo[profile.scopes_token] = ClassScopes(
            tuple(rule.scope(cls) for rule in profile.predicates),
            tuple(each.priority.scope(cls) for each in profile.priorities),
        )
    return found
