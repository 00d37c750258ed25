"""The same pods placed by several configurations: what differs, and which one packs better."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from podium.engine.framework.profile import Profile
from podium.errors import InputError
from podium.library.notices import Notify, log_warning
from podium.library.parallel import in_parallel
from podium.library.profile_source import ProfileSource
from podium.library.simulations import as_profiles, open_simulation
from podium.objects.reading.yaml_text import documents
from podium.releases import RELEASES
from podium.what_if.compare.bound import lower_bound
from podium.what_if.compare.compaction import Compaction, PackedWorkload, workload_of
from podium.what_if.compare.results import Comparison, ConfigurationOutcome, NodeUse, ResourceUse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from podium.cluster.simulation import Simulation
    from podium.library.notices import Notify
    from podium.library.profile_choice import ChosenProfiles
    from podium.objects.reading.collection import Objects


_NAMES: Final = frozenset(each.name for each in RELEASES)
_PROVIDERS: Final = frozenset(name for each in RELEASES for name in each.providers)
#: The configurations that have a name: generations and providers.
NAMED: Final = tuple(name for each in RELEASES for name in (each.name, *sorted(each.providers)))
_CONFIG, _POLICY = "KubeSchedulerConfiguration", "Policy"
_SUFFIXES: Final = (".yaml", ".yml", ".json")
#: Configurations are short; a longer file is a dump of a cluster.
_MOST_BYTES: Final = 1 << 20


def configuration(
    argument: str, feature_gates: tuple[Mapping[str, bool], ...], notify: Notify
) -> ChosenProfiles | None:
    """The profiles that an argument names; None if it is a file with objects of a cluster."""
    source = ProfileSource(feature_gates=feature_gates, notify=notify)
    if argument in _NAMES:
        return replace(source, profile=argument).choose()
    if argument in _PROVIDERS:
        return replace(source, provider=argument).choose()
    if argument.endswith(".py"):
        return replace(source, rules=(argument,)).choose()
    kind = _kind(Path(argument))
    if kind == _CONFIG:
        return replace(source, config=argument).choose()
    if kind == _POLICY:
        return replace(source, policy=argument).choose()
    return None


def _kind(path: Path) -> str:
    """The kind of the only document in a file, as far as it is one of a configuration."""
    is_short = path.is_file() and path.stat().st_size <= _MOST_BYTES
    if not is_short or not path.name.endswith(_SUFFIXES):
        return ""
    return configuration_kind(path.read_text("utf-8", errors="replace"))


def configuration_kind(text: str) -> str:
    """`Policy` or `KubeSchedulerConfiguration` if the text is one such document, else nothing.

    A ConfigMap around a Policy counts as one.
    """
    if _CONFIG not in text and _POLICY not in text and "policy.cfg" not in text:
        return ""
    try:
        found = [each.value for each in documents(text)]
    except InputError:
        return ""
    document = found[0] if len(found) == 1 and isinstance(found[0], dict) else {}
    kind = document.get("kind")
    if kind == "ConfigMap" and "policy.cfg" in (document.get("data") or {}):
        return _POLICY
    return kind if kind in {_CONFIG, _POLICY} else ""


#: How many orders of arrival are tried when nothing else is said.
SEEDS: Final = 5
_RESOURCES: Final = ("cpu", "memory")


def compare(
    objects: Objects,
    configurations: Mapping[str, Profile | Sequence[Profile]],
    *,
    seeds: int = SEEDS,
    bound: bool = False,
    workers: int = 1,
    notify: Notify = log_warning,
) -> Comparison:
    """Place the workload of a cluster anew with each configuration, and compare the outcomes.

    *configurations* maps a name to a profile, or to all profiles of a configuration. *seeds* is the
    number of random orders of arrival for compaction; 0 leaves it out. With *bound* a lower bound
    for the number of nodes is proven as well, which needs the extra `podium[solve]`. Bounds and
    compaction run in *workers* processes.
    """
    search = CompareSearch(objects, configurations, seeds=seeds, bound=bound, notify=notify)
    for _ in search.steps(workers=workers):
        pass
    return search.result


class CompareSearch:
    """A comparison that can be interrupted: `result` holds what is known so far."""

    def __init__(
        self,
        objects: Objects,
        configurations: Mapping[str, Profile | Sequence[Profile]],
        *,
        seeds: int = SEEDS,
        bound: bool = False,
        notify: Notify = log_warning,
    ) -> None:
        if not configurations:
            raise InputError("there is nothing to compare", hint="give at least two configurations")
        self._profiles = {name: as_profiles(given) for name, given in configurations.items()}
        self._workload = workload_of(objects)
        self._seeds, self._bound, self._notify = seeds, bound, notify
        outcomes = [
            ConfigurationOutcome(name, each[0].name) for name, each in self._profiles.items()
        ]
        self.result = Comparison(
            len(objects.nodes), len(self._workload.pods), outcomes, interrupted=True
        )

    @property
    def total(self) -> int:
        """How many steps there are."""
        return len(self._profiles) * (1 + self._seeds + self._bound)

    def steps(self, *, workers: int = 1) -> Iterator[str]:
        """Run one configuration after the other, then bounds and compaction; yields what was done.

        Those have no need of each other: they run in *workers* processes.
        """
        for outcome in self.result.outcomes:
            _place(self._workload, self._profiles[outcome.name], outcome, self._notify)
            yield outcome.name
        left_over = [set(outcome.left_over) for outcome in self.result.outcomes]
        hopeless = set.intersection(*left_over)
        evicted = {pod for outcome in self.result.outcomes for pod in outcome.evicted}
        self.result.hopeless = tuple(sorted(hopeless - evicted))
        workload = self._workload.without(self.result.hopeless)
        if self._bound:
            names = [outcome.name for outcome in self.result.outcomes]
            bounds = [partial(lower_bound, workload, self._profiles[name]) for name in names]
            for index, found in in_parallel(bounds, workers):
                outcome = self.result.outcomes[index]
                outcome.bound, outcome.ignored = found.nodes, found.ignored
                yield "lower bound"
        yield from self._compact(workload, workers)
        self.result.interrupted = False

    def _compact(self, workload: PackedWorkload, workers: int) -> Iterator[str]:
        tasks = [
            (outcome, seed)
            for seed in range(1, self._seeds + 1)
            for outcome in self.result.outcomes
        ]
        work: list[Callable[[], int | None]] = [
            partial(_needed, workload, self._profiles[outcome.name], seed, self._notify)
            for outcome, seed in tasks
        ]
        for index, number in in_parallel(work, workers):
            outcome, seed = tasks[index]
            outcome.needed[seed] = number
            outcome.needed = dict(sorted(outcome.needed.items()))
            yield "compaction"


def _needed(
    workload: PackedWorkload, profiles: Sequence[Profile], seed: int, notify: Notify
) -> int | None:
    return Compaction(workload, profiles, seed, notify).needed()


def _place(
    workload: PackedWorkload,
    profiles: Sequence[Profile],
    outcome: ConfigurationOutcome,
    notify: Notify,
) -> None:
    """Place the workload on all nodes in the order of the queue, and measure the outcome."""
    keys = {pod.uid: pod.key for pod in (*workload.fixed, *workload.pods)}
    evicted: list[str] = []
    with open_simulation(profiles, notify=notify) as simulation:
        simulation.load(workload.on(workload.objects.nodes))
        waiting = workload.queued(by_priority=profiles[0].by_priority)
        for step in simulation.run(waiting):
            outcome.placements[step.pod.key] = step.decision.node
            if step.decision.node is None:
                outcome.messages[step.pod.key] = step.decision.message
            else:
                outcome.messages.pop(step.pod.key, None)
            preemption = step.decision.preemption
            if preemption is not None and preemption.node is not None:
                for uid in preemption.candidates[preemption.node].uids:
                    evicted.append(keys[uid])
                    if keys[uid] in outcome.placements:
                        outcome.placements[keys[uid]] = None
        outcome.evicted = tuple(evicted)
        _measure(simulation, workload, outcome)


def _measure(
    simulation: Simulation, workload: PackedWorkload, outcome: ConfigurationOutcome
) -> None:
    """Utilisation, balance and stranded resources of the nodes as they are now."""
    nodes, pods = simulation.cache.columns.nodes, simulation.cache.columns.pods
    rows = nodes.order
    used = Counter(node for node in outcome.placements.values() if node is not None)
    outcome.nodes_in_use = len(used)
    outcome.nodes = [
        NodeUse(
            nodes.names[row],
            pods.counts.item(row),
            {name: pods.requested[c].item(row) for c, name in enumerate(_RESOURCES)},
            {name: nodes.allocatable[c].item(row) for c, name in enumerate(_RESOURCES)},
        )
        for row in rows.tolist()
    ]
    in_use = np.array([nodes.names[row] in used for row in rows.tolist()], np.bool_)
    mean = _mean_requests(simulation, workload)
    free = {
        column: nodes.allocatable[column][rows] - pods.requested[column][rows]
        for column in range(len(_RESOURCES))
    }
    full = np.minimum.reduce([free[column] // mean[column] for column in free]) <= 0
    full |= nodes.allowed_pods[rows] - pods.counts[rows] <= 0
    for column, resource in enumerate(_RESOURCES):
        there, taken = nodes.allocatable[column][rows], pods.requested[column][rows]
        shares = taken / np.maximum(there, 1)
        outcome.resources.append(
            ResourceUse(
                resource,
                int(taken.sum()),
                int(there.sum()),
                int(there[in_use].sum()),
                float(shares.std()) if len(shares) else 0.0,
                float(shares.max()) if len(shares) else 0.0,
                int(np.maximum(free[column][full], 0).sum()),
            )
        )


def _mean_requests(simulation: Simulation, workload: PackedWorkload) -> list[int]:
    """What a pod of mean size requests of cpu and memory, at least 1 of each."""
    index = simulation.cache.columns.pods
    wanted = [index.incoming(pod).cls.wanted for pod in workload.pods]
    count = max(len(wanted), 1)
    return [max(1, sum(each[column] for each in wanted) // count) for column in (0, 1)]
