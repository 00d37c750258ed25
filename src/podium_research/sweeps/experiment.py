"""The file of an experiment: which workloads are run by which configurations with which seeds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from podium.errors import InputError
from podium.library.files import text_from
from podium.objects.reading.yaml_text import documents

if TYPE_CHECKING:
    from collections.abc import Iterable

API_VERSION, KIND = "podium/v1", "Experiment"
#: The fields of a workload that name its files, one of which is given.
SOURCES = ("openb", "csv", "simkube", "history", "manifests")
#: The place of a workload's name in the names of its files.
NAME = "{name}"


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A part of the file."""


class NodesAndPods(_Part, frozen=True):
    """Two CSV files."""

    nodes: str
    pods: str

    def named(self, name: str) -> NodesAndPods:
        """The files of the workload of this name."""
        return NodesAndPods(
            nodes=self.nodes.replace(NAME, name), pods=self.pods.replace(NAME, name)
        )


class SweepWorkload(_Part, frozen=True):
    """Nodes, and pods that arrive."""

    name: str = ""
    #: Several workloads whose files differ by `{name}`.
    names: list[str] = []
    openb: NodesAndPods | None = None
    csv: NodesAndPods | None = None
    #: Nodes as in `csv`; the pods are a trace of SimKube.
    simkube: NodesAndPods | None = None
    history: str | None = None
    manifests: list[str] | None = None

    def _sources(self) -> dict[str, NodesAndPods | str | list[str] | None]:
        return {
            "openb": self.openb,
            "csv": self.csv,
            "simkube": self.simkube,
            "history": self.history,
            "manifests": self.manifests,
        }

    @property
    def source(self) -> str:
        """Which of the sources is given."""
        given = [name for name, files in self._sources().items() if files is not None]
        if len(given) != 1:
            what = f"has {' and '.join(given)}" if given else "has no source"
            raise InputError(what, hint=f"a workload has one of {', '.join(SOURCES)}")
        return given[0]

    def files(self) -> list[str]:
        """The files of its source."""
        found = self._sources()[self.source]
        if isinstance(found, NodesAndPods):
            return [found.nodes, found.pods]
        return [found] if isinstance(found, str) else list(found or ())

    def named(self, name: str) -> SweepWorkload:
        """The workload under this name, with the name in the names of its files."""
        return SweepWorkload(
            name=name,
            openb=self.openb and self.openb.named(name),
            csv=self.csv and self.csv.named(name),
            simkube=self.simkube and self.simkube.named(name),
            history=self.history and self.history.replace(NAME, name),
            manifests=self.manifests and [each.replace(NAME, name) for each in self.manifests],
        )


class Configuration(_Part, frozen=True):
    """A profile, by the names that the flags of commands have, and rules of users."""

    name: str
    config: str | None = None
    policy: str | None = None
    provider: str | None = None
    profile: str | None = None
    rules: list[str] = []
    #: `FILE.py:function`: (trace as it was read) -> name of a rule -> its arguments.
    arguments: str = ""
    #: `first`, `round-robin`, or `random`: with the seed of the run.
    ties: str | None = None
    no_preemption: bool = False
    percentage_of_nodes_to_score: int | None = None
    feature_gates: dict[str, bool] = {}


class SeedRange(_Part, frozen=True):
    """Seeds from one number to another, both included."""

    first: int = msgspec.field(name="from")
    last: int = msgspec.field(name="to")


class Experiment(_Part, frozen=True):
    """What is swept, and by which functions of the user arrivals and figures are made."""

    api_version: str
    kind: str
    name: str
    workloads: list[SweepWorkload]
    configurations: list[Configuration]
    seeds: list[int] | SeedRange = msgspec.field(default_factory=lambda: [0])
    #: `FILE.py:function`: (trace, seed) -> the trace of one run.
    arrivals: str = ""
    #: `FILE.py:Class`: makes the figures of a run from its steps.
    measure: str = ""
    #: Further files that the functions read.
    files: list[str] = []
    #: Whether pods arrive and leave at their times; otherwise they are placed one after the other.
    in_time: bool = False
    #: The figures to print and to draw; all of them if none is named.
    show: list[str] = []

    @property
    def all_seeds(self) -> list[int]:
        """The seeds, one by one."""
        if isinstance(self.seeds, SeedRange):
            return list(range(self.seeds.first, self.seeds.last + 1))
        return self.seeds

    @property
    def all_workloads(self) -> list[SweepWorkload]:
        """The workloads, one by one, with their names in the names of their files."""
        return [each for workload in self.workloads for each in _named(workload)]


def read_experiment(path: str) -> Experiment:
    """The experiment in a file of YAML or JSON, checked."""
    try:
        read = [each.value for each in documents(text_from(path))]
    except InputError as error:
        raise error.located(where=path) from None
    if len(read) != 1 or not isinstance(read[0], dict):
        hint = f"it begins with apiVersion: {API_VERSION} and kind: {KIND}"
        raise InputError("is no experiment", where=path, hint=hint)
    try:
        found = msgspec.convert(read[0], Experiment)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        field = place.rstrip("`").removeprefix(".")
        raise InputError(_small(what), where=path, path=field) from None
    _check(found, path)
    return found


def _check(experiment: Experiment, path: str) -> None:
    if (experiment.api_version, experiment.kind) != (API_VERSION, KIND):
        what = f"is {experiment.api_version} {experiment.kind}"
        raise InputError(what, where=path, hint=f"expected {API_VERSION} {KIND}")
    for field, names in (
        ("workloads", [each.name for each in _located(experiment, path)]),
        ("configurations", [each.name for each in experiment.configurations]),
        ("seeds", [str(seed) for seed in experiment.all_seeds]),
    ):
        _check_names(field, names, path)


def _located(experiment: Experiment, path: str) -> list[SweepWorkload]:
    """The workloads; an error in one of them says where it is."""
    found = []
    for index, workload in enumerate(experiment.workloads):
        try:
            named = _named(workload)
            for each in named:
                each.files()
        except InputError as error:
            place = f"workloads[{index}]"
            raise InputError(error.what, where=path, path=place, hint=error.hint) from None
        found += named
    return found


def _check_names(field: str, names: Iterable[str], path: str) -> None:
    counts = Counter(names)
    if not counts:
        raise InputError("is empty", where=path, path=field, hint="one is the least")
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise InputError(f"has {twice[0]!r} more than once", where=path, path=field)


def _named(workload: SweepWorkload) -> list[SweepWorkload]:
    """The workloads of an entry: one, or one for each of its names."""
    if bool(workload.name) == bool(workload.names):
        what = "has name and names" if workload.name else "has no name"
        raise InputError(what, hint="a workload has a name, or several names")
    return [workload.named(name) for name in workload.names or [workload.name]]


def _small(text: str) -> str:
    return text[:1].lower() + text[1:]


def folder_of(path: str) -> Path:
    """The folder that the names of files in an experiment start from."""
    return Path(path).resolve().parent
