"""`podium lab`: a cluster in one process."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from podium.cli.flags import (
    HistoryLimits,
    ListenAddress,
    files_flag,
    history_limit_flags,
    listen_flag,
    output_flag,
    profile_flags,
)
from podium.cli.parsing import FlagsCommand
from podium.errors import InputError
from podium.library.profile_source import ProfileSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from podium.engine.framework.profile import Profile
    from podium.host.lab_run import LabScheduler, LabStatus
    from podium.host.record_run import RecordOptions
    from podium.lab.contents.demo import Demo
    from podium.lab.controllers.device_driver import DeviceSet
    from podium.lab.registry.registry import Registry
    from podium.library.profile_choice import ChosenProfiles
    from podium.serving.page_data.page_data import Planner

_LISTEN: Final = ListenAddress("127.0.0.1", 8480)


@click.command(cls=FlagsCommand, renamed={"--kubeconfig": "--write-kubeconfig"})
@listen_flag(_LISTEN, "The address to listen on, of this machine; port 0 is any free one.")
@click.option(
    "--write-kubeconfig",
    "kubeconfig",
    metavar="FILE",
    help="Write the kubeconfig to this file.  [default: podium/lab/kubeconfig in $XDG_STATE_HOME]",
)
@click.option(
    "--nodes",
    type=click.IntRange(0, 20_000),
    metavar="N",
    help="Start with N empty nodes.",
)
@click.option(
    "--zones",
    type=click.IntRange(1, 1000),
    metavar="Z",
    help="Put them into Z zones.  [default: 3]",
)
@click.option(
    "--devices",
    "device_sets",
    multiple=True,
    metavar="DEVICES",
    help="Publish devices on nodes: COUNT[,NAME=VALUE]…, as in 8,model=h100,memory=80Gi,nodes=4.",
)
@files_flag("Start with the objects of files or folders.")
@click.option(
    "--snapshot", metavar="FILE", help="Start with a cluster that `podium snapshot` wrote."
)
@click.option(
    "--chapter",
    metavar="NAME",
    help="Start with a chapter of the course about kube-scheduler; `podium help course` lists "
    "them.",
)
@click.option(
    "--data", metavar="DIR", help="Keep all objects in this folder, and start with those in it."
)
@click.option(
    "--record",
    metavar="DIR",
    help="Record a history of the scheduler in this folder.  [default: the last 32 MiB, in memory]",
)
@history_limit_flags
@click.option(
    "--no-scheduler",
    is_flag=True,
    help="Start no scheduler; `podium run --kubeconfig FILE` can schedule from outside.",
)
@click.option(
    "-v",
    "--v",
    type=int,
    metavar="N",
    help="Log verbosity; 2 logs every decision.  [default: warnings and errors only]",
)
@output_flag("table", "json", "yaml")
@profile_flags
def lab(
    *,
    listen: ListenAddress,
    kubeconfig: str | None,
    nodes: int | None,
    zones: int | None,
    device_sets: tuple[str, ...],
    files: tuple[str, ...],
    snapshot: str | None,
    chapter: str | None,
    data: str | None,
    record: str | None,
    limits: HistoryLimits,
    no_scheduler: bool,
    v: int | None,
    output: str,
    flags: ProfileSource,
) -> int:
    """Run a cluster in this process: an API server for kubectl, controllers, the scheduler, pages.

    It listens on this machine only. Nothing runs in its pods, everything else is real: kubectl
    applies, scales, drains and waits; the scheduler is that of `podium run`. Without --nodes, -f
    or --snapshot it starts with a small shop in three zones, made for the rules that decide.
    Ctrl-C ends it.

    \b
      podium lab
      podium lab --nodes 1000 --zones 5
      podium lab --nodes 10 --devices 8,model=h100,memory=80Gi
      podium lab -f manifests/ --policy policy.json
      podium lab --chapter nominated-pods
    """  # noqa: D301  click reads the escape
    contents = {
        "--nodes": nodes,
        "-f": files or None,
        "--snapshot": snapshot,
        "--chapter": chapter,
    }
    given = [name for name, value in contents.items() if value is not None]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} exclude each other; give one of them")
    if zones is not None and nodes is None:
        raise click.UsageError("--zones says where --nodes are; give both")
    if listen.host != _LISTEN.host:
        raise click.UsageError(f"--listen {listen}: a lab listens on {_LISTEN.host} only")
    if chapter is not None:
        from podium.cli.course import start_chapter  # noqa: PLC0415  only with --chapter

        others = [f"--{name}" for name in flags.named()]
        others += ["--data"] * (data is not None) + ["--record"] * (record is not None)
        others += ["--no-scheduler"] * no_scheduler
        if others:
            raise click.UsageError(f"--chapter has rules of its own; leave out {others[0]}")
        return start_chapter(chapter, listen.port, kubeconfig, output)
    from podium.cli.console import note, tracked  # noqa: PLC0415  not needed for the help
    from podium.host.lab_contents import LabContents  # noqa: PLC0415
    from podium.host.lab_run import LabOptions, Terminal, run_lab  # noqa: PLC0415
    from podium.scheduler.telemetry.logs import TEXT, WARNINGS_ONLY, Log  # noqa: PLC0415

    described = lab_scheduler(flags)
    scheduler = None if no_scheduler else described
    profile = None if scheduler is None else scheduler.chosen.profile.name
    if record is not None and scheduler is None:
        raise click.UsageError("--record records the scheduler; it excludes --no-scheduler")
    with lab_history(flags, scheduler, record, limits) as history:
        return run_lab(
            LabOptions(
                port=listen.port,
                kubeconfig=kubeconfig,
                contents=LabContents(
                    snapshot, files, nodes, zones, _devices(device_sets), _demo(scheduler)
                ),
                data=data,
                planner=_planner,
                record=history,
                release=described.release,
            ),
            scheduler,
            Log(TEXT, WARNINGS_ONLY if v is None else v),
            Terminal(
                progress=lambda items: tracked(items, len(items), "creating objects"),
                note=note,
                on_ready=lambda status: introduce(status, profile, output, keeps=data is not None),
            ),
        )


def _demo(scheduler: LabScheduler | None) -> Demo:
    """The shop for the rules that decide."""
    from podium.lab.contents.demo import OLDER_SHOP, SHOP  # noqa: PLC0415  not for the help

    return (
        OLDER_SHOP if scheduler is not None and scheduler.chosen.generation.uses_policies else SHOP
    )


def _devices(texts: tuple[str, ...]) -> tuple[DeviceSet, ...]:
    """The devices that --devices describes."""
    if not texts:
        return ()
    from podium.lab.controllers.device_driver import (  # noqa: PLC0415  only with --devices
        has_expressions,
        parse_device_set,
    )

    found = []
    for text in texts:
        try:
            found.append(parse_device_set(text))
        except InputError as error:
            raise error.located(where=f"--devices {text}") from None
    if not has_expressions():
        raise InputError(
            "--devices needs the package cel-expr-python, for device selectors",
            hint="pip install 'podium[devices]'",
        )
    return tuple(found)


def _planner(registry: Registry, chosen: ChosenProfiles) -> Planner:
    """What makes the plans of the pages; most labs make none, so it is imported when used."""

    async def planned(
        profiles: Sequence[Profile], text: str | None, changes: Sequence[tuple[str, str]]
    ) -> dict[str, Any]:
        from podium.what_if.plan.page_plans import registry_planner  # noqa: PLC0415

        return await registry_planner(registry, chosen)(profiles, text, changes)

    return planned


@contextmanager
def lab_history(
    flags: ProfileSource,
    scheduler: LabScheduler | None,
    record: str | None = None,
    limits: HistoryLimits | None = None,
) -> Iterator[RecordOptions | None]:
    """How the scheduler of a lab is recorded: in a folder, or for as long as the lab runs."""
    from podium.host.history_rules import record_options  # noqa: PLC0415  not for the help
    from podium.host.memory_history import LIMITS, memory_folder  # noqa: PLC0415

    if scheduler is None:
        yield None
    elif record is not None and limits is not None:
        yield record_options(record, limits.made(), flags, scheduler.chosen)
    else:
        with memory_folder() as folder:
            yield record_options(folder, LIMITS, flags, scheduler.chosen)


def lab_scheduler(flags: ProfileSource) -> LabScheduler:
    """The scheduler that the flags describe; notes about its rules are printed."""
    from podium.cli.console import notes  # noqa: PLC0415  not needed for the help
    from podium.host.lab_run import LabScheduler  # noqa: PLC0415

    chosen = flags.choose()
    notes(chosen.profile.notes)
    file = flags.policy or flags.config
    return LabScheduler(chosen, None if file is None else flags.text(file))


def introduce(
    status: LabStatus,
    profile: str | None,
    output: str,
    *,
    keeps: bool = False,
    more: Mapping[str, str] | None = None,
) -> None:
    """Print how the lab is reached; *more* is added to data."""
    from podium.cli.console import write, write_data  # noqa: PLC0415  not needed for the help

    page = f"{status.url}/?token={status.token}"
    if output != "table":
        write_data(_as_data(status, profile, page) | dict(more or {}), output)
    else:
        import shlex  # noqa: PLC0415

        file = shlex.quote(str(status.kubeconfig))
        name = profile or "no scheduler"
        write(f"podium lab: {name}, {status.nodes} nodes, {status.pods} pods\n")
        write(f"  kubectl --kubeconfig {file} get pods -A -o wide\n")
        write(f"  export KUBECONFIG={file}\n")
        if profile is not None:
            write(f"  {page}\n")
        kept = "is kept" if keeps else "is gone then; --data DIR keeps it"
        write(f"Ctrl-C ends it; everything {kept}.\n")
    sys.stdout.flush()


def _as_data(status: LabStatus, profile: str | None, page: str) -> dict[str, Any]:
    return {
        "profile": profile,
        "server": status.url,
        "token": status.token,
        "kubeconfig": str(status.kubeconfig),
        "page": None if profile is None else page,
        "pid": os.getpid(),
    }
