"""A generation: one minor release of kube-scheduler as a value.

Everything in which releases differ is a field here: plugins with their order and weights, feature
gates with stage and default, and the behaviours that changed, as named choices. Rules get their
choices when they are made. A neighbouring release is the same value with a few fields replaced.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from podium.engine.framework.choices import Choices, Conduct, ExtenderProtocol, FeatureGate, WakeUps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podium.engine.framework.declaration import (
        PluginDeclaration,
        PolicyArgument,
        PredicateDeclaration,
        PriorityDeclaration,
    )
    from podium.engine.framework.rule import FilterRule, ScoreRule
    from podium.releases import Release


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """A release: its rules in order, its feature gates and its choices."""

    release: Release
    gates: tuple[FeatureGate, ...]
    #: Feature gates of other components, which kube-scheduler accepts.
    other_gates: frozenset[str] = frozenset()
    #: In the order in which the default profile runs them.
    plugins: tuple[PluginDeclaration, ...] = ()
    #: The extension points of a configuration, in the order in which they are set up.
    points: tuple[str, ...] = ()
    #: In the order of evaluation; only predicates with a name in this list run.
    predicates: tuple[PredicateDeclaration, ...] = ()
    #: Names that are accepted and not in the order, so that they never run.
    predicates_that_never_run: tuple[PredicateDeclaration, ...] = ()
    priorities: tuple[PriorityDeclaration, ...] = ()
    #: In the order in which messages list them.
    predicate_arguments: tuple[PolicyArgument[FilterRule], ...] = ()
    priority_arguments: tuple[PolicyArgument[ScoreRule], ...] = ()
    choices: Choices = field(default_factory=Choices)
    wake_ups: WakeUps = field(default_factory=WakeUps)
    conduct: Conduct = field(default_factory=Conduct)
    extenders: ExtenderProtocol = field(default_factory=ExtenderProtocol)
    #: Name -> plugin, in order.
    plugin: Mapping[str, PluginDeclaration] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the plugins by name."""
        object.__setattr__(self, "plugin", {each.name: each for each in self.plugins})

    @property
    def name(self) -> str:
        """Its name: `v1.36`."""
        return self.release.name

    @property
    def uses_policies(self) -> bool:
        """Whether Policy files configure it, rather than a KubeSchedulerConfiguration."""
        return self.release.configured_by == "Policy"

    def having(self, **changes: Any) -> Generation:
        """The same generation with other fields."""
        return replace(self, **changes)

    def with_gates(
        self, *changed: FeatureGate, without: tuple[str, ...] = ()
    ) -> tuple[FeatureGate, ...]:
        """The feature gates, by name, with some *changed* or added and others left out."""
        found = {gate.name: gate for gate in self.gates if gate.name not in without}
        found |= {gate.name: gate for gate in changed}
        return tuple(found[name] for name in sorted(found))
