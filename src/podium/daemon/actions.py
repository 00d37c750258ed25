"""Everything that a scheduler does to a cluster: bind, write, say, evict."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podium.daemon.behaviour import CURRENT, Manners
from podium.daemon.binder import Binder
from podium.daemon.failure_handler import Failures
from podium.daemon.pod_events import Announcer, Mute
from podium.daemon.pod_status import StatusWriter
from podium.daemon.shadow_binder import Pretender
from podium.daemon.volumes import TIMEOUT_SECONDS, VolumeBinder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from podium.daemon.binder import ExtenderBind
    from podium.daemon.cluster_state import Beliefs
    from podium.daemon.observers import Observer
    from podium.daemon.pod_events import Recorder
    from podium.daemon.worker_pool import Crew
    from podium.kube.client import ApiClient


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerOptions:
    """How a scheduler works, apart from its decisions."""

    manners: Manners = CURRENT
    #: How many bindings, and how many other writes, are under way together.
    bindings: int = 100
    writes: int = 32
    bind_seconds: float = 15.0
    volume_seconds: float = TIMEOUT_SECONDS
    #: How long bindings under way may take to finish once it was told to stop.
    drain_seconds: float = 20.0
    #: Whether it begins to decide only when told that it leads.
    waits_to_lead: bool = False
    #: Whether it only decides, beside another scheduler, and touches nothing.
    shadow: bool = False
    #: Up to how many nodes everything that led to a decision is kept with it, for people to see.
    recorded_nodes: int = 0


class Hands:
    """Binder, failures, events and volumes, put together; in a shadow's case, tied."""

    def __init__(
        self,
        client: ApiClient,
        beliefs: Beliefs,
        recorder: Recorder,
        *,
        options: SchedulerOptions,
        observers: Sequence[Observer],
        bindings: Crew,
        writes: Crew,
        clock: Callable[[], float],
        bind_by_extender: ExtenderBind | None,
    ) -> None:
        manners = options.manners
        writer = StatusWriter(client, probes=manners.probes, now=time.time)
        beliefs.listen(writer)
        self.announcer = Announcer(Mute() if options.shadow else recorder, manners)
        self.failures = Failures(
            beliefs=beliefs,
            client=client,
            writer=writer,
            announcer=self.announcer,
            crew=writes,
            observers=observers,
            manners=manners,
            now=time.time,
            acts=not options.shadow,
        )
        self.volumes = VolumeBinder(
            beliefs,
            client,
            writer,
            announces=manners.announces_volumes,
            timeout_seconds=options.volume_seconds,
        )
        self.binder: Binder | Pretender = Binder(
            beliefs=beliefs,
            client=client,
            volumes=self.volumes,
            failures=self.failures,
            announcer=self.announcer,
            crew=bindings,
            observers=observers,
            now=clock,
            timeout_seconds=options.bind_seconds,
            by_extender=bind_by_extender,
        )
        if options.shadow:
            self.binder = Pretender(beliefs, clock)
