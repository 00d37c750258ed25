"""`podium lab`: a cluster in one process."""

from __future__ import annotations

from dataclasses import dataclass

import click

from podium.cli.flags import output_flag, profile_flags
from podium.cli.parsing import FlagsCommand
from podium.library.profile_source import ProfileSource

#: Where it listens unless told otherwise.
PORT = 8480


@dataclass(frozen=True, slots=True)
class LabFlags:
    """What the command line says besides the profile."""

    port: int
    kubeconfig: str | None
    nodes: int | None
    zones: int | None
    files: tuple[str, ...]
    snapshot: str | None
    data: str | None
    no_scheduler: bool
    output: str

    def check(self) -> None:
        """Refuse two worlds at once."""
        worlds = {"--nodes": self.nodes, "-f": self.files or None, "--snapshot": self.snapshot}
        given = [name for name, value in worlds.items() if value is not None]
        if len(given) > 1:
            raise click.UsageError(f"{' and '.join(given)} exclude each other; give one of them")
        if self.zones is not None and self.nodes is None:
            raise click.UsageError("--zones says where --nodes are; give both")


@click.command(cls=FlagsCommand)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="Where to listen on 127.0.0.1; 0: any free port.",
)
@click.option(
    "--kubeconfig",
    metavar="FILE",
    help="Write the kubeconfig there.  [default: podium/lab/kubeconfig in the folder of states]",
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
    "-f",
    "--filename",
    "files",
    multiple=True,
    metavar="FILES",
    help="Start with the objects of files or folders.",
)
@click.option(
    "--snapshot", metavar="FILE", help="Start with a cluster that `podium snapshot` wrote down."
)
@click.option("--data", metavar="DIR", help="Keep everything there, and go on with what is there.")
@click.option(
    "--no-scheduler",
    is_flag=True,
    help="Leave deciding to others, such as `podium run --kubeconfig FILE`.",
)
@output_flag("text", "json")
@profile_flags
def lab(
    *,
    port: int,
    kubeconfig: str | None,
    nodes: int | None,
    zones: int | None,
    files: tuple[str, ...],
    snapshot: str | None,
    data: str | None,
    no_scheduler: bool,
    output: str,
    flags: ProfileSource,
) -> int:
    """Run a cluster in this process: an API server for kubectl, controllers, the scheduler, pages.

    It listens on this machine only. Nothing runs in its pods, everything else is real: kubectl
    applies, scales, drains and waits; the scheduler is that of `podium run`. Without --nodes, -f
    or --snapshot it starts with a small shop in three zones. Ctrl-C ends it.

    \b
      podium lab
      podium lab --nodes 1000 --zones 5
      podium lab -f manifests/ --policy policy.json
    """  # noqa: D301  click reads the escape
    own = LabFlags(port, kubeconfig, nodes, zones, files, snapshot, data, no_scheduler, output)
    own.check()
    from podium.cli.lab_session import run_lab  # noqa: PLC0415  brings everything

    return run_lab(own, flags)
