"""Extenders of a profile are asked over HTTP while files are decided about."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from podium.cli.console import note
from podium.cluster.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod


class Seen:
    """The objects of a simulation, for questions that only name them."""

    def __init__(self) -> None:
        self.simulation: Simulation | None = None

    def node(self, name: str) -> Node | None:
        """A node."""
        assert self.simulation is not None
        columns = self.simulation.cache.columns
        row = columns.row_of.get(name)
        return None if row is None else columns.nodes[row]

    def pod(self, uid: str) -> Pod | None:
        """A placed pod."""
        assert self.simulation is not None
        return self.simulation.placed(uid)


def _once() -> Callable[[str], None]:
    """Tells each thing once."""
    told: set[str] = set()

    def tell(sentence: str) -> None:
        if sentence not in told:
            told.add(sentence)
            note(sentence)

    return tell


@contextmanager
def simulated(profile: Profile, others: Sequence[Profile] = ()) -> Iterator[Simulation]:
    """A simulation that asks the profile's extenders, if it has any."""
    if not any(each.extenders for each in (profile, *others)):
        yield Simulation(profile, others=others)
        return
    from podium.extender.client import blocking_client  # noqa: PLC0415  brings the HTTP client

    seen = Seen()
    with blocking_client(seen, _once()) as answer:
        seen.simulation = Simulation(profile, others=others, answer=answer)
        yield seen.simulation
