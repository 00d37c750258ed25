"""The program of `podium run`: its event loop, its signals and its garbage collection.

The lists of nodes and pods are asked for first of all. In a large cluster the API server takes
seconds to prepare them. The modules of the scheduler are imported meanwhile, and none of them
before.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import msgspec

from podium.host.event_loop import (
    collect_rarely,
    connections_within_descriptors,
    on_stop_signal,
    raise_descriptors,
    run_program,
)
from podium.kube.client import ApiClient
from podium.scheduler.state.begun_lists import begin_lists

if TYPE_CHECKING:
    from collections.abc import Callable

    from podium.host.cluster_run import RunOptions
    from podium.kube.access import Access
    from podium.library.profile_choice import ChosenProfiles
    from podium.scheduler.telemetry.logs import Log

#: How long a thread may compute before another one goes on.
SWITCH_SECONDS: Final = 0.0005
#: Garbage is collected after this time even if the cluster is not known yet.
_LONGEST_START_SECONDS: Final = 60.0


class PreparedRun(msgspec.Struct, frozen=True):
    """What the flags of a run come to."""

    chosen: ChosenProfiles
    options: RunOptions
    log: Log


def run_cluster(
    load_access: Callable[[], Access],
    access: Access,
    prepare: Callable[[], PreparedRun],
    show: Callable[[str], None],
    *,
    pod_name: str = "",
) -> int:
    """Schedule until a signal stops the program or the lease is lost; the exit code.

    *load_access* loads the *access* anew, for what uses an event loop of its own. *prepare* is
    called once the lists are asked for. In shadow mode *show* is called with the
    comparison at the end and on SIGUSR1. The lease names this replica by *pod_name*, or by the name
    of the machine.
    """

    async def main() -> int:
        async with ApiClient(access, connections=connections_within_descriptors()) as client:
            await begin_lists(client)
            return await _run(client, load_access, prepare(), show, pod_name)

    raise_descriptors()
    # Whatever another thread computes, decisions wait for it no longer than this.
    sys.setswitchinterval(SWITCH_SECONDS)
    _stop_collection()
    try:
        return run_program(main())
    finally:
        gc.enable()


async def _run(
    client: ApiClient,
    load_access: Callable[[], Access],
    prepared: PreparedRun,
    show: Callable[[str], None],
    pod_name: str,
) -> int:
    from podium.host.cluster_run import ClusterRun  # noqa: PLC0415
    from podium.scheduler.telemetry.logs import LogHandler  # noqa: PLC0415  with the modules of the scheduler

    logging.basicConfig(handlers=[LogHandler(prepared.log)], level=logging.WARNING)
    run = ClusterRun(
        client,
        prepared.chosen,
        prepared.log,
        prepared.options,
        identity=f"{pod_name}_{uuid4()}" if pod_name else "",
        on_synced=_start_collection,
        load_access=load_access,
    )
    asyncio.get_running_loop().call_later(_LONGEST_START_SECONDS, _start_collection)
    on_stop_signal(run.stop)
    shadow = run.host.shadow
    if shadow is None:
        return await run.run()

    def report() -> None:
        show(shadow.table())

    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, report)
    try:
        return await run.run()
    finally:
        if run.host.scheduler is not None:
            report()


def _stop_collection() -> None:
    """Collect no garbage while the cluster is read; modules stay for ever and are not looked at."""
    gc.freeze()
    gc.disable()


def _start_collection() -> None:
    """Collect garbage from now on, unless that is done already; what was read first is left out."""
    if not gc.isenabled():
        collect_rarely()
