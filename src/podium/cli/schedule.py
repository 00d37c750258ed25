"""`podium schedule`: place the pending pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from podium.cli.console import console, note, notes, tracked, write
from podium.cli.extender_simulation import simulated
from podium.cli.flags import FlagsCommand, ProfileFlags, files_argument, output_flag, profile_flags
from podium.cli.generations import refuse_extenders
from podium.cluster.simulation import Simulation
from podium.errors import InputError
from podium.library.pending import pending, seen_by
from podium.library.reading import read
from podium.library.replay_v1_36 import recorded_simulation
from podium.objects.reading.validate import notes as input_notes
from podium.render.decision import placements as table
from podium.render.decision.as_json import to_json
from podium.render.documents import to_json_line, to_json_text, to_yaml
from podium.render.recording import v1_36 as plugin_recording
from podium.render.recording.v1_13 import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.cli.generations import Chosen
    from podium.cluster.simulation import Step
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects


@click.command(cls=FlagsCommand)
@files_argument
@output_flag("table", "wide", "json", "yaml", "name", "recording")
@profile_flags
def schedule(*, files: tuple[str, ...], output: str, flags: ProfileFlags) -> int:
    """Place the pending pods in FILES, in queue order, and say why some did not fit.

    Pending are pods without a node that are not deleted, not finished and of this scheduler.
    Workloads without a metadata.uid stand for the pods that their controllers would make.

    \b
    table      a row per pod, and who had to go
    wide       the same with priority, nodes that fit, ties and attempts
    json       a list with one Decision per attempt
    yaml       the pods, with spec.nodeName where one was found
    name       a line per pod: its name and its node
    recording  one scenario that `podium verify` replays

    Exit code: 0 all placed, 1 some not, 2 bad input.
    """  # noqa: D301  click reads the escape
    chosen = flags.choose()
    objects = read(files)
    if objects.snapshot is not None:
        chosen = flags.choose(objects.snapshot)
    if output == "recording":
        refuse_extenders(chosen.profile)
        check_recordable(chosen)
    notes((*input_notes(objects), *chosen.profile.notes))
    waiting = pending(objects, chosen.schedulers, by_priority=chosen.by_priority)
    if output == "recording":
        return _record(objects, waiting, chosen)
    if output == "json":
        return _stream(_steps(objects, waiting, chosen, recording=True))
    found = table.placements(_steps(objects, waiting, chosen))
    if output in {"table", "wide"}:
        _print(found, objects, chosen, wide=output == "wide")
    else:
        notes(table.misfortunes(found))
        write(_plain(found, objects, output))
    return _code(found)


def _steps(
    objects: Objects, waiting: list[Pod], chosen: Chosen, *, recording: bool = False
) -> Iterator[Step]:
    with simulated(chosen.profile, chosen.others) as simulation:
        simulation.load(seen_by(objects, chosen.schedulers, without=waiting))
        steps = simulation.run(waiting, recording=recording)
        yield from tracked(steps, len(waiting), "scheduling")


def _code(found: list[table.Placement]) -> int:
    return int(any(each.node is None for each in found))


def _print(found: list[table.Placement], objects: Objects, chosen: Chosen, *, wide: bool) -> None:
    printer = console()
    coloured = printer.color_system is not None and not printer.no_color
    nodes, pods = len(objects.nodes), len(objects.pods)
    for line, style in table.report(found, chosen.profile, nodes, pods, wide=wide):
        write(f"{click.style(line, **style) if coloured and style else line}\n")


def _stream(steps: Iterator[Step]) -> int:
    """One Decision after the other, each written as soon as it is made."""
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
        return "".join(f"{each.pod.key} {each.node or table.NOWHERE}\n" for each in found)
    return "---\n".join(to_yaml(manifest) for manifest in table.manifests(found, objects))


def check_recordable(chosen: Chosen) -> None:
    """Refuse what the format of recordings has no room for."""
    if chosen.profile.ties != ("round-robin" if chosen.is_classic else "first"):
        what = f"a recording cannot say --ties {chosen.profile.ties}"
        raise InputError(what, hint="leave it out, or choose another output")
    if chosen.options.rules:
        raise InputError("a recording cannot hold rules", hint="choose another output")


def _record(objects: Objects, waiting: list[Pod], chosen: Chosen) -> int:
    """One scenario; its Node objects are in the order in which pods look at the nodes."""
    probe = Simulation(chosen.profile)
    probe.load(objects)
    columns = probe.cache.columns
    order = {columns.names[row]: place for place, row in enumerate(probe.cache.order().tolist())}
    seen = seen_by(objects, chosen.schedulers, without=waiting)
    seen.nodes = sorted(objects.nodes, key=lambda node: order[node.name])
    if chosen.profile.percentage_of_nodes_to_score < 100 <= len(seen.nodes):
        note("in a recording every pod looks at the nodes from the first one on")
    simulation = recorded_simulation(chosen.profile, chosen.others, classic=chosen.is_classic)
    simulation.load(seen)
    steps = list(tracked(simulation.run(waiting, recording=True), len(waiting), "scheduling"))
    if chosen.is_classic:
        made = scenario(seen, waiting, steps, chosen.profile)
        made["options"] = chosen.recorded_options()
        named = {"provider": chosen.provider}
        made |= {"policy": chosen.policy} if chosen.policy is not None else named
    else:
        made = plugin_recording.scenario(seen, waiting, steps)
        made |= {"config": chosen.config} if chosen.config is not None else {}
    write(to_json_line(made))
    return _code(table.placements(steps))
