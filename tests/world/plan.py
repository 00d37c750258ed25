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
    # Connections that cannot be opened, whatever they are for.
    "connect": ("refused", "hang", "slow"),
}
#: What may be odd about a right answer: parts that begin and end anywhere, its form, and an end of
#: the connection that is said, or not, or comes with one answer more than was asked for.
QUIRKS: Final = (
    "in pieces",
    "in pieces",
    "in chunks",
    "with hints",
    "closed",
    "closed unsaid",
    "twice",
)
#: Requests whose answers are read: a proxy may answer with a page of its own after they were
#: carried out.
READ_ANSWERS: Final = ("list", "get", "lease", "patch", "discovery")
#: Requests that are refused with a pause of minutes or hours.
PAUSED_VERBS: Final = ("bind", "status", "event", "lease", "list", "watch", "delete", "patch")
#: Verbs that are hit more often, because more depends on them.
VERBS: Final = (
    *(verb for verb in REQUEST_FAULTS if verb != "connect"),
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
#: Changes that seeds have at a few times besides, by chance.
RARE_CHANGES: Final = {"resize-pod": 4, "burst": 2, "stall": 2, "reconfigure": 2}
#: The change of the client certificate that the API server accepts.
ROTATION: Final = "change-certificate"
#: What besides the usual is part of the cluster and of its scheduler, and how often; the changes
#: that belong to it.
FEATURES: Final = {
    # The engine reaches each of its ways of computing, also in a small cluster.
    "small thresholds": 0.6,
    "second profile": 0.2,
    "reserve and permit": 0.2,
    "devices": 0.25,
    "shadow": 0.1,
    "record": 0.08,
}
FEATURE_CHANGES: Final = {
    "devices": (("publish-devices", 4), ("remove-devices", 2), ("claiming-pod", 8)),
    "reserve and permit": (("slot-pod", 6),),
    "second profile": (("second-pod", 6),),
    "record": (("fill-disk", 2),),
}
#: Pods that are placed together or not at all, in the newest release; how often seeds have them.
GROUPS: Final = "pod groups"
GROUPS_CHANCE: Final = 0.1
GROUP_CHANGES: Final = {"create-group": (2, 6), "join-group": (1, 6), "delete-group": (0, 1)}
#: Pods with preferences, equal ones one after the other; how often seeds have them.
PREFERENCES: Final = "preferences"
PREFERENCES_CHANCE: Final = 0.12
PREFERENCE_CHANGES: Final = {"preferring-burst": (1, 3)}
#: Pods that must spread over zones, equal ones one after the other; how often seeds have them.
SPREADING: Final = "spreading"
SPREADING_CHANCE: Final = 0.03
SPREADING_CHANGES: Final = {"spreading-burst": (4, 8)}
#: Pods that ask for devices as for any resource, where plans have devices; how often they do.
EXTENDED: Final = "extended resources"
EXTENDED_CHANCE: Final = 0.2
EXTENDED_CHANGES: Final = {"extended-pod": (2, 6)}
#: What happens to machines instead of requests.
ACCIDENTS: Final = {
    "restart-server": 3,
    "change-token": 1,
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
    #: The chance that something is odd about an answer, and the most objects on a page of a list.
    oddity: float
    page: int
    #: What besides the usual is part of the cluster and of its scheduler.
    features: tuple[str, ...]
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
    oddity, page = 0.0, 500
    features: tuple[str, ...] = ()
    if more:
        apart = random.Random(f"more/{seed}")  # noqa: S311
        faults += _more_faults(apart, seconds, extender)
        changes += _more_changes(apart, seconds)
        oddity, page = apart.choice((0.0, 0.02, 0.2)), apart.choice((1, 3, 500))
        features = tuple(name for name, chance in FEATURES.items() if apart.random() < chance)
        changes += _of_features(apart, seconds, features)
        changes += _rotations(random.Random(f"rotations/{seed}"), seconds)  # noqa: S311
    plan = Plan(
        seed=seed,
        generation=rng.choice(("v1.36", "v1.36", "v1.13")),
        rates=tuple(rng.uniform(0.97, 1.03) for _ in range(replicas)),
        extender=extender,
        extender_ignorable=rng.random() < 0.5,
        nodes=rng.randint(1, 5),
        latency=rng.choice((0.0, 0.0, 0.01, 0.3)),
        seconds=seconds,
        oddity=oddity,
        page=page,
        features=features,
        changes=tuple(sorted(changes, key=lambda each: each.at)),
        faults=tuple(sorted(faults, key=lambda each: each.start)),
    )
    return _with_later_features(plan) if more else plan


def _with_later_features(plan: Plan) -> Plan:
    """The plan, with features by chance; seeds without them are what they were before these."""
    is_newest = plan.generation != "v1.13"
    rng = random.Random(f"groups/{plan.seed}")  # noqa: S311
    if is_newest and rng.random() < GROUPS_CHANCE:
        plan = _with(plan, GROUPS, GROUP_CHANGES, rng)
    rng = random.Random(f"preferences/{plan.seed}")  # noqa: S311
    if rng.random() < PREFERENCES_CHANCE:
        plan = _with(plan, PREFERENCES, PREFERENCE_CHANGES, rng)
    rng = random.Random(f"required/{plan.seed}")  # noqa: S311
    if is_newest and rng.random() < SPREADING_CHANCE:
        plan = _with(plan, SPREADING, SPREADING_CHANGES, rng)
    rng = random.Random(f"extended/{plan.seed}")  # noqa: S311
    if is_newest and "devices" in plan.features and rng.random() < EXTENDED_CHANCE:
        plan = _with(plan, EXTENDED, EXTENDED_CHANGES, rng)
    return plan


def _with(plan: Plan, feature: str, acts: dict[str, tuple[int, int]], rng: random.Random) -> Plan:
    """The plan with a feature and its changes, each as often as *acts* says."""
    more = [
        Change(rng.choice((0.0, rng.uniform(0, plan.seconds))), act, rng.getrandbits(32))
        for act, (least, most) in acts.items()
        for _ in range(rng.randint(least, most))
    ]
    changes = sorted((*plan.changes, *more), key=lambda each: each.at)
    features = (*plan.features, feature)
    return msgspec.structs.replace(plan, changes=tuple(changes), features=features)


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
    if rng.random() < 0.15:
        start = rng.uniform(0, seconds)
        times = (start, min(start + rng.choice((5.0, 20.0)), seconds))
        kind, chance = rng.choice(REQUEST_FAULTS["connect"]), rng.choice((0.3, 1.0))
        found.append(Fault(*times, "connect", kind, chance, 4.0, rng.getrandbits(32)))
    if rng.random() < 0.15:
        start, verb = rng.uniform(0, seconds), rng.choice(PAUSED_VERBS)
        times = (start, min(start + rng.choice((5.0, 20.0)), seconds))
        pause = rng.choice((60.0, 3600.0, 86_400.0))
        found.append(Fault(*times, verb, "429-after", 0.5, pause, rng.getrandbits(32)))
    return found


def _of_features(rng: random.Random, seconds: float, features: tuple[str, ...]) -> list[Change]:
    """Changes of what a plan has besides the usual."""
    acts = [act for name in features for act in FEATURE_CHANGES.get(name, ())]
    acts += [each for each in RARE_CHANGES.items() if rng.random() < 0.25]
    return [
        Change(rng.choice((0.0, rng.uniform(0, seconds))), act, rng.getrandbits(32))
        for act, most in acts
        for _ in range(rng.randint(1, most))
    ]


def _rotations(rng: random.Random, seconds: float) -> list[Change]:
    """Client certificates that are renewed while the old ones are accepted no more."""
    times = [rng.uniform(0, seconds) for _ in range(rng.choice((0, 0, 0, 0, 0, 0, 0, 1, 2, 3)))]
    return [Change(at, ROTATION, rng.getrandbits(32)) for at in times]


def _more_changes(rng: random.Random, seconds: float) -> list[Change]:
    """Deletions of pods in states that last for moments only, tried again and again."""
    if rng.random() >= 0.2:
        return []
    act = rng.choice(MORE_CHANGES)
    return [Change(rng.uniform(0, seconds), act, rng.getrandbits(32)) for _ in range(12)]
