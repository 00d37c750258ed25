"""The cells of a sweep: one run each, with everything that a worker needs to make it.

A cell carries its files, so that workers on other machines need nothing but Podium. Its digest is
made from all that decides about its outcome; an outcome with the same digest need not be computed
again.
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

import podium
from podium.errors import InputError
from podium.library.files import unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from podium_research.sweeps.experiment import Configuration, Experiment, SweepWorkload


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file as it is sent to a worker; files of one folder stay together."""

    #: Where it is on the machine that starts the sweep; for messages.
    where: str
    #: Where a worker puts it, below its own folder.
    place: str
    digest: str
    packed: bytes = field(repr=False)

    def content(self) -> bytes:
        """What is in it."""
        return zlib.decompress(self.packed)


@dataclass(frozen=True, slots=True)
class Cell:
    """One run: a workload, a configuration and a seed."""

    workload: SweepWorkload
    configuration: Configuration
    seed: int
    #: `FILE.py:name` of the functions of the user, empty for none.
    arrivals: str
    measure: str
    in_time: bool
    #: The names of the files of its workload.
    data: list[str]
    #: The name of a file in the experiment -> the file.
    files: dict[str, SentFile]
    digest: str

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"{self.workload.name}, {self.configuration.name}, seed {self.seed}"

    @property
    def python_files(self) -> list[SentFile]:
        """The Python files that it needs: rules, functions, and their neighbours."""
        return [file for file in self.files.values() if file.place.endswith(".py")]


@dataclass(frozen=True, slots=True)
class CellOutcome:
    """What came out of a cell."""

    digest: str
    workload: str
    configuration: str
    seed: int
    #: Name of a figure -> number, in the order of the measure.
    figures: dict[str, int | float]
    seconds: float
    #: Why there are no figures; empty if there are.
    error: str = ""


class FileSender:
    """Reads files once, and packs them for workers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[Path, SentFile] = {}

    def sent(self, name: str) -> SentFile:
        """The file of this name, which starts from the folder of the experiment."""
        path = (self._folder / name).resolve()
        known = self._known.get(path)
        if known is None:
            try:
                content = path.read_bytes()
            except OSError as error:
                raise unreadable(name, error) from None
            beside = hashlib.sha256(str(path.parent).encode()).hexdigest()[:12]
            known = self._known[path] = SentFile(
                str(path),
                f"{beside}/{path.name}",
                hashlib.sha256(content).hexdigest(),
                zlib.compress(content, 6),
            )
        return known

    def files_in(self, names: Iterable[str]) -> Iterator[str]:
        """The files of these names; of a folder (a history), the files in it."""
        for name in names:
            path = self._folder / name
            if path.is_dir():
                yield from (str(each) for each in sorted(path.iterdir()) if each.is_file())
            else:
                yield name

    def neighbours(self, names: Iterable[str]) -> Iterator[str]:
        """The Python files in the folders of these, themselves included."""
        folders = {(self._folder / name).resolve().parent for name in names}
        for folder in sorted(folders):
            yield from map(str, sorted(folder.glob("*.py")))


def cells_of(experiment: Experiment, folder: Path) -> list[Cell]:
    """All cells of an experiment, in the order of its lists."""
    sender = FileSender(folder)
    hooks = [_file_of(hook) for hook in (experiment.arrivals, experiment.measure) if hook]
    found = []
    for workload in experiment.all_workloads:
        data = list(sender.files_in(workload.files()))
        for configuration in experiment.configurations:
            rules = [rule for rule in configuration.rules if rule.endswith(".py")]
            texts = [each for each in (configuration.config, configuration.policy) if each]
            code = [*hooks, *rules]
            if configuration.arguments:
                code.append(_file_of(configuration.arguments))
            names = dict.fromkeys(
                [*data, *experiment.files, *texts, *code, *sender.neighbours(code)]
            )
            files = {name: sender.sent(name) for name in names}
            found += [
                _cell(experiment, workload, configuration, seed, data=data, files=files)
                for seed in experiment.all_seeds
            ]
    return found


def _file_of(hook: str) -> str:
    """The file of `FILE.py:function`."""
    file, _, function = hook.partition(":")
    if not function:
        raise InputError(f"{hook!r} names no function", hint="write FILE.py:function")
    return file


def _cell(
    experiment: Experiment,
    workload: SweepWorkload,
    configuration: Configuration,
    seed: int,
    *,
    data: list[str],
    files: dict[str, SentFile],
) -> Cell:
    decides: dict[str, Any] = {
        "podium": podium.__version__,
        "workload": workload,
        "configuration": configuration,
        "seed": seed,
        "functions": (experiment.arrivals, experiment.measure),
        "inTime": experiment.in_time,
        "files": sorted((Path(file.where).name, file.digest) for file in files.values()),
    }
    return Cell(
        workload,
        configuration,
        seed,
        experiment.arrivals,
        experiment.measure,
        experiment.in_time,
        data,
        files,
        hashlib.sha256(msgspec.json.encode(decides, order="sorted")).hexdigest()[:32],
    )
