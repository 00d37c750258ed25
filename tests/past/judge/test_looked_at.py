"""A scheduler that looks at a share of the nodes, with one worker and with workers that race."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from math import isqrt
from random import Random

import numpy as np
import pytest

from builders import node, pod, term
from builders_v1_36 import HOST, ZONE
from past.judge.other_scheduler import OtherScheduler, judged
from past.judge.wrong_schedulers import pods, sampled
from podium.engine.cycle.searching import wanted_by
from podium.engine.cycle.ties import ties
from podium.engine.framework.decision import Decision
from podium.engine.framework.profile import Profile
from podium.engine.state.verdicts import FITS
from podium.objects.kinds.pod import Pod
from podium.past.judge.agreement import DIFFERENT, LOOKED_AT, SAME, Agreement
from scheduler.fakes import PROFILES


class Racing(OtherScheduler):
    """Looks at nodes with several workers, of which chance says which one is next."""

    workers = 4

    def decide(self, pod: Pod) -> Decision:
        cache = self.state.cache
        whole = dataclasses.replace(self.profile, percentage_of_nodes_to_score=100)
        order = cache.order()
        fits = self.decider.look(pod, whole, order=order).codes == FITS
        wanted = wanted_by(self.profile, len(order))
        looked = self._looked_at(fits, wanted)
        decision = self.decider.look(pod, whole, order=order[looked])
        cache.advance(len(looked))
        return decision

    def _looked_at(self, fits: np.ndarray, wanted: int) -> list[int]:
        """The places that are looked at until enough are found, in that order."""
        chunk = min(isqrt(len(fits)), len(fits) // 16 + 1)
        chunks = [list(range(at, min(at + chunk, len(fits)))) for at in range(0, len(fits), chunk)]
        busy, looked, found = [chunks.pop(0) for _ in range(self.workers)], [], 0
        while busy and found < wanted:
            mine = self.dice.choice(busy)
            looked.append(mine.pop(0))
            found += bool(fits[looked[-1]])
            if not mine:
                busy.remove(mine)
                busy += [chunks.pop(0)] if chunks else []
        return looked


class Interrupted(Racing):
    """In half of the searches one worker stops somewhere, and the rest of its chunk is left out."""

    def _looked_at(self, fits: np.ndarray, wanted: int) -> list[int]:
        chunk = min(isqrt(len(fits)), len(fits) // 16 + 1)
        first = self.dice.randrange(wanted) if self.dice.random() < 0.5 else len(fits)
        end = (first // chunk + 1) * chunk
        looked, found = [], 0
        for at in range(len(fits)):
            if first <= at < end:
                continue
            looked.append(at)
            found += bool(fits[at])
            if found == wanted:
                break
        return looked


def gathering(count: int, dice: Random) -> Iterator[Pod]:
    """Pods that prefer the node of others like them."""
    for number in range(count):
        group, cpu = {"app": f"g{number % 15}"}, dice.choice(["100m", "300m"])
        prefers, name = [(10, term(group, HOST))], f"p{number:05}"
        yield pod(name, uid=f"u{number}", labels=group, requests={"cpu": cpu}, prefers=prefers)


def judged_burst(
    kind: type[OtherScheduler],
    profile: Profile,
    seed: int,
    burst: Callable[[int, Random], Iterator[Pod]] = pods,
) -> Agreement:
    """What is judged of 300 pods on 300 nodes, of which some are full."""
    other = kind(profile, PROFILES["v1.37"][1], seed)
    other.profile, other.decider.ties = profile, ties(profile.ties)
    for number in range(300):
        name, full = f"n{number:04}", other.dice.random() < 0.05
        labels = {ZONE: f"z{number % 3}", HOST: name}
        cpu, memory = other.dice.choice([4, 8, 16, 32]), other.dice.choice([8, 16, 32, 64])
        other.put(node(name, cpu=0 if full else cpu, memory=f"{memory}Gi", labels=labels))
    other.burst(burst(300, other.dice))
    return judged(other, profile)


@pytest.mark.parametrize("seed", [1, 2])
def test_one_worker_is_followed_node_by_node(seed: int) -> None:
    profile = sampled(PROFILES["v1.37"][0])
    profile = dataclasses.replace(profile, ties="kube-scheduler", parallelism=1)

    found = judged_burst(OtherScheduler, profile, seed)

    assert (found.pods, found.counts[SAME]) == (300, 300)


def test_workers_that_race_agree() -> None:
    """These race more than real ones: any of the four may be the next one at every node."""
    profile = dataclasses.replace(sampled(PROFILES["v1.37"][0]), ties="kube-scheduler")

    found = [judged_burst(Racing, profile, seed) for seed in (1, 2, 3)]

    assert [each.pods for each in found] == [300, 300, 300]
    assert sum(each.counts[DIFFERENT] for each in found) <= 9
    assert sum(each.counts[LOOKED_AT] for each in found) > 9


def test_workers_that_are_interrupted_agree() -> None:
    """Of pods that prefer one node, some are elsewhere: that node was in the rest of a chunk."""
    profile = dataclasses.replace(sampled(PROFILES["v1.37"][0]), ties="kube-scheduler")

    found = [judged_burst(Interrupted, profile, seed, gathering) for seed in (1, 2, 3)]

    assert [each.pods for each in found] == [300, 300, 300]
    assert sum(each.counts[LOOKED_AT] for each in found) > 50
    assert sum(each.counts[DIFFERENT] for each in found) <= 6
