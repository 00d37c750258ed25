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
from podium.engine.preemption.pod_priority import PodPriorityPreemption
from podium.engine.rules.gates import SchedulingGates
from podium.engine.rules.priorities import DEFAULT_PROVIDER
from podium.engine.state.accounting import ContainerSums
from podium.errors import ConfigError
from podium.generations.known import DEFAULT, GENERATIONS
from podium.generations.v1_13 import V1_13
from podium.objects.names import quoted
from podium.profiles.extenders import ignored_resources, make_extenders
from podium.profiles.policy.configured_predicates import (
    ConfiguredPredicates,
    policy_predicates,
    provider_predicates,
)
from podium.profiles.policy.configured_priorities import (
    PROVIDERS,
    ConfiguredPriorities,
    policy_priorities,
    provider_priorities,
)
from podium.profiles.policy.document import (
    MAX_INT,
    ExtenderConfig,
    Policy,
    check_policy,
    parse_policy,
    read_policy,
)
from podium.profiles.policy.feature_gates import PolicyGates
from podium.profiles.similar_names import did_you_mean
from podium.profiles.user_rules.adapter import PREDICATE, PRIORITY
from podium.profiles.user_rules.loading import NO_RULES, LoadedRules, take_arguments
from podium.releases import DEFAULT_RELEASE, KUBE_SCHEDULER

if TYPE_CHECKING:
    from podium.engine.framework.generation import Generation
    from podium.engine.state.pod_class import Incoming
    from podium.engine.state.view import View
    from podium.profiles.policy.configured_predicates import Maker as PredicateMaker
    from podium.profiles.policy.configured_priorities import Maker as PriorityMaker


def claims_exist(incoming: Incoming, view: View) -> str:
    """The error of the first claim that is missing or being deleted; empty if there is none."""
    for name in incoming.cls.claims:
        claim = view.catalog.claims.get(name, incoming.cls.namespace)
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
    return ""


__all__ = ["Options", "from_policy", "from_provider", "parse_policy"]

#: The percentage that kube-scheduler uses when 0 is configured.
_DEFAULT_PERCENTAGE = 50
_NUMBER: Final = re.compile(r"[+-]?[0-9]+")


@dataclass(frozen=True, slots=True)
class Options:
    """Options besides the provider or Policy: flags, feature gates and the environment."""

    #: 0 is what kube-scheduler takes for it, 50 in v1.13; None is what the configuration says.
    percentage_of_nodes_to_score: int | None = None
    #: The percentage where neither this nor the configuration says one.
    usual_percentage: int = 100
    hard_pod_affinity_symmetric_weight: int = 1
    disable_preemption: bool = False
    #: Changes to the defaults.
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    #: The text of KUBE_MAX_PD_VOLS, if it is set.
    max_pd_volumes: str | None = None
    #: `round-robin`, `first`, `random:SEED` or `kube-scheduler`; None is round robin in v1.13, and
    #: the first from then on.
    ties: str | None = None
    scheduler_name: str = "default-scheduler"
    #: Users' rules.
    rules: LoadedRules = NO_RULES
    #: The generation that reads a KubeSchedulerConfiguration.
    generation: str = DEFAULT_RELEASE.name
    #: Whether predicate names from documentation that kube-scheduler refuses are read.
    accepts_other_names: bool = True

    @property
    def of_configurations(self) -> Generation:
        """The generation that reads a KubeSchedulerConfiguration, as a value."""
        found = GENERATIONS.get(self.generation)
        if found is None:
            known = ", ".join(GENERATIONS)
            raise ConfigError(f"there is no profile {self.generation!r}", hint=f"served: {known}")
        return DEFAULT if found.uses_policies else found


@dataclass(slots=True)
class _Plan:
    """Everything that the configuration decides before rules are made."""

    name: str
    gates: PolicyGates
    predicates: ConfiguredPredicates
    priorities: ConfiguredPriorities
    hard_pod_affinity_weight: int
    extenders: tuple[ExtenderConfig, ...] = ()
    always_check_all: bool = False
    notes: list[str] = field(default_factory=list)


def from_provider(name: str, options: Options) -> Profile:
    """The profile of an algorithm provider."""
    gates = PolicyGates(options.feature_gates)
    if name not in PROVIDERS:
        hint = did_you_mean(name, PROVIDERS) or f"known: {', '.join(PROVIDERS)}"
        raise ConfigError(f"plugin {quoted(name)} has not been registered", hint=hint)
    plan = _Plan(
        f"{V1_13.name} {name}",
        gates,
        provider_predicates(gates, _own_predicates(options.rules)),
        provider_priorities(name, gates, _own_priorities(options.rules)),
        options.hard_pod_affinity_symmetric_weight,
    )
    return _profile(plan, options)


def from_policy(policy: Mapping[str, Any], options: Options, where: str = "policy") -> Profile:
    """The profile of a Policy document; *where* is the file it came from."""
    gates = PolicyGates(options.feature_gates)
    policy, arguments = take_arguments(policy, options.rules)
    document, notes = read_policy(policy, where)
    check_policy(document)
    own_weight = _int32(document.hard_pod_affinity_symmetric_weight)
    plan = _Plan(
        f"{V1_13.name} policy" if where == "policy" else f"{V1_13.name} policy {where}",
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
    gates: PolicyGates,
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
    document: Policy, gates: PolicyGates, own: Mapping[str, tuple[PriorityMaker, int]]
) -> ConfiguredPriorities:
    if document.priorities is None:
        return provider_priorities(DEFAULT_PROVIDER, gates, own)
    return policy_priorities(document.priorities, gates, own)


def _own_predicates(
    rules: LoadedRules, arguments: Mapping[tuple[str, str], Mapping[str, Any]] | None = None
) -> dict[str, PredicateMaker]:
    given = arguments or {}

    def maker(name: str) -> PredicateMaker:
        return lambda _: rules.predicate(name, given.get((PREDICATE, name)))

    return {name: maker(name) for name in rules.predicates}


def _own_priorities(
    rules: LoadedRules, arguments: Mapping[tuple[str, str], Mapping[str, Any]] | None = None
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
    extenders = make_extenders(plan.extenders, V1_13.extenders)
    _check_hard_weight(plan.hard_pod_affinity_weight)
    args = FactoryArgs(
        plan.gates,
        plan.hard_pod_affinity_weight,
        _max_volumes(options.max_pd_volumes),
        ignored_resources(plan.extenders),
    )
    preempts = plan.gates["PodPriority"] and not options.disable_preemption
    return Profile(
        generation=V1_13,
        name=plan.name,
        predicates=plan.predicates.make(args),
        priorities=plan.priorities.make(args),
        accounting=ContainerSums(),
        checks=(claims_exist,),
        configured_predicates=plan.predicates.configured(),
        extenders=extenders,
        # v1.13 knows no gates, but the API servers that do refuse to bind such a pod. Trying it
        # again and again would take the room of the pods behind it.
        gates=(SchedulingGates(),),
        always_check_all=plan.always_check_all,
        post_filters=(PodPriorityPreemption(),) if preempts else (),
        by_priority=plan.gates["PodPriority"],
        percentage_of_nodes_to_score=_percentage(options),
        ties=_ties(options.ties),
        scheduler_name=options.scheduler_name,
        notes=_notes(plan, options),
    )


def _check_hard_weight(weight: int) -> None:
    if not 1 <= weight <= 100:
        raise ConfigError(
            f"invalid hardPodAffinitySymmetricWeight: {weight}, must be in the range 1-100"
        )


def _percentage(options: Options) -> int:
    percentage = options.percentage_of_nodes_to_score
    if percentage is None:
        percentage = options.usual_percentage
    if not 0 <= percentage <= 100:
        raise ConfigError(
            f"invalid percentageOfNodesToScore: {percentage}, must be in the range 0-100"
        )
    return percentage or _DEFAULT_PERCENTAGE


def _ties(rule: str | None) -> str:
    if rule in (None, KUBE_SCHEDULER):
        return "round-robin"
    try:
        ties(rule)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return rule


def _notes(plan: _Plan, options: Options) -> tuple[str, ...]:
    """Notes on what is accepted and has no or an unexpected effect, in document order."""
    notes = [*plan.notes, *plan.predicates.notes, *plan.priorities.notes]
    if not plan.priorities.chosen:
        scoring = [each.url_prefix for each in plan.extenders if each.prioritize_verb]
        notes.append(
            f"no priorities: only the extenders score nodes: {', '.join(scoring)}"
            if scoring
            else "no priorities: every node that fits is as good as any other"
        )
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
