"""`podium schedule`: place the pending pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from podium.cli.console import note, notes, tracked, write, write_lines
from podium.cli.flags import cluster_or_files, output_flag, profile_flags
from podium.cli.inputs import read_files, read_live
from podium.cli.parsing import FlagsCommand
from podium.library.cluster_notes import cluster_notes
from podium.library.pending import pending
from podium.library.profile_source import ProfileSource
from podium.library.recordings.recording import check_recordable, record
from podium.library.simulating import simulate
from podium.objects.reading.validate import notes as input_notes
from podium.render.decision import placements as table
from podium.render.decision.as_json import to_json
from podium.render.documents import to_json_line, to_json_text, to_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.cluster.simulation import Step
    from podium.library.profile_choice import ChosenProfiles
    from podium.objects.reading.collection import Objects


@click.command(cls=FlagsCommand)
@cluster_or_files
@click.option(
    "--no-causes",
    is_flag=True,
    help="With -o json, leave out what led to each reason and score, which takes time to find.",
)
@output_flag("table", "wide", "json", "yaml", "name", "recording")
@profile_flags
def schedule(
    *,
    files: tuple[str, ...],
    cluster: dict[str, str | None] | None,
    no_causes: bool,
    output: str,
    flags: ProfileSource,
) -> int:
    """Place the pending pods in FILES, in queue order, and say why some did not fit.

    With --cluster and no FILES, the cluster of the kubeconfig is read, and what would become of
    its pending pods is shown; nothing is written to it.

    Pending are pods without a node that are not deleted, not finished and of this scheduler.
    Workloads without a metadata.uid stand for the pods that their controllers would make.

    \b
    table      a row per pod, and the pods that were evicted
    wide       the same with priority, nodes that fit, ties and attempts
    json       a list with one Decision per attempt
    yaml       the pods, with spec.nodeName where one was found
    name       a line per pod: its name and its node
    recording  one scenario that `podium verify` replays

    Exit code: 0 all placed, 1 some not, 2 bad input.
    """  # noqa: D301  click reads the escape
    chosen = flags.choose()
    objects = read_files(files) if cluster is None else read_live(**cluster)
    if cluster is None and objects.snapshot is not None:
        chosen = flags.choose(objects.snapshot)
    if output == "recording":
        check_recordable(chosen)
    notes((*input_notes(objects), *cluster_notes(objects, chosen), *chosen.profile.notes))
    if output == "recording":
        return _record(objects, chosen)
    if output == "json":
        return _stream(_steps(objects, chosen, causes=not no_causes))
    found = table.placements(_steps(objects, chosen))
    if output in {"table", "wide"}:
        _print(found, objects, chosen, wide=output == "wide")
    else:
        notes(table.problem_sentences(found))
        write(_plain(found, objects, output))
    return _code(found)


def _steps(
    objects: Objects, chosen: ChosenProfiles, *, causes: bool | None = None
) -> Iterator[Step]:
    """The attempts; with all verdicts and scores unless *causes* is None."""
    by_priority = chosen.profile.by_priority
    waiting = pending(objects, chosen.schedulers, by_priority=by_priority)
    steps = simulate(
        objects,
        chosen.profiles,
        pods=waiting,
        recording=causes is not None,
        causes=bool(causes),
        notify=note,
    )
    return tracked(steps, len(waiting), "scheduling")


def _code(found: list[table.Placement]) -> int:
    return int(any(each.node is None for each in found))


def _print(
    found: list[table.Placement], objects: Objects, chosen: ChosenProfiles, *, wide: bool
) -> None:
    nodes, pods = len(objects.nodes), len(objects.pods)
    write_lines(table.report(found, chosen.profile, nodes, pods, wide=wide))


def _stream(steps: Iterator[Step]) -> int:
    """Write one Decision after the other, each as soon as it is made."""
    last: dict[str, bool] = {}
    separator = "["
    for step in steps:
        text = to_json_text(to_json(step.decision, attempt=step.attempt)).rstrip()
        write(f"{separator}\n{text}")
        separator = ","
        last[step.pod.uid] = step.decision.node is not None
    write("\n]\n" if last else "[]\n")
    return int(not all(last.values()))


def _plain(found: list[table.Placement], objects: Objects, output: str) -> str:
    if output == "name":
        return "".join(f"{each.pod.key} {each.node or table.NO_NODE}\n" for each in found)
    return "---\n".join(to_yaml(manifest) for manifest in table.manifests(found, objects))


def _record(objects: Objects, chosen: ChosenProfiles) -> int:
    made = record(
        objects,
        chosen,
        progress=lambda steps, total: tracked(steps, total, "scheduling"),
        notify=note,
    )
    write(to_json_line(made.scenario))
    return _code(table.placements(made.steps))
