"""Recorded scenarios, run again by the rules of recordings and compared with what was recorded.

In a recording all pods look at the nodes in the order of the Node objects. In recordings of v1.36
all nodes are filtered and scored, a single feasible one too; a pod starts on its node as many
minutes into 2026 as steps came before it; what preemption evicts disappears at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from podium.cluster.simulation import Simulation
from podium.engine.rules.pod_groups import FEATURE_GATE as GATE
from podium.errors import ConfigError, InputError
from podium.library.profiles import (
    Options,
    default_profile,
    from_config,
    from_policy,
    from_provider,
)
from podium.past.recordings.comparison import Difference, ScenarioOutcome, compare
from podium.past.recordings.group_replay import GroupReplay
from podium.past.recordings.scenarios import (
    RecordedOptions,
    Scenario,
    objects_of,
    pending_of,
    scenario_of,
)
from podium.render.recording import v1_13, v1_36

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.meta import JsonObject

_FIRST_STEP: Final = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Replay:
    """A scenario after its replay."""

    scenario: str
    #: How many steps were compared.
    steps: int
    differences: list[Difference]


def replay(recorded: Scenario | JsonObject) -> Replay:
    """Run a scenario and compare every step whole."""
    scenario = recorded if isinstance(recorded, Scenario) else scenario_of(recorded)
    try:
        outcome = run(scenario)
    except (InputError, ValueError) as error:
        raise InputError(f"{scenario.name}: {error}") from None
    expected = scenario.expected.steps
    steps = len(outcome.steps) if expected is None else len(expected)
    steps += len(scenario.expected.cycles or ())
    return Replay(scenario.name, steps, list(compare(scenario.name, scenario.expected, outcome)))


def run(scenario: Scenario) -> ScenarioOutcome:
    """Run a scenario by the rules of its generation; a refused configuration is an outcome."""
    try:
        profiles = profiles_of(scenario)
    except ConfigError as error:
        return ScenarioOutcome(config_error=error.text)
    runs = {"Policy": _run_v1_13, "KubeSchedulerConfiguration": _run_v1_36}
    return runs[scenario.generation.configured_by](scenario, profiles)


def _run_v1_13(scenario: Scenario, profiles: Sequence[Profile]) -> ScenarioOutcome:
    [profile] = profiles
    if profile.extenders:
        raise InputError("asks extenders, whose answers a recording does not hold")
    simulation = Simulation(
        profile,
        listed_order=True,
        after_preemption=(scenario.options or RecordedOptions()).after_preemption,
    )
    simulation.load(objects_of(scenario), just_listed=True)
    attempts = simulation.run(pending_of(scenario), recording=True)
    return ScenarioOutcome(
        predicates=list(profile.configured_predicates),
        priorities=[f"{weighted.name}:{weighted.weight}" for weighted in profile.priorities],
        steps=[v1_13.step(each.decision, each.attempt) for each in attempts],
    )


def _run_v1_36(scenario: Scenario, profiles: Sequence[Profile]) -> ScenarioOutcome:
    simulation = recorded_simulation(profiles)
    if scenario.expected.has_groups:
        replayed = GroupReplay(simulation, objects_of(scenario), pending_of(scenario))
        return ScenarioOutcome(groups=replayed.run())
    simulation.load(objects_of(scenario), just_listed=True)
    attempts = simulation.run(pending_of(scenario), recording=True)
    return ScenarioOutcome(steps=[v1_36.step(each) for each in attempts])


def profiles_of(scenario: Scenario) -> tuple[Profile, ...]:
    """The profiles a scenario was recorded with."""
    given = scenario.options or RecordedOptions()
    if scenario.generation.configured_by != "Policy":
        gates = {GATE: True} if scenario.expected.has_groups else {}
        options = Options(
            percentage_of_nodes_to_score=100,
            generation=scenario.generation.name,
            feature_gates=gates,
        )
        if scenario.config is None:
            return (default_profile(options=options),)
        return from_config(scenario.config, options)
    options = Options(
        percentage_of_nodes_to_score=given.percentage_of_nodes_to_score,
        hard_pod_affinity_symmetric_weight=given.hard_pod_affinity_symmetric_weight,
        disable_preemption=given.disable_preemption,
        feature_gates=given.feature_gates,
        max_pd_volumes=given.env.get("KUBE_MAX_PD_VOLS"),
        # What kube-scheduler refuses is recorded as refused.
        accepts_other_names=False,
    )
    if scenario.policy is not None:
        return (from_policy(scenario.policy, options),)
    return (from_provider(scenario.provider or "DefaultProvider", options),)


def recorded_simulation(profiles: Sequence[Profile]) -> Simulation:
    """A simulation of v1.36 by the rules of recordings."""
    first, *others = (replace(each, first_if_equal=False) for each in profiles)
    return Simulation(
        first,
        others=others,
        listed_order=True,
        start_time=_start_time,
        score_single=True,
        now=_FIRST_STEP.timestamp(),
    )


def _start_time(step: int) -> str:
    return (_FIRST_STEP + timedelta(minutes=step)).strftime("%Y-%m-%dT%H:%M:%SZ")
