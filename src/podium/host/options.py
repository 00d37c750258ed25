"""The options of a scheduler that follow from the profiles it was configured with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from podium.daemon.behaviour import V1_13, V1_36, Behaviour
from podium.daemon.options import SchedulerOptions
from podium.engine.rules.volumes.binding.v1_36_arguments import VolumeBindingArgs

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
    """The behaviour of the profiles' version, with the backoff of their configuration."""
    if chosen.is_v1_13:
        queue = replace(V1_13.queue, by_priority=chosen.profile.by_priority)
        return replace(V1_13, queue=queue)
    config = chosen.scheduler_config
    if config is None:
        return V1_36
    first, longest = config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
    return V1_36.with_backoff(float(first), float(longest))


def _volume_seconds(config: SchedulerConfig | None) -> float | None:
    """The bindTimeoutSeconds of the first profile that has VolumeBinding."""
    for profile in config.profiles if config is not None else ():
        arguments = profile.args.get("VolumeBinding")
        if isinstance(arguments, VolumeBindingArgs) and arguments.bind_timeout_seconds:
            return float(arguments.bind_timeout_seconds)
    return None
