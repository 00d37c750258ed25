"""What the pages ask of whoever watches a scheduler. Every answer is plain data, ready for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Hashable, Mapping

Data = dict[str, Any]


class Observatory(Protocol):
    """Looks at a scheduler; refusals are `podium.errors.PodiumError`."""

    def cluster(self, cursor: str = "") -> Data:
        """Zones, nodes, loads and pods, or what changed of them since a cursor."""

    def node(self, name: str) -> Data | None:
        """One node with its pods."""

    def find_pods(self, query: str) -> list[Data]:
        """Pods whose `namespace/name` contains the text."""

    def pending(self, query: str = "") -> Data:
        """The pods that wait, with the reason of each."""

    async def decision(self, namespace: str, name: str, attempt: int = 0) -> Data | None:
        """How a pod was decided, at an attempt by its `id` or the last; None: unknown pod."""

    def explain(self, manifest: bytes) -> Data:
        """What would be decided about the pod of a manifest; nothing is created."""

    def profile(self) -> Data:
        """What is decided by, and the text of it."""

    def what_if(self, wish: Mapping[str, Any]) -> AsyncIterator[Data]:
        """How far the comparison with other rules is, and in the end what would change."""

    async def apply(self, wish: Mapping[str, Any]) -> Data:
        """Decide by other rules from now on."""

    def pulse(self) -> Data:
        """The numbers that change all the time."""

    def beats(self) -> Hashable:
        """Differs whenever anything worth telling happened."""

    def history(self) -> list[list[int]]:
        """Second, decisions in it, pods waiting at its end."""
