"""The objects that a lab starts with: those of files, of a snapshot, empty nodes, or the demo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from podium.lab.contents.demo import (
    CHECKOUT_SECONDS,
    DEMO_DEVICES,
    SHOP,
    Demo,
    checkout,
    generate_nodes,
)
from podium.lab.contents.documents import Document, documents
from podium.lab.contents.loader import load
from podium.lab.controllers.device_driver import has_expressions
from podium.library.reading import contents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from podium.lab.contents.loader import Progress
    from podium.lab.controllers.device_driver import DeviceSet
    from podium.lab.registry.registry import Registry

ZONES = 3


@dataclass(frozen=True, slots=True)
class LabContents:
    """What a lab is filled with; one of the first three, or else the demo."""

    snapshot: str | None = None
    files: tuple[str, ...] = ()
    nodes: int | None = None
    zones: int | None = None
    #: The devices that the driver publishes.
    devices: tuple[DeviceSet, ...] = ()
    demo: Demo = SHOP


@dataclass(frozen=True, slots=True)
class FilledLab:
    """What a lab that was just filled still needs."""

    #: Objects that are created later, with the seconds until then.
    later: tuple[tuple[float, Sequence[Document]], ...] = ()
    #: The devices that its driver publishes.
    devices: tuple[DeviceSet, ...] = ()


def fill(
    registry: Registry, wanted: LabContents, progress: Progress, note: Callable[[str], None]
) -> FilledLab:
    """Fill an empty registry.

    *progress* iterates over the objects and may show progress; *note* is called with what was
    left out.
    """
    found: Iterable[Document]
    filled = FilledLab(devices=wanted.devices)
    if wanted.snapshot is not None:
        found = _read([wanted.snapshot])
    elif wanted.files:
        found = _read(wanted.files)
    elif wanted.nodes is not None:
        found = generate_nodes(wanted.nodes, wanted.zones or ZONES)
    else:
        found = wanted.demo.documents()
        devices = wanted.devices
        if wanted.demo.claims and has_expressions():
            found += wanted.demo.claim_documents()
            devices = (DEMO_DEVICES, *devices)
        elif wanted.demo.claims:
            note("the GPU corner is left out: pip install 'podium[devices]' adds it")
        filled = FilledLab(((CHECKOUT_SECONDS, checkout()),), devices)
    loaded = load(registry, found, progress)
    for kind, count in sorted(loaded.skipped.items()):
        note(f"{count} of kind {kind} left out: the lab does not keep them")
    return filled


def _read(paths: Sequence[str]) -> Iterator[Document]:
    for where, data in contents(paths):
        yield from documents(data, where)
