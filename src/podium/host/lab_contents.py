"""The objects that a lab starts with: those of files, of a snapshot, empty nodes, or the demo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from podium.lab.contents.demo import CHECKOUT_SECONDS, checkout, demo
from podium.lab.contents.documents import Document, documents
from podium.lab.contents.generated_nodes import generate_nodes
from podium.lab.contents.loader import load
from podium.library.reading import contents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from podium.lab.contents.loader import Progress
    from podium.lab.registry.registry import Registry

ZONES = 3


@dataclass(frozen=True, slots=True)
class LabContents:
    """What a lab is filled with; one of the first three, or else the demo."""

    snapshot: str | None = None
    files: tuple[str, ...] = ()
    nodes: int | None = None
    zones: int | None = None


def fill(
    registry: Registry, wanted: LabContents, progress: Progress, note: Callable[[str], None]
) -> list[tuple[float, Sequence[Document]]]:
    """Fill an empty registry; returns what is to be created later, with the seconds until then.

    *progress* iterates over the objects and may show progress; *note* is called with what was
    left out.
    """
    later: list[tuple[float, Sequence[Document]]] = []
    found: Iterable[Document]
    if wanted.snapshot is not None:
        found = _read([wanted.snapshot])
    elif wanted.files:
        found = _read(wanted.files)
    elif wanted.nodes is not None:
        found = generate_nodes(wanted.nodes, wanted.zones or ZONES)
    else:
        found = demo()
        later.append((CHECKOUT_SECONDS, checkout()))
    loaded = load(registry, found, progress)
    for kind, count in sorted(loaded.skipped.items()):
        note(f"{count} of kind {kind} left out: the lab does not keep them")
    return later


def _read(paths: Sequence[str]) -> Iterator[Document]:
    for where, data in contents(paths):
        yield from documents(data, where)
