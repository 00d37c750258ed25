"""The pending pods placed one after the other, extenders asked over HTTP."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from podium.cluster.decider import without_extenders
from podium.cluster.simulation import Simulation
from podium.engine.framework.profile import Profile
from podium.library.explained_causes import add_causes, add_rejection_causes
from podium.library.notices import Notify, log_warning, once
from podium.library.pending_pods import pending, seen_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from podium.cluster.simulation import Step
    from podium.cluster.verification import Verification
    from podium.engine.framework.decision import Decision
    from podium.objects.kinds.node import Node
    from podium.objects.kinds.pod import Pod
    from podium.objects.reading.collection import Objects


def simulate(
    objects: Objects,
    profiles: Profile | Sequence[Profile],
    *,
    pods: Sequence[Pod] | None = None,
    recording: bool = False,
    causes: bool = False,
    explain_unplaced: bool = False,
    verification: Verification | None = None,
    notify: Notify = log_warning,
) -> Iterator[Step]:
    """Place the pending pods one after the other; each attempt is yielded when it is made.

    *profiles* is one profile, or all profiles of a configuration: each decides about the pods of
    its scheduler. *pods* are tried in this order; by default it is what `pending` returns.
    *recording* keeps all verdicts and scores in the decisions; *causes* adds what led to them, as
    `explain` does, *explain_unplaced* only to those of pods that get no node. *verification* says
    which decisions are made twice, and gets what came of it. Extenders are asked over HTTP;
    *notify* is called with failures of extenders that are ignored.
    """
    given = as_profiles(profiles)
    schedulers = {each.scheduler_name for each in given}
    by_priority = given[0].by_priority
    waiting = pending(objects, schedulers, by_priority=by_priority) if pods is None else pods
    seen = seen_by(objects, schedulers, without=waiting)

    def steps() -> Iterator[Step]:
        with open_simulation(given, verification=verification, notify=notify) as simulation:
            simulation.load(seen)
            if causes:
                simulation.decided = partial(_add_causes, simulation)
            elif explain_unplaced:
                simulation.decided = _UnplacedCauses(simulation).add
            yield from simulation.run(waiting, recording=recording or causes)

    return steps()


def _add_causes(simulation: Simulation, pod: Pod, decision: Decision) -> None:
    profile = simulation.profile_of(pod)
    add_causes(simulation.cache.columns, pod, profile, decision)


class _UnplacedCauses:
    """Adds the causes to decisions that were made without recording and gave no node.

    Equal pods that are tried in an unchanged cluster share what was found for the first.
    """

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._last: tuple[Any, Decision] | None = None

    def add(self, pod: Pod, decision: Decision) -> None:
        if decision.node is not None or decision.error or decision.held is not None:
            return
        simulation = self._simulation
        if decision.causes or decision.extender_failed:
            return
        columns, profile = simulation.cache.columns, simulation.profile_of(pod)
        journal = columns.journal
        state = (
            columns.pods.incoming(pod).cls,
            profile,
            journal.epoch,
            journal.changes,
            decision.message,
        )
        if self._last is None or self._last[0] != state:
            again = simulation.decider.look(pod, profile)
            add_rejection_causes(columns, pod, without_extenders(profile), again)
            self._last = state, again
        found = self._last[1]
        if found.histogram == decision.histogram:
            decision.examined, decision.codes = found.examined, found.codes
            decision.causes = found.causes


def as_profiles(given: Profile | Sequence[Profile]) -> tuple[Profile, ...]:
    """One profile, or all profiles of a configuration, in its order."""
    return (given,) if isinstance(given, Profile) else tuple(given)


@contextmanager
def open_simulation(
    profiles: Profile | Sequence[Profile],
    *,
    verification: Verification | None = None,
    notify: Notify = log_warning,
) -> Iterator[Simulation]:
    """An empty simulation that asks the extenders of its profiles, to be used in a `with`.

    The first of the *profiles* decides about pods of unknown schedulers. Leaving the `with` closes
    connections. *verification* says which decisions are made twice. *notify* is called once with
    each failure of an extender that is ignored.
    """
    first, *others = as_profiles(profiles)
    if not any(each.extenders for each in (first, *others)):
        yield Simulation(first, others=others, verification=verification)
        return
    objects = SimulatedObjects()
    with _extenders(objects, once(notify)) as answer:
        objects.simulation = Simulation(
            first, others=others, verification=verification, answer=answer
        )
        yield objects.simulation


class SimulatedObjects:
    """Looks up the nodes and pods of a simulation that extenders are sent whole."""

    def __init__(self) -> None:
        self.simulation: Simulation | None = None

    def node(self, name: str) -> Node | None:
        """The node of this name."""
        assert self.simulation is not None
        columns = self.simulation.cache.columns
        row = columns.nodes.row_of.get(name)
        return None if row is None else columns.nodes.objects[row]

    def pod(self, uid: str) -> Pod | None:
        """The placed pod with this uid."""
        assert self.simulation is not None
        return self.simulation.placed(uid)


@contextmanager
def _extenders(objects: SimulatedObjects, notify: Notify) -> Iterator[Callable[[Any], Any]]:
    """Ask extenders from a thread: the caller's may have an event loop of its own running."""
    from podium.extender.client import blocking_client  # noqa: PLC0415  brings the HTTP client

    client = blocking_client(objects, notify)
    with ThreadPoolExecutor(max_workers=1) as thread:
        answer = thread.submit(client.__enter__).result()
        try:
            yield lambda question: thread.submit(answer, question).result()
        finally:
            thread.submit(client.__exit__, None, None, None).result()
