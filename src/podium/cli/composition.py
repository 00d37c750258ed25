"""A scheduler from what the command line chose: profiles, behaviour, and extenders to ask."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from podium.daemon.behaviour import V1_13, V1_36, Behaviour
from podium.daemon.options import SchedulerOptions
from podium.daemon.scheduler import Scheduler
from podium.kube.client import ApiClient

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from podium.daemon.observers import Observer
    from podium.daemon.pod_events import Recorder
    from podium.engine.framework.profile import Profile
    from podium.library.profile_choice import ChosenProfiles
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod
    from podium.profiles.config.scheduler_config import SchedulerConfig


def behaviour_of(chosen: ChosenProfiles) -> Behaviour:
    """How the chosen generation behaves, with the rests that a configuration asks for."""
    if chosen.is_v1_13:
        queue = replace(V1_13.queue, by_priority=chosen.profile.by_priority)
        return replace(V1_13, queue=queue)
    config = chosen.scheduler_config
    if config is None:
        return V1_36
    first, longest = config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
    return V1_36.with_backoff(float(first), float(longest))


def options_of(chosen: ChosenProfiles, options: SchedulerOptions | None = None) -> SchedulerOptions:
    """How a scheduler with these profiles works."""
    found = replace(options or SchedulerOptions(), behaviour=behaviour_of(chosen))
    seconds = _volume_seconds(chosen.scheduler_config)
    return found if seconds is None else replace(found, volume_seconds=seconds)


def _volume_seconds(config: SchedulerConfig | None) -> float | None:
    for profile in config.profiles if config is not None else ():
        seconds = getattr(profile.args.get("VolumeBinding"), "bind_timeout_seconds", None)
        if seconds:
            return float(seconds)
    return None


@dataclass(slots=True)
class _Seen:
    """The objects of a scheduler, for questions that only name them."""

    scheduler: Scheduler | None = None

    def node(self, name: str) -> Node | None:
        """A node."""
        assert self.scheduler is not None
        return self.scheduler.state.node(name)

    def pod(self, uid: str) -> Pod | None:
        """A placed pod."""
        assert self.scheduler is not None
        resident = self.scheduler.cache.columns.pod(uid)
        return None if resident is None else self.scheduler.state.pod_named(resident.key)


async def composed(
    stack: AsyncExitStack,
    client: ApiClient,
    profiles: Sequence[Profile],
    *,
    options: SchedulerOptions,
    recorder: Recorder,
    observers: Sequence[Observer] = (),
    tell: Callable[[str], None] = lambda _: None,
    **more: Any,
) -> Scheduler:
    """A scheduler whose extenders, if its profiles have any, are asked over HTTP."""
    if any(profile.extenders for profile in profiles):
        from podium.extender.client import ExtenderClient  # noqa: PLC0415  brings its client

        seen = _Seen()
        extenders = await stack.enter_async_context(ExtenderClient(seen, tell))
        binding = _ExtenderBinding(extenders, seen, tell)
        more |= {"ask": extenders.ask, "bind_by_extender": binding.bind}
    scheduler = Scheduler(
        client, profiles, recorder=recorder, observers=observers, options=options, **more
    )
    if "ask" in more:
        seen.scheduler = scheduler
    return scheduler


class _ExtenderBinding:
    """Binding by those extenders that do so."""

    def __init__(self, client: Any, seen: _Seen, tell: Callable[[str], None]) -> None:
        self._client = client
        self._seen = seen
        self._tell = tell

    async def bind(self, profile: Profile, pod: Pod, node: str) -> str | None:
        """Why the extender did not bind the pod, "" if it did, None if none binds it."""
        from podium.engine.framework.extenders import interested  # noqa: PLC0415

        assert self._seen.scheduler is not None
        incoming = self._seen.scheduler.cache.columns.incoming(pod)
        for extender in profile.extenders:
            if not extender.bind_verb or not interested(extender, incoming):
                continue
            error: str = await self._client.bind(extender, pod, node)
            if error and extender.ignorable:
                self._tell(f"extender {extender.url_prefix} is ignored: {error}")
                continue
            return error
        return None
