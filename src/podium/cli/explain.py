"""`podium explain`: the whole reasoning for one pod."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from podium.cli.console import console, note, notes, print_parts, write, write_data
from podium.cli.extender_simulation import simulated
from podium.cli.flags import FlagsCommand, ProfileFlags, files_argument, output_flag, profile_flags
from podium.engine.state.accounting import NATIVE
from podium.library.lookup import check_node, pod_named
from podium.library.pending import seen_by
from podium.library.reading import read
from podium.objects.reading.validate import notes as input_notes
from podium.render.decision.explanation import Asked, Explanation, Room, ask

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.cluster.cache.columns import Columns
    from podium.cluster.simulation import Simulation
    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects

PODS = "pods"


@click.command(cls=FlagsCommand)
@click.argument("pod", metavar="[NAMESPACE/]POD")
@files_argument
@click.option("--node", metavar="NAME", help="Answer: why not this node?")
@click.option("-v", "--verbose", is_flag=True, help="Add how long each step took.")
@output_flag("table", "json", "yaml", "html")
@profile_flags
def explain(
    *,
    pod: str,
    files: tuple[str, ...],
    node: str | None,
    verbose: bool,
    output: str,
    flags: ProfileFlags,
) -> int:
    """Show for one POD which nodes were turned down and why, the scores, and what decided.

    A running pod is taken off its node first, and what is decided is shown against where it
    runs. Other pending pods are not scheduled before it. With -o html the answer is one
    self-contained page with the heat map of scores.

    Exit code: 0 it has a place, 1 it has none, 2 bad input.
    """
    clock = Timer()
    chosen = flags.choose()
    with clock.step("read and check the input"):
        objects = read(files)
    if objects.snapshot is not None:
        chosen = flags.choose(objects.snapshot)
    notes((*input_notes(objects), *chosen.profile.notes))
    wanted = pod_named(objects, pod)
    if node is not None:
        check_node(objects, node)
    profile = chosen.profile_of(wanted)
    _tell(wanted, profile)
    with simulated(profile) as simulation:
        found = _decide(objects, wanted, simulation, node, clock)
    found.timings = clock.taken if verbose else []
    _show(found, output)
    return int(found.decision.node is None)


class Timer:
    """Takes the time of steps."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, float]] = []

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time what happens inside."""
        begun = time.perf_counter()
        yield
        self.taken.append((name, time.perf_counter() - begun))


def _tell(pod: Pod, profile: Profile) -> None:
    """Why it is odd to decide about this pod, if it is."""
    if pod.finished:
        note(f"{pod.key} has finished ({pod.status.phase}); decided as if it were new")
    elif pod.terminating:
        note(f"{pod.key} is being deleted; decided as if it were not")
    if pod.spec.scheduler_name != profile.scheduler_name:
        note(f"{pod.key} belongs to the scheduler {pod.spec.scheduler_name}")


def _decide(
    objects: Objects, pod: Pod, simulation: Simulation, node: str | None, clock: Timer
) -> Explanation:
    profile = simulation.profile
    actual = pod.spec.node_name or None
    running = actual is not None and not pod.finished
    with clock.step("load the cluster"):
        without = () if running else (pod,)
        simulation.load(seen_by(objects, {profile.scheduler_name}, without=without))
        if running:
            simulation.remove(pod.uid)
    waiting = replace(pod, spec=replace(pod.spec, node_name=""))
    with clock.step("decide"):
        decision = simulation.attempt(waiting, recording=True)
    asked = ask(decision, node) if node is not None else None
    if asked is not None:
        asked.room = list(_room(simulation.cache.columns, waiting, asked))
    return Explanation(
        decision,
        pods=len(objects.pods),
        ties=profile.ties,
        max_score=profile.max_score,
        actual=actual,
        never_preempts=pod.spec.preemption_policy == "Never",
        asked=asked,
    )


def _room(columns: Columns, pod: Pod, asked: Asked) -> Iterator[Room]:
    """What the pod wants and what the node has, for every resource that the pod names."""
    row, kind = columns.row_of[asked.node], columns.incoming(pod).cls
    named = {index: resource for resource, index in columns.resources.items()}
    wanted = dict(zip(range(len(NATIVE)), kind.wanted, strict=True)) | kind.scalars
    for column, amount in wanted.items():
        if amount or named[column] in NATIVE[:2]:
            used = columns.requested[column].item(row)
            there = columns.allocatable[column].item(row)
            yield Room(named[column], amount, used, there)
    yield Room(PODS, 1, columns.pod_count.item(row), columns.allowed_pods.item(row))


def _show(found: Explanation, output: str) -> None:
    if output == "html":
        from podium.render.decision.page import page  # noqa: PLC0415  only for pages

        write(page(found))
    elif output == "table":
        from podium.render.decision.explain_table import explained  # noqa: PLC0415  brings rich

        printer = console()
        print_parts(explained(found, printer.width), printer)
    else:
        write_data(found.as_json(), output)
