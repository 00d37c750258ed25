"""The options of a scheduler that follow from the profiles it was configured with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from podium.engine.rules.volumes.binding import VolumeBindingArgs
from podium.scheduler.state.behaviour import Behaviour
from podium.scheduler.state.behaviour import behaviour_of as behaviour_of_generation
from podium.scheduler.state.options import SchedulerOptions

if TYPE_CHECKING:
    from podium.library.profile_choice import ChosenProfiles
    from podium.profiles.config.scheduler_config import SchedulerConfig


def scheduler_options(
    chosen: ChosenProfiles, options: SchedulerOptions | None = None
) -> SchedulerOptions:
    """The options with the behaviour and the timeouts of the chosen profiles."""
    found = replace(options or SchedulerOptions(), behaviour=behaviour_of(chosen))
    seconds = _volume_seconds(chosen.scheduler_config)
    return found if seconds is None else replace(found, volume_seconds=seconds)


def behaviour_of(chosen: ChosenProfiles) -> Behaviour:
    """The behaviour of the profiles' generation, with the backoff of their configuration."""
    found = behaviour_of_generation(chosen.generation)
    if chosen.generation.uses_policies:
        queue = replace(found.queue, by_priority=chosen.profile.by_priority)
        return replace(found, queue=queue)
    config = chosen.scheduler_config
    if config is None:
        return found
    first, longest = config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
    return found.with_backoff(float(first), float(longest))


def _volume_seconds(config: SchedulerConfig | None) -> float | None:
    """The bindTimeoutSeconds of the first profile that has VolumeBinding."""
    for profile in config.profiles if config is not None else ():
        arguments = profile.args.get("VolumeBinding")
        if isinstance(arguments, VolumeBindingArgs) and arguments.bind_timeout_seconds:
            return float(arguments.bind_timeout_seconds)
    return None
