"""What happens in one run: cluster changes and faults with their times, chosen by a seed.

A plan is a value that can be written to a file and made smaller: every change and every fault
stands for itself and finds its target when it happens.
"""

from __future__ import annotations

import random
from typing import Final

import msgspec

#: How long changes and faults go on, in virtual seconds.
SHORTEST, LONGEST = 25.0, 70.0

#: What may happen to a request, by the verb that it is of. `lost` is carried out and not answered,
#: `late` is carried out and answered slowly, `slow` is carried out late, `hang` never ends.
ANSWERS: Final = ("403", "409", "410", "429", "429-after", "500", "503", "503-after")
UNANSWERED: Final = ("refused", "lost", "slow", "late", "hang")
REQUEST_FAULTS: Final = {
    "list": (*ANSWERS, "404", *UNANSWERED),
    "get": (*ANSWERS, "404", *UNANSWERED),
    "bind": (*ANSWERS, "404", *UNANSWERED),
    "status": (*ANSWERS, "404", *UNANSWERED),
    "patch": (*ANSWERS, "404", *UNANSWERED),
    "delete": (*ANSWERS, "404", *UNANSWERED),
    "event": (*ANSWERS, "404", *UNANSWERED),
    "lease": (*ANSWERS, "404", *UNANSWERED),
    # A kind that discovery does not find counts as not served, as in any client.
    "discovery": ("403", "429-after", "500", "503", *UNANSWERED),
    "watch": ("403", "410", "429-after", "500", "refused", "cut", "cut-inside", "silent", "lag"),
    "extender": ("500", "refused", "lost", "hang", "slow", "garbage"),
}
#: Requests whose answers are read: a proxy may answer with a page of its own after they were
#: carried out.
READ_ANSWERS: Final = ("list", "get", "lease", "patch", "discovery")
#: Verbs that are hit more often, because more depends on them.
VERBS: Final = (
    *REQUEST_FAULTS,
    *("bind", "bind", "status", "status", "watch", "watch", "delete", "delete", "lease"),
)
EXTENDERS: Final = (("filter",), ("filter", "prioritize"), ("bind",), ("filter", "bind"))

CHANGES: Final = {
    "create-pod": 22,
    "replace-pod": 4,
    "delete-pod": 7,
    "remove-pod": 4,
    "evict-pod": 2,
    "label-pod": 2,
    "ungate-pod": 3,
    "foreign-pod": 3,
    "create-node": 4,
    "delete-node": 3,
    "cordon-node": 3,
    "taint-node": 3,
    "resize-node": 3,
    "label-node": 2,
    "scale-set": 4,
    "delete-set": 1,
    "create-service": 1,
    "delete-service": 1,
    "create-budget": 2,
    "delete-budget": 1,
    "delete-claim": 1,
    "compact": 2,
}
#: Changes that seeds have besides those, by chance, at several times.
MORE_CHANGES: Final = ("delete-nominated", "delete-assumed")
#: What happens to machines instead of requests.
ACCIDENTS: Final = {
    "restart-server": 3,
    "kill-replica": 2,
    "stop-replica": 1,
    "set-clock": 2,
}


class Change(msgspec.Struct, frozen=True):
    """A change of the cluster or an accident, at a time; *number* decides all its details."""

    at: float
    act: str
    number: int


class Fault(msgspec.Struct, frozen=True):
    """A time in which requests of a verb go wrong with a chance; *number* seeds the chance."""

    start: float
    end: float
    verb: str
    kind: str
    chance: float
    #: Seconds of a delay or of a pause that is asked for.
    seconds: float
    number: int


class Plan(msgspec.Struct, frozen=True):
    """Everything that a run depends on."""

    seed: int
    generation: str
    #: The speeds of the replicas' clocks; one replica runs without a lease.
    rates: tuple[float, ...]
    #: "" for none, or the verbs of the extender.
    extender: tuple[str, ...]
    extender_ignorable: bool
    nodes: int
    #: The longest time that a request takes without any fault.
    latency: float
    seconds: float
    changes: tuple[Change, ...]
    faults: tuple[Fault, ...]


def make_plan(seed: int, *, more: bool = True) -> Plan:
    """The plan of a seed; without *more* it lacks the faults that were added to seeds later."""
    rng = random.Random(f"plan/{seed}")  # noqa: S311
    seconds = rng.uniform(SHORTEST, LONGEST)
    replicas = rng.choice((1, 1, 2, 2))
    extender: tuple[str, ...] = ()
    if rng.random() < 0.3:
        extender = rng.choice(EXTENDERS)
    busy = rng.choice((0.2, 0.5, 1.0))
    changes = [_change(rng, seconds) for _ in range(int(seconds * busy) + 5)]
    accidents = rng.choice((0, 0, 1, 2, 3))
    names, weights = tuple(ACCIDENTS), tuple(ACCIDENTS.values())
    changes += [
        Change(rng.uniform(1, seconds), rng.choices(names, weights)[0], rng.getrandbits(32))
        for _ in range(accidents)
    ]
    verbs = [verb for verb in VERBS if _applies(verb, replicas, extender)]
    faults = [_fault(rng, seconds, verbs) for _ in range(rng.choice((0, 1, 3, 6, 10)))]
    if rng.random() < 0.2:
        faults += _together(rng, seconds)
    if more:
        apart = random.Random(f"more/{seed}")  # noqa: S311
        faults += _more_faults(apart, seconds, extender)
        changes += _more_changes(apart, seconds)
    return Plan(
        seed=seed,
        generation=rng.choice(("v1.36", "v1.36", "v1.13")),
        rates=tuple(rng.uniform(0.97, 1.03) for _ in range(replicas)),
        extender=extender,
        extender_ignorable=rng.random() < 0.5,
        nodes=rng.randint(1, 5),
        latency=rng.choice((0.0, 0.0, 0.01, 0.3)),
        seconds=seconds,
        changes=tuple(sorted(changes, key=lambda each: each.at)),
        faults=tuple(sorted(faults, key=lambda each: each.start)),
    )


def _applies(verb: str, replicas: int, extender: tuple[str, ...]) -> bool:
    return (verb != "lease" or replicas > 1) and (verb != "extender" or bool(extender))


def _change(rng: random.Random, seconds: float) -> Change:
    names, weights = tuple(CHANGES), tuple(CHANGES.values())
    # Some changes come together, most do not.
    at = rng.choice((0.0, rng.uniform(0, seconds), round(rng.uniform(0, seconds) / 5) * 5.0))
    return Change(min(at, seconds), rng.choices(names, weights)[0], rng.getrandbits(32))


def _fault(rng: random.Random, seconds: float, verbs: list[str]) -> Fault:
    verb = rng.choice(verbs)
    start = rng.choice((0.0, rng.uniform(0, seconds)))
    length = rng.choice((0.5, 5.0, 20.0, seconds))
    return Fault(
        start=start,
        end=min(start + length, seconds),
        verb=verb,
        kind=rng.choice(REQUEST_FAULTS[verb]),
        chance=rng.choice((0.1, 0.5, 1.0)),
        seconds=rng.choice((0.05, 1.0, 4.0, 12.0)),
        number=rng.getrandbits(32),
    )


def _together(rng: random.Random, seconds: float) -> list[Fault]:
    """Answers to bindings are lost while watches tell nothing of them, or tell it late."""
    start, length = rng.uniform(0, seconds), rng.choice((5.0, 20.0, 40.0))
    times = (start, min(start + length, seconds))
    bind = rng.choice(("lost", "lost", "hang", "late", "500"))
    watch = rng.choice(("lag", "silent", "cut", "refused"))
    return [
        Fault(*times, "bind", bind, 1.0, 4.0, rng.getrandbits(32)),
        Fault(*times, "watch", watch, 1.0, 12.0, rng.getrandbits(32)),
    ]


def _more_faults(rng: random.Random, seconds: float, extender: tuple[str, ...]) -> list[Fault]:
    """Answers that are none of an API server, and bindings of extenders that nothing tells of.

    They are chosen apart from all others, so that a seed without them is what it was before them.
    """
    found = []
    if rng.random() < 0.1:
        start, verb = rng.uniform(0, seconds), rng.choice(READ_ANSWERS)
        times = (start, min(start + rng.choice((5.0, 20.0)), seconds))
        chance = rng.choice((0.3, 1.0))
        found.append(Fault(*times, verb, "garbage", chance, 0.0, rng.getrandbits(32)))
    if "bind" in extender and rng.random() < 0.5:
        start = rng.uniform(0, seconds)
        times = (start, min(start + rng.choice((5.0, 20.0)), seconds))
        answer = rng.choice(("lost", "lost", "garbage", "slow"))
        watch = rng.choice(("lag", "silent", "cut", "refused"))
        found += [
            Fault(*times, "extender", answer, 0.5, 4.0, rng.getrandbits(32)),
            Fault(*times, "watch", watch, 1.0, 12.0, rng.getrandbits(32)),
        ]
    return found


def _more_changes(rng: random.Random, seconds: float) -> list[Change]:
    """Deletions of pods in states that last for moments only, tried again and again."""
    if rng.random() >= 0.2:
        return []
    act = rng.choice(MORE_CHANGES)
    return [Change(rng.uniform(0, seconds), act, rng.getrandbits(32)) for _ in range(12)]
