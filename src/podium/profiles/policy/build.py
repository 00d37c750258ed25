"""Profiles of v1.13, made from the name of an algorithm provider or from a Policy, and options.

A configuration that kube-scheduler refuses is refused here with its text, in `ConfigError.text`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from podium.engine.cycle.ties import ties
from podium.engine.framework.declaration import FactoryArgs
from podium.engine.framework.profile import Profile
from podium.engine.preemption.v1_13 import PodPriorityPreemption
from podium.engine.rules.v1_13 import DEFAULT_PROVIDER
from podium.engine.state.accounting import ContainerSums
from podium.engine.user_rules.adapter import PREDICATE, PRIORITY
from podium.errors import ConfigError
from podium.objects.names import quoted
from podium.profiles.extenders import ignored_resources, make_extenders
from podium.profiles.policy.basic_checks import claims_exist
from podium.profiles.policy.configured_predicates import (
    ConfiguredPredicates,
    policy_predicates,
    provider_predicates,
)
from podium.profiles.policy.configured_priorities import (
    ConfiguredPriorities,
    policy_priorities,
    provider_priorities,
)
from podium.profiles.policy.document import ExtenderConfig, Policy
from podium.profiles.policy.feature_gates import FeatureGates
from podium.profiles.policy.priority_registry import PROVIDERS
from podium.profiles.policy.reading import parse_policy, read_policy
from podium.profiles.policy.validation import MAX_INT, check_policy
from podium.profiles.similar_names import did_you_mean
from podium.profiles.user_rules.loading import NO_RULES, Rules, take_arguments

if TYPE_CHECKING:
    from podium.profiles.policy.predicate_registry import Maker as PredicateMaker
    from podium.profiles.policy.priority_registry import Maker as PriorityMaker

__all__ = ["Options", "from_policy", "from_provider", "parse_policy"]

GENERATION = "v1.13"
#: The percentage that kube-scheduler uses when 0 is configured.
_DEFAULT_PERCENTAGE = 50
_NUMBER: Final = re.compile(r"[+-]?[0-9]+")


@dataclass(frozen=True, slots=True)
class Options:
    """Options besides the provider or Policy: flags, feature gates and the environment."""

    #: None is all nodes; 0 is what kube-scheduler takes for it, 50.
    percentage_of_nodes_to_score: int | None = None
    hard_pod_affinity_symmetric_weight: int = 1
    disable_preemption: bool = False
    #: Changes to the defaults.
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    #: The text of KUBE_MAX_PD_VOLS, if it is set.
    max_pd_volumes: str | None = None
    #: `round-robin`, `first` or `random:SEED`; None is the generation's own, round robin.
    ties: str | None = None
    scheduler_name: str = "default-scheduler"
    #: Users' rules.
    rules: Rules = NO_RULES
    #: Whether predicate names from documentation that kube-scheduler refuses are read.
    accepts_other_names: bool = True


@dataclass(slots=True)
class _Plan:
    """Everything that the configuration decides before rules are made."""

    name: str
    gates: FeatureGates
    predicates: ConfiguredPredicates
    priorities: ConfiguredPriorities
    hard_pod_affinity_weight: int
    extenders: tuple[ExtenderConfig, ...] = ()
    always_check_all: bool = False
    notes: list[str] = field(default_factory=list)


def from_provider(name: str, options: Options) -> Profile:
    """The profile of an algorithm provider."""
    gates = FeatureGates(options.feature_gates)
    if name not in PROVIDERS:
        hint = did_you_mean(name, PROVIDERS) or f"known: {', '.join(PROVIDERS)}"
        raise ConfigError(f"plugin {quoted(name)} has not been registered", hint=hint)
    plan = _Plan(
        f"{GENERATION} {name}",
        gates,
        provider_predicates(gates, _own_predicates(options.rules)),
        provider_priorities(name, gates, _own_priorities(options.rules)),
        options.hard_pod_affinity_symmetric_weight,
    )
    return _profile(plan, options)


def from_policy(policy: Mapping[str, Any], options: Options, where: str = "policy") -> Profile:
    """The profile of a Policy document; *where* is the file it came from."""
    gates = FeatureGates(options.feature_gates)
    policy, arguments = take_arguments(policy, options.rules)
    document, notes = read_policy(policy, where)
    check_policy(document)
    own_weight = _int32(document.hard_pod_affinity_symmetric_weight)
    plan = _Plan(
        f"{GENERATION} policy" if where == "policy" else f"{GENERATION} policy {where}",
        gates,
        _predicates(
            document,
            gates,
            _own_predicates(options.rules, arguments),
            accepts_other_names=options.accepts_other_names,
        ),
        _priorities(document, gates, _own_priorities(options.rules, arguments)),
        own_weight or options.hard_pod_affinity_symmetric_weight,
        tuple(document.extenders or ()),
        document.always_check_all_predicates,
        notes,
    )
    if own_weight and "InterPodAffinityPriority" not in plan.priorities.chosen:
        notes.append(
            "hardPodAffinitySymmetricWeight has no effect: "
            "InterPodAffinityPriority is not among the priorities"
        )
    return _profile(plan, options)


def _predicates(
    document: Policy,
    gates: FeatureGates,
    own: Mapping[str, PredicateMaker],
    *,
    accepts_other_names: bool,
) -> ConfiguredPredicates:
    if document.predicates is None:
        return provider_predicates(gates, own)
    return policy_predicates(
        document.predicates, gates, own, accepts_other_names=accepts_other_names
    )


def _priorities(
    document: Policy, gates: FeatureGates, own: Mapping[str, tuple[PriorityMaker, int]]
) -> ConfiguredPriorities:
    if document.priorities is None:
        return provider_priorities(DEFAULT_PROVIDER, gates, own)
    return policy_priorities(document.priorities, gates, own)


def _own_predicates(
    rules: Rules, arguments: Mapping[tuple[str, str], Mapping[str, Any]] | None = None
) -> dict[str, PredicateMaker]:
    given = arguments or {}

    def maker(name: str) -> PredicateMaker:
        return lambda _: rules.predicate(name, given.get((PREDICATE, name)))

    return {name: maker(name) for name in rules.predicates}


def _own_priorities(
    rules: Rules, arguments: Mapping[tuple[str, str], Mapping[str, Any]] | None = None
) -> dict[str, tuple[PriorityMaker, int]]:
    given = arguments or {}

    def maker(name: str) -> PriorityMaker:
        return lambda _: rules.priority(name, given.get((PRIORITY, name)))

    return {name: (maker(name), spec.weight) for name, spec in rules.priorities.items()}


def _int32(number: int) -> int:
    """The number truncated to a signed integer of 32 bits: 4294967297 is 1."""
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


def _profile(plan: _Plan, options: Options) -> Profile:
    """Make the rules; errors are raised in the order in which kube-scheduler finds them."""
    extenders = make_extenders(plan.extenders, "v1.13")
    _check_hard_weight(plan.hard_pod_affinity_weight)
    args = FactoryArgs(
        plan.gates,
        plan.hard_pod_affinity_weight,
        _max_volumes(options.max_pd_volumes),
        ignored_resources(plan.extenders),
    )
    preempts = plan.gates["PodPriority"] and not options.disable_preemption
    return Profile(
        name=plan.name,
        predicates=plan.predicates.make(args),
        priorities=plan.priorities.make(args),
        accounting=ContainerSums(),
        checks=(claims_exist,),
        configured_predicates=plan.predicates.configured(),
        extenders=extenders,
        always_check_all=plan.always_check_all,
        post_filters=(PodPriorityPreemption(),) if preempts else (),
        by_priority=plan.gates["PodPriority"],
        percentage_of_nodes_to_score=_percentage(options.percentage_of_nodes_to_score),
        ties=_ties(options.ties),
        scheduler_name=options.scheduler_name,
        notes=_notes(plan, options),
    )


def _check_hard_weight(weight: int) -> None:
    if not 1 <= weight <= 100:
        raise ConfigError(
            f"invalid hardPodAffinitySymmetricWeight: {weight}, must be in the range 1-100"
        )


def _percentage(percentage: int | None) -> int:
    if percentage is None:
        return 100
    if not 0 <= percentage <= 100:
        raise ConfigError(
            f"invalid percentageOfNodesToScore: {percentage}, must be in the range 0-100"
        )
    return percentage or _DEFAULT_PERCENTAGE


def _ties(rule: str | None) -> str:
    try:
        ties(rule or "round-robin")
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return rule or "round-robin"


def _notes(plan: _Plan, options: Options) -> tuple[str, ...]:
    """Notes on what is accepted and has no or an unexpected effect, in document order."""
    notes = [*plan.notes, *plan.predicates.notes, *plan.priorities.notes]
    notes += [f"{name} passes every node under these gates" for name in plan.predicates.idle()]
    if plan.gates["EnableEquivalenceClassCache"]:
        notes.append("EnableEquivalenceClassCache has no effect, as in kube-scheduler")
    text = options.max_pd_volumes
    if text and _max_volumes(text) is None:
        notes.append(f"KUBE_MAX_PD_VOLS={text} is not a positive number and is ignored")
    return tuple(notes)


def _max_volumes(text: str | None) -> int | None:
    """The limit that KUBE_MAX_PD_VOLS sets: a positive number, else None."""
    if not text or not _NUMBER.fullmatch(text):
        return None
    number = int(text)
    return number if 0 < number <= MAX_INT else None
