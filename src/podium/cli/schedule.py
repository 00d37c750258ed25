"""`podium schedule`: place the pending pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from podium.cli.console import note, notes, tracked, write, write_lines
from podium.cli.flags import (
    Reach,
    cluster_or_files,
    exit_code_flag,
    namespace_flags,
    output_flag,
    profile_flags,
    verify_flag,
)
from podium.cli.inputs import objects_and_profiles, strict_flag
from podium.cli.parsing import FlagsCommand
from podium.cli.verified import verified_code
from podium.cluster.verification import Verification
from podium.library.cluster_notes import cluster_notes
from podium.library.decision_json import to_json
from podium.library.pending_pods import pending
from podium.library.pod_notes import PodNotes
from podium.library.profile_source import ProfileSource
from podium.library.simulations import simulate
from podium.past.recordings.recording import check_recordable, record
from podium.render.decision import placements as table
from podium.render.documents import to_json_line, to_json_text, to_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.cluster.simulation import Step
    from podium.library.profile_choice import ChosenProfiles
    from podium.objects.reading.collection import Objects


@click.command(cls=FlagsCommand)
@cluster_or_files
@namespace_flags("Show pods of this namespace only; all are placed")
@click.option(
    "--no-causes",
    is_flag=True,
    help="With -o json, leave out what led to each reason and score, which takes time to find.",
)
@verify_flag
@strict_flag
@exit_code_flag("some pod has no node")
@output_flag("table", "wide", "json", "yaml", "name", "recording")
@profile_flags
def schedule(
    *,
    files: tuple[str, ...],
    cluster: Reach | None,
    namespace: str,
    no_causes: bool,
    verify: bool,
    output: str,
    flags: ProfileSource,
) -> int:
    """Place the pending pods in FILES, in queue order, and say why some did not fit.

    Without FILES the cluster of the kubeconfig is read, and what would become of its pending pods
    is shown; nothing is written to it.

    Pending are pods without a node that are not deleted, not finished and of this scheduler.
    Workloads without a metadata.uid stand for the pods that their controllers would make.

    \b
    table      a row per pod, and the pods that were evicted
    wide       the same with priority, nodes that fit, ties and attempts
    json       a list with one Decision per attempt
    yaml       the pods, with spec.nodeName where one was found
    name       a line per pod: its name and its node
    recording  one scenario that `podium history verify` replays

    Exit code: 0 answered, 1 some pod has no node (--exit-code), 2 bad input, 3 some decisions
    differ (--verify).
    """  # noqa: D301  click reads the escape
    if output == "recording" and verify:
        raise click.UsageError("-o recording makes every decision plainly; --verify has no use")
    if output == "recording" and namespace:
        raise click.UsageError("-o recording has the pods of all namespaces; leave out -n")
    objects, chosen = objects_and_profiles(files, cluster, flags)
    if output == "recording":
        check_recordable(chosen)
    notes(cluster_notes(objects, chosen))
    verification = Verification() if verify else None
    code = _write(objects, chosen, output, verification, namespace, causes=not no_causes)
    return code if verification is None else verified_code(verification, code)


def _write(
    objects: Objects,
    chosen: ChosenProfiles,
    output: str,
    verification: Verification | None,
    namespace: str,
    *,
    causes: bool,
) -> int:
    """Place the pods and write what became of those of a namespace; 1 if some were not placed."""
    if output == "recording":
        return _record(objects, chosen)
    if output == "json":
        return _stream(_steps(objects, chosen, verification, causes=causes), namespace)
    placed = table.placements(_steps(objects, chosen, verification, explain_unplaced=True))
    found = [each for each in placed if namespace in {"", each.pod.namespace}]
    if output in {"table", "wide"}:
        _print(found, objects, chosen, wide=output == "wide")
    else:
        notes(table.problem_sentences(found))
        write(_plain(found, objects, output))
    return _code(found)


def _steps(
    objects: Objects,
    chosen: ChosenProfiles,
    verification: Verification | None,
    *,
    causes: bool | None = None,
    explain_unplaced: bool = False,
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
        explain_unplaced=explain_unplaced,
        verification=verification,
        notify=note,
    )
    return tracked(steps, len(waiting), "scheduling")


def _code(found: list[table.Placement]) -> int:
    return int(any(each.node is None for each in found))


def _print(
    found: list[table.Placement], objects: Objects, chosen: ChosenProfiles, *, wide: bool
) -> None:
    from podium.cli.help import name_reason_help  # noqa: PLC0415  only for tables

    nodes, pods = len(objects.nodes), len(objects.pods)
    about = PodNotes(objects, chosen.schedulers)
    told = [(each.pod.key, about.of(each.pod, each.decision)) for each in found]
    evicting = next((each.pod.key for each in found if each.evicted()), None)
    if evicting is not None:
        told.append((evicting, about.of_evictions()))
    other = about.elsewhere()
    write_lines(
        table.report(found, chosen.profile, nodes, pods, notes=told, others=other, wide=wide)
    )
    name_reason_help(each.decision for each in found if each.node is None)


def _stream(steps: Iterator[Step], namespace: str) -> int:
    """Write one Decision after the other, each as soon as it is made."""
    last: dict[str, bool] = {}
    separator = "["
    for step in steps:
        if namespace not in {"", step.pod.namespace}:
            continue
        text = to_json_text(to_json(step.decision, attempt=step.attempt, group=step.group)).rstrip()
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
