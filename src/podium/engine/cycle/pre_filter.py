"""The PreFilter stage: a look at the pod before any node.

A rule may refuse the pod everywhere, name the only nodes in question, or skip the attempt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.engine.framework.plan import plan_of
from podium.engine.framework.rule import Activity, AttemptError, OnlyNodes, Refused

if TYPE_CHECKING:
    from podium.engine.framework.profile import Profile
    from podium.engine.framework.rule import FilterRule, Positioned
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View


class PreFilter:
    """The outcome of the stage for one pod.

    Only the rules that may refuse pods of this class, or name nodes for them, are asked at first.
    The others are asked whether they skip the attempt, when that is needed.
    """

    _done = False
    _asked: frozenset[str]
    refused: Refused | None = None
    #: The only nodes in question; None when all are.
    only: frozenset[str] | None = None

    def __init__(self, pod: Incoming, view: View, profile: Profile) -> None:
        self._pod = pod
        self._view = view
        self._profile = profile
        #: Which rules are asked about the pod.
        self.plan = plan_of(pod.cls, profile)
        #: Plugins that named nodes.
        self.naming: list[str] = []
        for rule in self.plan.refusing:
            answer = self._ask(rule)
            if answer is not None and not self._names_nodes(rule, answer):
                self._run()
                break

    def _names_nodes(self, rule: FilterRule, answer: Refused | OnlyNodes) -> bool:
        """Take over the nodes that a rule names; whether any is left."""
        if isinstance(answer, Refused):
            return False
        self.naming.append(rule.name)
        self.only = answer.names if self.only is None else self.only & answer.names
        return bool(self.only)

    @property
    def asked(self) -> frozenset[str]:
        """Names of the plugins that saw the pod before the stage ended."""
        self._run()
        return self._asked

    def taking_part(self) -> list[Positioned]:
        """The filter rules that take part in this attempt, trials included."""
        self._run()
        rules = self.plan.filters
        if not self._skipped:
            return rules
        return [each for each in rules if each.rule.name not in self._skipped]

    def _run(self) -> None:
        """Ask the plugins in order, until one refuses the pod.

        Whether a plugin skips the attempt matters only where its filter can reject such pods.
        """
        if self._done:
            return
        self._done = True
        self.naming, self.only = [], None
        self._asked = self.plan.seen_by
        self._skipped: set[str] = set()
        for place, (rule, may_refuse, filters) in enumerate(self.plan.pre_filters):
            answer = self._ask(rule) if may_refuse else None
            if answer is not None:
                if self._names_nodes(rule, answer):
                    continue
                self.refused = answer if isinstance(answer, Refused) else _no_node_left(self.naming)
                seen = self.plan.pre_filters[: place + 1]
                self._asked = frozenset(each.name for each, _, _ in seen)
                return
            if filters and rule.activity(self._pod, self._view) is Activity.SKIPPED:
                self._skipped.add(rule.name)

    def _ask(self, rule: FilterRule) -> Refused | OnlyNodes | None:
        try:
            return rule.pre_filter(self._pod, self._view)
        except AttemptError as error:
            text = f'running PreFilter plugin "{rule.name}": {error}'
            raise AttemptError(text, plugin=rule.name) from error


def _no_node_left(names: list[str]) -> Refused:
    """The refusal when the plugins that named nodes leave none."""
    plugins = tuple(sorted(names))
    if len(names) == 1:
        reason = f"node(s) didn't satisfy plugin {names[0]}"
    else:
        reason = f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously"
    return Refused("", reason, plugins=plugins)
