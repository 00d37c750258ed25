"""Slightly wrong schedulers, and how many of their wrong placements a judge excuses.

Each scheduler here is slightly wrong: one weight is another one, or one plugin is missing. Its
bindings are late, overtake each other, and some are refused. A placement is wrong if it is not on
one of the nodes that the right rules find best in the state in which it was decided, of the nodes
that were looked at. `benchmarks/false_excuses.py` prints the table that `docs/history.md` has.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from builders import node, pod, selector
from builders_v1_36 import HOST, SOFT, ZONE, spec_with, spread
from past.judge.other_scheduler import OtherScheduler, judged
from podium.engine.framework.decision import Decision
from podium.engine.framework.profile import Profile, Weighted
from podium.objects.kinds.pod import Pod
from podium.past.judge.agreement import DIFFERENT
from scheduler.fakes import PROFILES

SEEDS = range(1, 11)


class Counted(NamedTuple):
    """The placements of a wrong scheduler: how many are wrong, and how many of these are named."""

    placements: int
    wrong: int
    named: int
    #: Those that are not wrong and called different in spite of that.
    accused: int

    @property
    def excused(self) -> int:
        """Wrong placements that the judge explains."""
        return self.wrong - self.named


def reweighted(profile: Profile, name: str, weight: int) -> Profile:
    """The profile with another weight of one plugin; 0 takes it away."""
    changed = (
        Weighted(each.priority, weight if each.name == name else each.weight)
        for each in profile.priorities
    )
    return dataclasses.replace(profile, priorities=tuple(each for each in changed if each.weight))


def sampled(profile: Profile) -> Profile:
    """The profile with the share of nodes that kube-scheduler looks at by default."""
    return dataclasses.replace(profile, percentage_of_nodes_to_score=0)


#: A scheduler with the right rules.
RIGHT = "none is wrong"
#: What is wrong with a scheduler: the weight of a plugin, or 0 where it is missing.
WRONG = {
    "NodeResourcesBalancedAllocation weighs 10": ("NodeResourcesBalancedAllocation", 10),
    "NodeResourcesFit weighs 5": ("NodeResourcesFit", 5),
    "NodeResourcesFit is missing": ("NodeResourcesFit", 0),
    "PodTopologySpread is missing": ("PodTopologySpread", 0),
}


class Wrong(OtherScheduler):
    """A scheduler with wrong rules, which notes the placements that the right ones do not make."""

    def __init__(self, right: Profile, wrong: Profile, seed: int) -> None:
        behaviour = PROFILES["v1.37"][1]
        super().__init__(wrong, behaviour, seed, slowest=1.0, refused=0.01)
        self._right = right
        self.wrong: set[str] = set()

    def decide(self, pod: Pod) -> Decision:
        """Decide by the wrong rules, and note whether the right ones find the node best, too."""
        right = self.decider.look(pod, self._right, order=self.state.cache.order())
        decision = super().decide(pod)
        self.wrong.discard(pod.uid)
        if decision.node != right.node and decision.node not in right.best:
            self.wrong.add(pod.uid)
        return decision


def pods(count: int, dice: Random) -> Iterator[Pod]:
    """Plain pods, and pods that prefer to be spread."""
    for number in range(count):
        app = {"app": f"a{number % 8}"}
        cpu, memory = dice.choice(["100m", "250m", "500m"]), dice.choice(["128Mi", "512Mi", "1Gi"])
        made = pod(
            f"p{number:05}", uid=f"u{number}", labels=app, requests={"cpu": cpu, "memory": memory}
        )
        constraints = [spread(HOST, 1, selector(app), when=SOFT)] if number % 2 else []
        yield spec_with(made, topology_spread_constraints=constraints) if constraints else made


def measure(kind: str, seed: int, *, nodes: int, count: int, samples: bool) -> Counted:
    """Let a wrong scheduler place pods, and judge it by the right rules."""
    right = dataclasses.replace(PROFILES["v1.37"][0], ties="kube-scheduler")
    right = sampled(right) if samples else right
    other = Wrong(right, reweighted(right, *WRONG.get(kind, ("", 0))), seed)
    for number in range(nodes):
        name = f"n{number:04}"
        labels = {ZONE: f"z{number % 3}", HOST: name}
        other.put(node(name, cpu=16, memory="64Gi", labels=labels))
        load: dict[str, str | int | float] = {
            "cpu": other.dice.randrange(1, 12),
            "memory": f"{other.dice.randrange(1, 48)}Gi",
        }
        app = {"app": f"a{other.dice.randrange(8)}"}
        other.put(pod(f"o{number:04}", uid=f"o{number}", node=name, labels=app, requests=load))
    other.burst(pods(count, other.dice))
    found = judged(other, right)
    keys = {each.pod for each in found.differences if each.kind == DIFFERENT}
    wrong = {f"default/p{int(uid[1:]):05}" for uid in other.wrong}
    return Counted(found.pods, len(wrong), len(wrong & keys), len(keys - wrong))


def all_counted(*, samples: bool, seeds: Sequence[int] = SEEDS) -> dict[str, Counted]:
    """The placements of each wrong scheduler and of a right one, of all seeds together."""
    return {
        kind: Counted(
            *map(
                sum,
                zip(
                    *(measure(kind, seed, nodes=160, count=100, samples=samples) for seed in seeds),
                    strict=True,
                ),
            )
        )
        for kind in (*WRONG, RIGHT)
    }


def table(all_nodes: dict[str, Counted], a_share: dict[str, Counted]) -> str:
    """The table of `docs/history.md`, from what `all_counted` finds."""
    lines = [
        "| scheduler | nodes looked at | placements | wrong | of these named | right, and named |",
        "|---|---|---|---|---|---|",
    ]
    for kind in (*WRONG, RIGHT, "together"):
        for share, found in (("all", all_nodes), ("a share", a_share)):
            some = [found[kind]] if kind in found else found.values()
            count, wrong, named, accused = (sum(each) for each in zip(*some, strict=True))
            rate = f" ({named / wrong:.1%})" if wrong else ""
            lines.append(
                f"| {kind} | {share} | {count:,} | {wrong:,} | {named:,}{rate} | {accused:,} |"
            )
    return "\n".join(lines) + "\n"
