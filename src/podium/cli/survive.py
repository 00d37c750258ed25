"""`podium survive`: what is left when a node, a zone or a rack is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from podium.cli.console import INTERRUPTED, note, notes, tracked, write_data, write_lines
from podium.cli.flags import cluster_or_files, output_flag, profile_flags
from podium.cli.inputs import read_files, read_live
from podium.cli.parsing import FlagsCommand
from podium.library.profile_source import ProfileSource
from podium.objects.reading.validate import notes as input_notes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from podium.planning.survive import DomainLoss

#: From so many pods on, several losses are tried at the same time.
_MANY_PODS: Final = 2000


@click.command(cls=FlagsCommand)
@cluster_or_files
@click.option(
    "--domain",
    default="topology.kubernetes.io/zone",
    show_default=True,
    metavar="LABEL",
    help="The label of nodes whose values are lost in turn; kubernetes.io/hostname is each node.",
)
@output_flag("table", "json", "yaml")
@profile_flags
def survive(
    *,
    files: tuple[str, ...],
    cluster: dict[str, str | None] | None,
    domain: str,
    output: str,
    flags: ProfileSource,
) -> int:
    """Lose every value of a label of nodes in turn, and show what would be left without a node.

    The pods of the lost nodes are created anew by their controllers and scheduled on the nodes
    that are left. The table has the worst loss first, with the workloads and disruption budgets
    that have fewer pods than they ask for: at once, and after rescheduling.

    Exit code: 0 every loss can be survived, 1 some leaves pods without a node, 2 bad input.
    """
    import msgspec  # noqa: PLC0415  not needed for help

    from podium.library.parallel import processors  # noqa: PLC0415
    from podium.planning.survive import survive as try_losses  # noqa: PLC0415
    from podium.planning.survive_report import report  # noqa: PLC0415

    chosen = flags.choose()
    objects = read_files(files) if cluster is None else read_live(**cluster)
    if objects.snapshot is not None:
        chosen = flags.choose(objects.snapshot)
    notes((*input_notes(objects), *chosen.profile.notes))

    workers = processors() if len(objects.pods) >= _MANY_PODS else 1

    def progress(done: Iterator[DomainLoss], total: int) -> Iterable[DomainLoss]:
        return tracked(done, total, "losing")

    found = try_losses(objects, domain, chosen, workers=workers, progress=progress)
    if found.interrupted:
        note("interrupted; what follows is what was found so far")
    if output == "table":
        write_lines(report(found))
    else:
        write_data(msgspec.to_builtins(found), output)
    return INTERRUPTED if found.interrupted else int(found.leaves_pods)
