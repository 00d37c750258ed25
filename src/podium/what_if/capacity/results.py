"""How many more pods fit, where, and what ran out: the result of `podium capacity`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from podium.library.decision_json import API_VERSION
from podium.library.frames import TabularAnswer
from podium.render.plain import counted


@dataclass(frozen=True, slots=True)
class Exhausted:
    """Nodes that reject the next pod for the same reasons."""

    #: The rule that rejects, and its reasons.
    rule: str
    reasons: tuple[str, ...]
    nodes: tuple[str, ...]
    #: How many pods were placed on them.
    pods: int


@dataclass(frozen=True, slots=True)
class ShapeGain:
    """How many more pods fit after one more node of a shape was added to the full cluster."""

    shape: str
    pods: int
    #: How many nodes of this shape the cluster has; 0 for one from a file.
    count: int
    #: How many pods of DaemonSets the new node runs.
    daemons: int
    #: How many such nodes the wanted pods need that do not fit; 0 if no number is enough.
    nodes: int = 0


@dataclass(slots=True, repr=False)
class Capacity(TabularAnswer):
    """How many pods fit besides those that run, with all rules of the profile.

    Pods are placed one after the other, kind by kind in their ratio, until one fits nowhere. No
    pod is evicted for them.
    """

    profile: str
    nodes: int
    #: Kind of pod -> how many of it belong together, and how many were placed.
    ratio: dict[str, int] = field(default_factory=dict)
    placed: dict[str, int] = field(default_factory=dict)
    #: Node -> how many pods were placed on it.
    per_node: dict[str, int] = field(default_factory=dict)
    #: The kind that fits nowhere any more, and the message of that decision.
    stopped_by: str = ""
    message: str = ""
    #: What ran out first on the nodes, the largest group first.
    exhausted: list[Exhausted] = field(default_factory=list)
    gains: list[ShapeGain] = field(default_factory=list)
    #: How many pods, or sets of pods in their ratio, are wanted.
    want: int | None = None
    #: Whether the search ended before a pod failed: at its limit, or interrupted.
    at_least: bool = False
    #: What the input does not have, and what the answer depends on; usually empty.
    unknown: str = ""

    @property
    def pods(self) -> int:
        """How many pods were placed."""
        return sum(self.placed.values())

    @property
    def rounds(self) -> int:
        """How often the whole set of pods, in its ratio, fits."""
        return min((self.placed[kind] // self.ratio[kind] for kind in self.ratio), default=0)

    @property
    def is_enough(self) -> bool:
        """Whether all wanted pods fit, or at least one where no number is wanted."""
        return bool(self.pods) if self.want is None else self.rounds >= self.want

    def __repr__(self) -> str:
        """How many pods fit, in one sentence."""
        return f"<Capacity: {self.sentence()}>"

    def __getitem__(self, node: str) -> int:
        """How many pods were placed on a node; 0 on one that takes none."""
        return self.per_node.get(node, 0)

    def rows(self) -> tuple[tuple[str, ...], list[tuple[str | int, ...]]]:
        """The names of columns, and a row for each node that takes pods."""
        return ("node", "pods"), list(self.per_node.items())

    def as_json(self) -> dict[str, Any]:
        """The result as plain data."""
        return {
            "apiVersion": API_VERSION,
            "kind": "Capacity",
            "profile": self.profile,
            "nodes": self.nodes,
            "pods": self.pods,
            "rounds": self.rounds,
            "atLeast": self.at_least,
            "want": self.want,
            "unknown": self.unknown,
            "kinds": [
                {"name": kind, "ratio": number, "pods": self.placed[kind]}
                for kind, number in self.ratio.items()
            ],
            "perNode": dict(self.per_node),
            "stoppedBy": self.stopped_by or None,
            "message": self.message,
            "exhausted": msgspec.to_builtins(self.exhausted),
            "oneMoreNode": [
                {
                    "like": g.shape,
                    "pods": g.pods,
                    "nodesLikeIt": g.count,
                    "daemonPods": g.daemons,
                    "nodesForAll": g.nodes,
                }
                for g in self.gains
            ],
        }

    def sentence(self) -> str:
        """The number of pods that fit, in one sentence."""
        if self.unknown:
            return f"how many more fit is not known: {self.unknown}"
        least = "at least " if self.at_least else ""
        where = f" on {counted(len(self.per_node), 'node')}" if self.pods else ""
        if len(self.ratio) == 1:
            kind = next(iter(self.ratio))
            verb = "fits" if self.pods == 1 else "fit"
            if self.want is not None:
                if self.pods >= self.want:
                    return f"all {self.want} more of {kind} fit{where}"
                rest = self.want - self.pods
                found = f"{self.pods or 'none'} of {self.want} more of {kind} {verb}{where}"
                return f"{least}{found}; {rest} {'does' if rest == 1 else 'do'} not"
            return f"{least}{self.pods or 'no'} more of {kind} {verb}{where}"
        often = f"{self.rounds} more times" + (f" of {self.want}" if self.want is not None else "")
        first = f"the set fits {least}{often}: {counted(self.pods, 'pod')}{where}"
        return f"{first}; then {self.stopped_by} fits nowhere" if self.stopped_by else first
