"""Replays recorded scenarios and finds what came out differently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from podium.cluster.simulation import RETRY, Simulation
from podium.errors import ConfigError
from podium.objects.collection import KINDS, Objects
from podium.objects.pod import Pod
from podium.profiles.build import Options, from_policy, from_provider
from podium.render import recording

if TYPE_CHECKING:
    from collections.abc import Iterator

    from podium.engine.profile import Profile

#: Fields of a step whose absence is an answer: no error, no node, nothing to say.
TELLING = frozenset({"error", "host", "message", "preempt", "tie"})


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that was expected and did not come."""

    scenario: str
    where: str
    expected: Any
    got: Any


@dataclass(slots=True)
class Replay:
    """What a scenario gave."""

    scenario: str
    steps: int
    differences: list[Difference]


def replay(scenario: dict[str, Any]) -> Replay:
    """Run a scenario and compare every step whole."""
    name, expected = scenario["name"], scenario["expected"]
    try:
        profile = profile_of(scenario)
    except ConfigError as error:
        got: dict[str, Any] = {"configError": error.text}
        return Replay(name, 0, list(_compare(name, "", {"configError": None} | expected, got | {"steps": []})))
    given = {
        "predicates": list(profile.configured_predicates),
        "priorities": [f"{weighted.name}:{weighted.weight}" for weighted in profile.priorities],
    }
    differences = list(
        _compare(name, "", {k: expected[k] for k in ("configError", *given) if k in expected}, given)
    )
    steps = list(run(scenario, profile))
    for index in range(max(len(steps), len(expected["steps"]))):
        wanted = expected["steps"][index] if index < len(expected["steps"]) else None
        came = steps[index] if index < len(steps) else None
        if wanted is None or came is None:
            differences.append(Difference(name, f"step {index}", wanted, came))
            continue
        label = f"step {index}: {wanted['pod']}"
        differences += _compare(name, label, wanted, came)
    return Replay(name, len(steps), differences)


def profile_of(scenario: dict[str, Any]) -> Profile:
    """The configuration a scenario was recorded with."""
    given = scenario.get("options", {})
    options = Options(
        percentage_of_nodes_to_score=given.get("percentageOfNodesToScore", 100),
        hard_pod_affinity_symmetric_weight=given.get("hardPodAffinitySymmetricWeight", 1),
        disable_preemption=given.get("disablePreemption", False),
        feature_gates=given.get("featureGates", {}),
        max_pd_volumes=given.get("env", {}).get("KUBE_MAX_PD_VOLS"),
    )
    if scenario.get("policy") is not None:
        return from_policy(scenario["policy"], options)
    return from_provider(scenario.get("provider", "DefaultProvider"), options)


def run(scenario: dict[str, Any], profile: Profile) -> Iterator[dict[str, Any]]:
    """The steps of a scenario."""
    after = scenario.get("options", {}).get("afterPreemption", RETRY)
    simulation = Simulation(profile, listed_order=True, after_preemption=after)
    simulation.load(objects_of(scenario["objects"]))
    pending = [msgspec.convert(pod, Pod) for pod in scenario["pending"]]
    for step in simulation.run(pending, recording=True):
        yield recording.step(step.decision, step.attempt)


def objects_of(raw: list[dict[str, Any]]) -> Objects:
    """The objects of a scenario, exactly as they were served."""
    objects = Objects()
    for item in raw:
        kind = KINDS.get(item["kind"])
        if kind is not None:
            objects.add(item["kind"], msgspec.convert(item, kind.type))
    return objects


def _compare(
    scenario: str, where: str, expected: dict[str, Any], got: dict[str, Any]
) -> Iterator[Difference]:
    for key in sorted(expected.keys() | got.keys()):
        if key not in expected and key not in TELLING:
            continue
        wanted, came = expected.get(key), got.get(key)
        if wanted != came:
            path = f"{where}: {key}" if where else key
            yield Difference(scenario, path, wanted, came)
