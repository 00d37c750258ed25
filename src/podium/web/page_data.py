"""What the pages read of a scheduler: plain data, and events with the summary."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Hashable, Mapping

Data = dict[str, Any]


class PageSource(Protocol):
    """A scheduler as the pages see it; invalid input raises a `podium.errors.PodiumError`."""

    async def cluster(self, cursor: str = "") -> Data:
        """Zones, nodes, loads and pods, or what changed since a cursor."""

    def node(self, name: str) -> Data | None:
        """One node with its pods."""

    def find_pods(self, query: str) -> list[Data]:
        """Pods whose `namespace/name` contains the text."""

    def pending(self, query: str = "", namespace: str = "", labels: str = "") -> Data:
        """The pending pods, with the reason of each."""

    def group(self, namespace: str, name: str) -> Data | None:
        """A pod group with its pods and its last cycle; None: unknown group."""

    def timeline(self, query: str, namespace: str, labels: str, what: str) -> Data:
        """What happened to pods, the newest first."""

    async def past_chart(self) -> Data:
        """Queue length, decisions and evictions of the recorded time; `recorded` says if any."""

    async def cluster_at(self, at: float) -> Data:
        """The map of the cluster at a moment of the recorded time."""

    async def node_at(self, at: float, name: str) -> Data | None:
        """One node with its pods at a moment of the recorded time."""

    async def timeline_at(
        self, at: float, query: str, namespace: str, labels: str, what: str
    ) -> Data:
        """What happened to pods up to a moment of the recorded time, the newest first."""

    async def decision_at(self, at: float, namespace: str, name: str) -> Data | None:
        """The last decision about a pod up to a moment; None if none is recorded."""

    async def decision(self, namespace: str, name: str, attempt: int = 0) -> Data | None:
        """The decision about a pod, at an attempt by its `id` or the last; None: unknown pod."""

    async def fixes(self, namespace: str, name: str) -> Data | None:
        """The smallest changes that would give a pending pod a node; None: it is not pending."""

    async def try_fix(self, namespace: str, name: str, request: Mapping[str, Any]) -> Data | None:
        """The decision about a pending pod after the edits of a fix; nothing is changed."""

    async def explain(self, manifest: bytes) -> Data:
        """The decision about the pod of a manifest as of now; nothing is created."""

    def profile(self) -> Data:
        """The profiles the scheduler decides by, and their text."""

    def what_if(self, request: Mapping[str, Any]) -> AsyncIterator[Data]:
        """Compare with other profiles: the progress, and at the end the changed placements."""

    async def apply(self, request: Mapping[str, Any]) -> Data:
        """Make the scheduler decide by other profiles from now on."""

    async def plan(self, request: Mapping[str, Any]) -> Data:
        """What follows from changes, which are made to a copy of the cluster."""

    def compare(self, request: Mapping[str, Any]) -> AsyncIterator[Data]:
        """Compare with another configuration: the progress, and at the end what differs."""

    async def capacity(self, request: Mapping[str, Any]) -> Data:
        """How many more pods of a manifest fit, where, and what runs out."""

    def summary(self) -> Data:
        """The numbers that every page shows."""

    def revision(self) -> Hashable:
        """Changes whenever the summary may have changed."""

    def history(self) -> list[list[int]]:
        """Second, decisions in it, pending pods at its end."""


#: Seconds between two looks at the revision; changes in between are sent together.
INTERVAL: Final = 0.2
#: Seconds after which an event is sent even if nothing changed.
LONGEST_SILENCE: Final = 1.0


async def stream(page_data: PageSource) -> AsyncIterator[bytes]:
    """Events named `pulse` with the summary; the first one is sent at once."""
    yield b"retry: 2000\n\n"
    sent: object = None
    silence = 0.0
    while True:
        revision = page_data.revision()
        if revision != sent or silence >= LONGEST_SILENCE:
            sent, silence = revision, 0.0
            yield b"event: pulse\ndata: " + msgspec.json.encode(page_data.summary()) + b"\n\n"
        await asyncio.sleep(INTERVAL)
        silence += INTERVAL
