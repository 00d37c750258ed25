"""Simulations whose extenders are asked over HTTP."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from podium.cluster.simulation import Simulation
from podium.library.notices import Notify, log_warning, once

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from podium.engine.framework.profile import Profile
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod


class SimulatedObjects:
    """Looks up the nodes and pods of a simulation that an extender has to be told of."""

    def __init__(self) -> None:
        self.simulation: Simulation | None = None

    def node(self, name: str) -> Node | None:
        """The node of this name."""
        assert self.simulation is not None
        columns = self.simulation.cache.columns
        row = columns.row_of.get(name)
        return None if row is None else columns.nodes[row]

    def pod(self, uid: str) -> Pod | None:
        """The placed pod with this uid."""
        assert self.simulation is not None
        return self.simulation.placed(uid)


@contextmanager
def simulation_of(
    profile: Profile, others: Sequence[Profile] = (), *, notify: Notify = log_warning
) -> Iterator[Simulation]:
    """A simulation; where its profiles have extenders, connections are open within the `with`.

    *notify* is called once with each failure of an extender that is ignored.
    """
    if not any(each.extenders for each in (profile, *others)):
        yield Simulation(profile, others=others)
        return
    from podium.extender.client import blocking_client  # noqa: PLC0415  brings the HTTP client

    objects = SimulatedObjects()
    with blocking_client(objects, once(notify)) as answer:
        objects.simulation = Simulation(profile, others=others, answer=answer)
        yield objects.simulation
