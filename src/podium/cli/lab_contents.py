"""The world that a lab starts with, as the command line asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podium.cli.console import note, tracked
from podium.lab.contents.demo import CHECKOUT_SECONDS, checkout, demo
from podium.lab.contents.documents import Document, documents
from podium.lab.contents.generated_nodes import generate_nodes
from podium.lab.contents.loader import load
from podium.library.reading import contents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from podium.cli.lab import LabFlags
    from podium.lab.registry.registry import Registry


def make_world(registry: Registry, flags: LabFlags) -> list[tuple[float, Sequence[Document]]]:
    """Fill an empty registry; what is to come later, each with the seconds until then."""
    later: list[tuple[float, Sequence[Document]]] = []
    found: Iterable[Document]
    if flags.snapshot is not None:
        found = _read([flags.snapshot])
    elif flags.files:
        found = _read(flags.files)
    elif flags.nodes is not None:
        found = generate_nodes(flags.nodes, flags.zones or 3)
    else:
        found = demo()
        later.append((CHECKOUT_SECONDS, checkout()))
    loaded = load(registry, found, lambda items: tracked(items, len(items), "making the world"))
    for kind, count in sorted(loaded.skipped.items()):
        note(f"{count} of kind {kind} left out: the lab does not keep them")
    return later


def _read(paths: Sequence[str]) -> Iterator[Document]:
    for where, data in contents(paths):
        yield from documents(data, where)
