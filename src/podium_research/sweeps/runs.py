"""One run of a sweep: files unpacked, profile made, pods placed, figures taken.

`evaluate_rules` gives the figures of a file with rules to programs that search for better ones.
"""

from __future__ import annotations

import atexit
import random
import secrets
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter, OrderedDict
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from podium.engine.state.accounting import amount
from podium.errors import ConfigError, PodiumError
from podium.library.profile_source import ProfileSource
from podium.library.simulations import open_simulation
from podium.profiles.user_rules.loading import load_file
from podium_research.sweeps.cells import CellOutcome
from podium_research.traces.reading import read_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from podium.cluster.simulation import Step
    from podium.library.profile_choice import ChosenProfiles
    from podium.objects.kinds.pod import Pod
    from podium_research.sweeps.cells import Cell, SentFile
    from podium_research.traces.trace import Trace


class Measure(Protocol):
    """Makes the figures of a run from its steps; made anew for each run."""

    def step(self, step: Step) -> None:
        """Take note of a decision that was just carried out."""

    def figures(self) -> Mapping[str, float]:
        """Name -> number, the same names in every run."""


class PlacementFigures:
    """How many pods were placed, how many evicted, and how full the cluster is in the end."""

    def __init__(self, trace: Trace) -> None:
        self._room: Counter[str] = Counter()
        for each in trace.nodes:
            for name, quantity in (each.node.status.allocatable or {}).items():
                self._room[name] += amount(name, quantity)
        self._requested: Counter[str] = Counter()
        self._pods: dict[str, Pod] = {}
        self._tried: set[str] = set()
        self._evicted = 0
        for pod in trace.others.pods:
            self._add(pod, 1)

    def _add(self, pod: Pod, sign: int) -> None:
        if sign > 0:
            self._pods[pod.uid] = pod
        for container in pod.spec.containers or ():
            requests = (container.resources.requests if container.resources else None) or {}
            for name, quantity in requests.items():
                self._requested[name] += sign * amount(name, quantity)

    def step(self, step: Step) -> None:
        """Count a pod that was placed, and its victims."""
        self._tried.add(step.pod.uid)
        if step.decision.node is not None:
            self._add(step.pod, 1)
        preemption = step.decision.preemption
        if preemption is not None and preemption.node is not None:
            for uid in preemption.candidates[preemption.node].uids:
                if (victim := self._pods.pop(uid, None)) is not None:
                    self._add(victim, -1)
                    self._evicted += 1

    def figures(self) -> dict[str, float]:
        """Pods that arrived and that were placed, and the share of each resource requested."""
        placed = sum(uid in self._pods for uid in self._tried)
        used = {
            f"{name}_percent": round(100 * self._requested[name] / room, 4)
            for name, room in sorted(self._room.items())
            if room and name != "pods"
        }
        return {"pods": len(self._tried), "placed": placed, "evicted": self._evicted, **used}


MAX_KEPT_TRACES = 2
_KEPT_TRACES: OrderedDict[tuple[str, ...], Trace] = OrderedDict()
#: Rules take as long as they take.
NO_LIMIT = float("inf")
#: Runs of one process come one after the other: modules of users are shared by all of them.
_ONE_AT_A_TIME = threading.Lock()


def run_cell(cell: Cell) -> CellOutcome:
    """Run a cell; whatever is wrong with its input is in the outcome."""
    begun = time.perf_counter()
    figures: dict[str, int | float] = {}
    error = ""
    with _ONE_AT_A_TIME:
        try:
            figures = _checked(_run(cell))
        except (PodiumError, _RuleFailedError) as wrong:
            error = str(wrong)
        except Exception as wrong:  # noqa: BLE001 - functions of users may raise anything
            error = f"{type(wrong).__name__}: {' '.join(str(wrong).split())}"
    return CellOutcome(
        cell.digest,
        cell.workload.name,
        cell.configuration.name,
        cell.seed,
        figures,
        time.perf_counter() - begun,
        error,
    )


def _run(cell: Cell) -> Mapping[str, float]:
    folder = unpacked(tuple(cell.python_files))
    trace = _trace(cell)
    arguments = {}
    if cell.configuration.arguments:
        arguments = _function(cell, cell.configuration.arguments, folder)(trace)
    if cell.arrivals:
        trace = _function(cell, cell.arrivals, folder)(trace, cell.seed)
    chosen = _profiles(cell, folder, arguments)
    made: Callable[[Trace], Measure] | None = None
    if cell.measure:
        made = _function(cell, cell.measure, folder)
    if cell.in_time:
        from podium_research.sweeps.in_time import run_in_time  # noqa: PLC0415  brings the API server

        return run_in_time(trace, chosen, cell.seed, made(trace) if made else None)
    measure = (made or PlacementFigures)(trace)
    place_all(trace, chosen, measure)
    return measure.figures()


def place_all(trace: Trace, chosen: ChosenProfiles, measure: Measure) -> None:
    """Place the pods of a trace one after the other, in the order of the trace."""
    with open_simulation(chosen.profiles) as simulation:
        objects = trace.others.copied()
        objects.nodes = [each.node for each in trace.nodes]
        simulation.load(objects)
        for step in simulation.run([each.pod for each in trace.pods]):
            measure.step(step)


def _profiles(
    cell: Cell, folder: Path, arguments: Mapping[str, Mapping[str, Any]]
) -> ChosenProfiles:
    wanted, files = cell.configuration, cell.files
    texts = {
        name: files[name].content().decode() for name in (wanted.config, wanted.policy) if name
    }
    rules = (str(folder / files[r].place) if r in files else r for r in wanted.rules)
    return ProfileSource(
        config=wanted.config,
        policy=wanted.policy,
        provider=wanted.provider,
        profile=wanted.profile,
        rules=tuple(rules),
        rule_arguments=arguments,
        rule_seconds=NO_LIMIT,
        ties=f"random:{cell.seed}" if wanted.ties == "random" else wanted.ties,
        no_preemption=wanted.no_preemption,
        percentage_of_nodes_to_score=wanted.percentage_of_nodes_to_score,
        feature_gates=(wanted.feature_gates,),
        environment={},
        texts=texts,
        notify=_refuse,
    ).choose()


def _refuse(sentence: str) -> None:
    """End the run: with a rule that fails, its figures would mean nothing."""
    raise _RuleFailedError(sentence)


class _RuleFailedError(BaseException):
    """A failure of a rule on its way through the engine, which catches every `Exception`."""


def _checked(figures: Mapping[str, int | float]) -> dict[str, int | float]:
    for name, number in figures.items():
        if not isinstance(number, int | float) or isinstance(number, bool):
            raise ConfigError(f"figure {name!r} is {number!r}, expected a number")
    return dict(figures)


def _function(cell: Cell, hook: str, folder: Path) -> Callable[..., Any]:
    """The function that `FILE.py:name` stands for."""
    file, _, name = hook.partition(":")
    module = load_file(str(folder / cell.files[file].place))
    found = vars(module).get(name)
    if not callable(found):
        raise ConfigError(f"{file} has no function {name}")
    function: Callable[..., Any] = found
    return function


def _trace(cell: Cell) -> Trace:
    """The trace of the workload; the last ones are kept, as many cells have the same."""
    files = [cell.files[name] for name in cell.data]
    key = (cell.workload.source, cell.workload.name, *(file.digest for file in files))
    found = _KEPT_TRACES.get(key)
    if found is None:
        while len(_KEPT_TRACES) >= MAX_KEPT_TRACES:
            _KEPT_TRACES.popitem(last=False)
        contents = [(file.where, file.content()) for file in files]
        found = _KEPT_TRACES[key] = read_trace(cell.workload.source, cell.workload.name, contents)
    return found


# Python files of users ------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _own_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="podium-sweep-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@lru_cache(maxsize=1)
def unpacked(files: tuple[SentFile, ...]) -> Path:
    """The folder of this process with these files, and no modules of other ones."""
    folder = _own_folder() / secrets.token_hex(8)
    for file in files:
        path = folder / file.place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.content())
    _forget_modules(_own_folder())
    return folder


def _forget_modules(folder: Path) -> None:
    """Let modules be imported again that came from other files of the same name."""
    for name, module in list(sys.modules.items()):
        file = vars(module).get("__file__") if module is not None else None
        if isinstance(file, str) and Path(file).is_relative_to(folder):
            del sys.modules[name]


def evaluate_rules(
    path: str,
    trace: Trace,
    *,
    config: str | None = None,
    seeds: Sequence[int] = (0,),
) -> dict[str, float]:
    """Place the pods of *trace* with the rules in the file *path*: the mean of each figure.

    *config* is a KubeSchedulerConfiguration that says which other plugins take part. Each seed is
    another order of arrival; seed 0 is the order of the trace. A rule that fails raises
    `podium.ConfigError` or `podium.InputError` with its place.
    """
    chosen = ProfileSource(rules=(path,), config=config).choose()
    sums: dict[str, float] = {}
    for seed in seeds:
        ordered = _shuffled(trace, seed)
        measure = PlacementFigures(ordered)
        place_all(ordered, chosen, measure)
        _add_figures(sums, measure.figures())
    return {name: total / len(seeds) for name, total in sums.items()}


def _shuffled(trace: Trace, seed: int) -> Trace:
    if not seed:
        return trace
    pods = list(trace.pods)
    random.Random(seed).shuffle(pods)  # noqa: S311 - a simulation, not a secret
    return trace.with_order(trace.nodes, pods)


def _add_figures(sums: dict[str, float], figures: Mapping[str, float]) -> None:
    for name, number in figures.items():
        sums[name] = sums.get(name, 0.0) + number
