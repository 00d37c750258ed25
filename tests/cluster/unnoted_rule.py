"""A rule whose answers change without any note: what is kept of them is wrong from then on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from podium.engine.framework.profile import Profile
from podium.engine.framework.rule import FilterRule, Scope
from podium.engine.rows.rows import OneRow
from podium.engine.state.verdicts import Verdict

CLOSED = "node(s) were closed"


class Closed(FilterRule):
    """Rejects some nodes. It states that it reads the node alone, and reads a set besides."""

    name = "Closed"
    always = Scope.NODE

    def __init__(self) -> None:
        self.nodes: set[str] = set()

    def row_key(self, cls: object) -> object:
        return None

    def filter(self, pod: object, at: Any) -> Any:
        code = at.view.verdicts.code(Verdict(self.name, (CLOSED,), curable=False))
        if isinstance(at, OneRow):
            return code if at.name in self.nodes else 0
        names = [at.view.nodes.names[row] for row in at.index.tolist()]
        closed = at.full(0).copy()
        closed[[name in self.nodes for name in names]] = code
        return closed


def with_closed(profile: Profile) -> tuple[Profile, Closed]:
    """A profile with such a rule, and the rule."""
    rule = Closed()
    return replace(profile, predicates=(*profile.predicates, rule)), rule
