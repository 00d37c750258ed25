"""`podium run`: the scheduler of a cluster."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import click

from podium.cli.console import note, notes
from podium.cli.flags import FlagsCommand, ProfileFlags, profile_flags

if TYPE_CHECKING:
    from podium.cli.generations import Chosen


@click.command(cls=FlagsCommand)
@click.option("--kubeconfig", metavar="FILE", help="How to reach the cluster.")
@click.option("--context", metavar="NAME", help="Which context of it.")
@click.option("--master", metavar="URL", help="The API server, in place of the one it names.")
@profile_flags
def run(
    *, kubeconfig: str | None, context: str | None, master: str | None, flags: ProfileFlags
) -> int:
    """Place the pods of a cluster."""
    from podium.kube.access import load_access  # noqa: PLC0415

    access = load_access(kubeconfig, context, master)
    chosen = flags.choose()
    notes(chosen.profile.notes)
    return asyncio.run(_run(access, chosen, flags))


class _Silent:
    def record(self, *_: Any) -> None:
        pass


async def _run(access: Any, chosen: Chosen, flags: ProfileFlags) -> int:
    from podium.cli.composition import composed, options_of  # noqa: PLC0415
    from podium.kube.client import ApiClient  # noqa: PLC0415

    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(ApiClient(access))
        scheduler = await composed(
            stack,
            client,
            (chosen.profile, *chosen.others),
            options=options_of(flags, chosen),
            recorder=_Silent(),
            tell=note,
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, scheduler.stop)
        print(f"{chosen.profile.name} at {access.url}", file=sys.stderr)
        await scheduler.run()
    return 0
