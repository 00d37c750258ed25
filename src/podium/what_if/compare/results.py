"""How configurations place the same pods: the result of `podium compare`."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec

from podium.library.decision_json import API_VERSION
from podium.library.frames import TabularAnswer
from podium.render.plain import counted, format_amount

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """One resource on the nodes of a cluster."""

    resource: str
    requested: int
    #: On all nodes, and on those with at least one pod of the workload.
    allocatable: int
    allocatable_in_use: int
    #: The standard deviation of the used share between nodes, and the largest share.
    spread: float
    highest: float
    #: Free on nodes where not one more pod of mean size fits.
    stranded: int

    @property
    def utilisation(self) -> float:
        """The used share of all nodes."""
        return self.requested / self.allocatable if self.allocatable else 0.0

    @property
    def utilisation_in_use(self) -> float:
        """The used share of the nodes with at least one pod of the workload."""
        return self.requested / self.allocatable_in_use if self.allocatable_in_use else 0.0


@dataclass(frozen=True, slots=True)
class NodeUse:
    """What the pods on one node request of what there is, with all pods that the node has."""

    name: str
    pods: int
    requested: dict[str, int]
    allocatable: dict[str, int]

    def share(self, resource: str) -> float:
        """The requested share of a resource."""
        there = self.allocatable.get(resource, 0)
        return self.requested.get(resource, 0) / there if there else 0.0


@dataclass(slots=True)
class ConfigurationOutcome:
    """What one configuration makes of the workload."""

    name: str
    profile: str
    #: Pod -> its node, None without one.
    placements: dict[str, str | None] = field(default_factory=dict)
    #: Pod without a node -> the message that its user sees.
    messages: dict[str, str] = field(default_factory=dict)
    #: Pods that were evicted for others after they had been placed, or that came with their node.
    evicted: tuple[str, ...] = ()
    nodes_in_use: int = 0
    resources: list[ResourceUse] = field(default_factory=list)
    #: Every node with the workload placed, in the order of the nodes.
    nodes: list[NodeUse] = field(default_factory=list)
    #: Seed -> how many nodes the workload needs; None if it does not fit on all of them.
    needed: dict[int, int | None] = field(default_factory=dict)
    #: A proven lower bound for that number, for any scheduler with these rules; None if unknown.
    bound: int | None = None
    #: What the bound does not take into account.
    ignored: tuple[str, ...] = ()

    @property
    def left_over(self) -> list[str]:
        """The pods without a node."""
        return [pod for pod, node in self.placements.items() if node is None]

    @property
    def median_needed(self) -> float | None:
        """The median over the seeds; None if some seed found no way."""
        found = [number for number in self.needed.values() if number is not None]
        return median(found) if found and len(found) == len(self.needed) else None

    def as_json(self) -> dict[str, Any]:
        """The outcome as plain data."""
        return {
            "name": self.name,
            "profile": self.profile,
            "placed": len(self.placements) - len(self.left_over),
            "leftOver": self.left_over,
            "evicted": list(self.evicted),
            "nodesInUse": self.nodes_in_use,
            "resources": [
                {
                    "resource": use.resource,
                    "requested": use.requested,
                    "allocatable": use.allocatable,
                    "utilisation": round(use.utilisation, 4),
                    "utilisationOfNodesInUse": round(use.utilisation_in_use, 4),
                    "standardDeviation": round(use.spread, 4),
                    "highest": round(use.highest, 4),
                    "stranded": use.stranded,
                }
                for use in self.resources
            ],
            "nodesNeeded": {str(seed): number for seed, number in self.needed.items()},
            "lowerBound": self.bound,
            "boundIgnores": list(self.ignored),
            "nodes": msgspec.to_builtins(self.nodes),
            "placements": dict(self.placements),
            "messages": dict(self.messages),
        }


@dataclass(slots=True, repr=False)
class Comparison(TabularAnswer):
    """The same pods placed by several configurations, from scratch, in the same order."""

    nodes: int
    pods: int
    outcomes: list[ConfigurationOutcome]
    #: Pods that no configuration finds a place for; compaction goes without them.
    hopeless: tuple[str, ...] = ()
    #: Whether the search ended before all seeds were done.
    interrupted: bool = False

    def differences(self) -> list[tuple[str, tuple[str | None, ...]]]:
        """Pods whose node is not the same in all outcomes, with the node in each."""
        done = self.done()
        found = []
        for pod in done[0].placements if done else ():
            nodes = tuple(each.placements.get(pod) for each in done)
            if len(set(nodes)) > 1:
                found.append((pod, nodes))
        return found

    def changed_messages(self) -> list[tuple[str, tuple[str, ...]]]:
        """Pods that wait in all outcomes, with other messages; the message in each."""
        done = self.done()
        found = []
        for pod in done[0].messages if done else ():
            texts = tuple(each.messages.get(pod, "") for each in done)
            if all(texts) and len(set(texts)) > 1:
                found.append((pod, texts))
        return found

    def done(self) -> list[ConfigurationOutcome]:
        """The outcomes that are complete; all of them unless the comparison was interrupted."""
        return [outcome for outcome in self.outcomes if outcome.resources]

    def as_json(self) -> dict[str, Any]:
        """The result as plain data."""
        names = [each.name for each in self.done()]
        return {
            "apiVersion": API_VERSION,
            "kind": "Comparison",
            "nodes": self.nodes,
            "pods": self.pods,
            "hopeless": list(self.hopeless),
            "interrupted": self.interrupted,
            "configurations": [each.as_json() for each in self.done()],
            "differences": [
                {"pod": pod, "nodes": dict(zip(names, nodes, strict=True))}
                for pod, nodes in self.differences()
            ],
            "changedMessages": [
                {"pod": pod, "messages": dict(zip(names, texts, strict=True))}
                for pod, texts in self.changed_messages()
            ],
        }

    def changed_nodes(self) -> set[str]:
        """The nodes that have other pods in some outcomes than in others."""
        return {node for _, nodes in self.differences() for node in nodes if node is not None}

    def __repr__(self) -> str:
        """How many placements differ."""
        return f"<Comparison: {self.summary()}>"

    def __getitem__(self, name: str) -> ConfigurationOutcome:
        """What one configuration makes of the workload."""
        found = next((each for each in self.outcomes if each.name == name), None)
        if found is None:
            raise KeyError(f"{name}; there are {', '.join(each.name for each in self.outcomes)}")
        return found

    def rows(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The names of columns, and a row for each pod with its node in every outcome."""
        done = self.done()
        pods = done[0].placements if done else ()
        return ("pod", *(each.name for each in done)), [
            (pod, *(each.placements.get(pod) or "" for each in done)) for pod in pods
        ]

    def summary(self) -> str:
        """How many pods are placed differently, as a sentence."""
        return f"{counted(len(self.differences()), 'placement')} of {self.pods} differ"

    def bound_ignores(self) -> list[str]:
        """What the lower bounds do not take into account."""
        return list(dict.fromkeys(text for each in self.outcomes for text in each.ignored))

    def measures(self) -> Iterator[tuple[str, ...]]:
        """The name of each measure, and its value for each configuration, as text."""
        each = self.done()
        if not each:
            return
        yield ("placed", *(str(len(o.placements) - len(o.left_over)) for o in each))
        yield ("left over", *(str(len(o.left_over)) for o in each))
        yield ("evicted", *(str(len(o.evicted)) for o in each))
        yield ("nodes in use", *(str(o.nodes_in_use) for o in each))
        for index, use in enumerate(each[0].resources):
            name, uses = use.resource, [o.resources[index] for o in each]
            yield (f"{name} used", *(f"{u.utilisation:.0%}" for u in uses))
            yield (f"{name} used on nodes in use", *(f"{u.utilisation_in_use:.0%}" for u in uses))
            yield (f"{name} balance (deviation)", *(f"{u.spread:.1%}" for u in uses))
            yield (f"{name} stranded", *(format_amount(name, u.stranded) for u in uses))
        if any(o.needed for o in each):
            yield ("nodes needed", *(_needed(o) for o in each))
        if any(o.bound is not None for o in each):
            yield ("lower bound", *("-" if o.bound is None else str(o.bound) for o in each))


def _needed(outcome: ConfigurationOutcome) -> str:
    numbers = [number for number in outcome.needed.values() if number is not None]
    if not numbers:
        return "more than all"
    low, high = min(numbers), max(numbers)
    text = str(low) if low == high else f"{median(numbers):g} ({low} to {high})"
    missing = len(outcome.needed) - len(numbers)
    return f"{text}; {missing} of {len(outcome.needed)} fit nowhere" if missing else text
