"""Runs recorded scenarios of the plugins generation, by the rules of its recordings.

All nodes are filtered and scored, a single feasible one too; a pod starts on its node as many
minutes into 2026 as steps came before it; what preemption evicts disappears at once.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from podium.cluster.simulation import Simulation
from podium.library.recordings.scenarios import objects_of, pending_of
from podium.profiles.config.build import config_from, default_config, from_config
from podium.profiles.policy.build import Options
from podium.render.recording import v1_36 as plugin_recording

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podium.engine.framework.profile import Profile
    from podium.library.recordings.scenarios import Scenario

_FIRST_STEP: Final = datetime(2026, 1, 1, tzinfo=UTC)


def plugin_profiles(scenario: Scenario) -> tuple[Profile, ...]:
    """The profiles a scenario was recorded with."""
    config = default_config() if scenario.config is None else config_from(scenario.config)
    return from_config(config, Options(percentage_of_nodes_to_score=100))


def recorded_simulation(
    profile: Profile, others: Sequence[Profile] = (), *, classic: bool = False
) -> Simulation:
    """A simulation by the rules of recordings: nodes in the order they are listed."""
    if classic:
        return Simulation(profile, listed_order=True)
    first, *rest = (replace(each, first_if_equal=False) for each in (profile, *others))
    return Simulation(
        first, others=rest, listed_order=True, start_time=_start_time, score_single=True
    )


def run_plugins(scenario: Scenario) -> list[dict[str, Any]]:
    """The steps of a scenario."""
    first, *others = plugin_profiles(scenario)
    simulation = recorded_simulation(first, others)
    simulation.load(objects_of(scenario))
    return [
        plugin_recording.step(step.decision, step.pod.namespace, retry=step.attempt > 1)
        for step in simulation.run(pending_of(scenario), recording=True)
    ]


def _start_time(step: int) -> str:
    return (_FIRST_STEP + timedelta(minutes=step)).strftime("%Y-%m-%dT%H:%M:%SZ")
