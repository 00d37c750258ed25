"""`podium plan --lose-each`: what is left when a node, a zone or a rack is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from podium.cli.console import INTERRUPTED, note, notes, tracked, write_data, write_lines
from podium.cli.inputs import chosen_for, read_files, read_live
from podium.library.absence import AbsentObjects, absence_notes, absent_kinds
from podium.library.profile_source import ProfileSource
from podium.objects.kinds.registry import POD_DISRUPTION_BUDGET
from podium.objects.reading.validate import notes as input_notes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from podium.what_if.survive.survive import DomainLoss

#: From so many pods on, several losses are tried at the same time.
_MANY_PODS: Final = 2000


def survive(
    files: tuple[str, ...],
    cluster: dict[str, str | None] | None,
    domain: str,
    output: str,
    flags: ProfileSource,
) -> int:
    """Lose every value of a label of nodes in turn, and print what would be left without a node.

    The worst loss is first, with the workloads and disruption budgets that have fewer pods than
    they ask for: at once, and after rescheduling. What is left without a node follows, important
    workloads first. The exit code is 1 if a loss leaves pods without a node.
    """
    import msgspec  # noqa: PLC0415  not needed for help

    from podium.library.parallel import processors  # noqa: PLC0415
    from podium.render.reports.survive import report  # noqa: PLC0415
    from podium.what_if.survive.survive import survive as try_losses  # noqa: PLC0415

    chosen = chosen_for(flags, cluster)
    objects = read_files(files) if cluster is None else read_live(**cluster)
    if cluster is None and objects.snapshot is not None:
        chosen = flags.choose(objects.snapshot)
    missing = dict(absent_kinds(objects))
    if AbsentObjects(objects).lacks_budgets:
        missing[POD_DISRUPTION_BUDGET.name] = 0
    notes((*input_notes(objects), *chosen.profile.notes, *absence_notes(missing)))

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
