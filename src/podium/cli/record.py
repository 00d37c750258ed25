"""`podium history record`: the history of a cluster, by list and watch."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from podium.cli.console import note, write, write_data
from podium.cli.flags import (
    DurationType,
    HistoryLimits,
    Reach,
    cluster_flags,
    history_limit_flags,
    output_flag,
    policy_configmap_flags,
    profile_flags,
)
from podium.cli.history import new_folder
from podium.cli.inputs import reached
from podium.cli.parsing import FlagsCommand
from podium.library.profile_source import ProfileSource
from podium.render.plain import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from podium.host.record_run import RecordOptions


@click.command(cls=FlagsCommand)
@click.argument("folder", metavar="DIR", type=click.Path())
@cluster_flags()
@click.option(
    "--for",
    "seconds",
    type=DurationType(),
    metavar="DURATION",
    help="Stop after this time, such as 10m.",
)
@click.option(
    "--anonymize",
    is_flag=True,
    help="Rename everything that tells whose cluster it is; DIR is written at the end.",
)
@history_limit_flags
@policy_configmap_flags
@output_flag("table", "json", "yaml")
@profile_flags
def record(
    *,
    folder: str,
    reach: Reach,
    seconds: float | None,
    anonymize: bool,
    limits: HistoryLimits,
    policy_configmap: str | None,
    policy_configmap_namespace: str,
    output: str,
    flags: ProfileSource,
) -> int:
    """Record what scheduling reads of a cluster in the folder DIR, from now until Ctrl-C.

    Every object that `podium snapshot` reads is listed and then watched; each change is written as
    it comes. Rights to list and watch are enough, and whichever scheduler the cluster has goes on
    as before. `podium history judge` says afterwards how its placements compare with Podium's
    decisions, by the profile that is named here.

    With --anonymize a temporary folder has the history until the end, since new names keep the
    order of all old ones; then DIR is written under other names, and the temporary folder deleted.

    Exit code: 0 recorded, 2 the cluster cannot be read or the folder cannot be written.
    """
    from podium.host.history_rules import record_options  # noqa: PLC0415
    from podium.host.record_run import run_record  # noqa: PLC0415
    from podium.library.cluster_release import choose_in_cluster  # noqa: PLC0415
    from podium.scheduler.telemetry.logs import TEXT, WARNINGS_ONLY, Log  # noqa: PLC0415  not for the help

    access = reached(reach)
    chosen = choose_in_cluster(flags, access, policy_configmap_namespace, policy_configmap)
    with _recorded_in(folder, anonymize=anonymize) as written:
        options = record_options(written, limits.made(), flags, chosen)

        def ready(counts: Mapping[str, int]) -> None:
            listed = ", ".join(f"{kind} {count}" for kind, count in counts.items() if count)
            note(f"recording {access.shown} to {folder}: {listed or 'nothing yet'}; Ctrl-C ends it")

        log = Log(TEXT, WARNINGS_ONLY)
        found = run_record(access, options, log, seconds=seconds, on_ready=ready)
        if anonymize:
            _write_anonymized(written, folder, options)
    if output == "table":
        write(f"{counted(found.changes, 'change')} recorded in {folder}\n")
    else:
        about = {"apiVersion": "podium/v1", "kind": "Recorded", "folder": folder}
        write_data({**about, "changes": found.changes, "objects": dict(found.objects)}, output)
    return 0


@contextmanager
def _recorded_in(folder: str, *, anonymize: bool) -> Iterator[str]:
    """The folder to record in: a temporary one if the history is to be anonymized."""
    if not anonymize:
        yield folder
        return
    new_folder(folder)
    with tempfile.TemporaryDirectory(prefix="podium-") as temporary:
        yield temporary


def _write_anonymized(written: str, folder: str, options: RecordOptions) -> None:
    from podium.past.format.reading import History  # noqa: PLC0415
    from podium.past.replay.anonymized_copy import write_anonymized  # noqa: PLC0415

    write_anonymized(History(written), Path(folder), options.rules_of)
