"""Simulations by the public functions: several profiles, extenders, recorded scores."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import podium
from extender.scripted import Scripted

ROOT = Path(__file__).parents[2]
DUMP = str(ROOT / "examples" / "dump.json")
POD = "default/api-5d4f8c7b6-w4m9t"


def asking(url: str, *, ignorable: bool = False) -> podium.Profile:
    extender = {"urlPrefix": url, "filterVerb": "filter", "nodeCacheCapable": True}
    extender |= {"ignorable": ignorable}
    policy = {"apiVersion": "v1", "kind": "Policy", "extenders": [extender]}
    return podium.from_policy(policy)


def only(name: str) -> Any:
    return lambda request: {"nodeNames": [n for n in request["NodeNames"] if n == name]}


def nodes(profile: podium.Profile) -> dict[str, str | None]:
    return {
        step.pod.key: step.decision.node
        for step in podium.simulate(podium.read([DUMP]), profile, notify=lambda _: None)
    }


def test_extenders_are_asked() -> None:
    with Scripted(filter=only("worker-1")) as extender:
        assert nodes(asking(extender.url))[POD] == "worker-1"
        found = podium.explain(podium.read([DUMP]), POD, asking(extender.url))

    assert found.decision.node == "worker-1"
    assert [verb for verb, _ in extender.asked] == ["filter"] * len(extender.asked)


def test_the_scores_of_an_extender_are_in_the_trace() -> None:
    objects = podium.read([DUMP])
    given = {node.name: place for place, node in enumerate(objects.nodes)}
    reply = [{"Host": name, "Score": score} for name, score in given.items()]
    with Scripted(prioritize=reply) as extender:
        asked = {"urlPrefix": extender.url, "prioritizeVerb": "prioritize", "weight": 3}
        policy = {"apiVersion": "v1", "kind": "Policy", "priorities": [], "extenders": [asked]}
        found = podium.explain(objects, POD, podium.from_policy(policy), traced=True)

    trace = found.decision.trace
    assert trace is not None
    [step] = trace.scores
    assert (step.rule, step.weight) == (extender.url, 3)
    assert {each.node: each.score for each in step.nodes} == {
        each.node: given[each.node] for each in step.nodes
    }
    best = trace.sums[0]
    assert best.text == f"{given[best.node]} × 3"
    assert best.total == 3 * given[best.node] > 0


def test_the_trace_shows_how_the_answers_of_extenders_are_scaled() -> None:
    objects = podium.read([DUMP])
    reply = [{"Host": node.name, "Score": 7} for node in objects.nodes]
    with Scripted(prioritize=reply) as extender:
        asked = {"urlPrefix": extender.url, "prioritizeVerb": "prioritize", "weight": 2}
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "extenders": [asked],
        }
        [profile] = podium.from_config(config)
        found = podium.explain(objects, POD, profile, traced=True)

    trace = found.decision.trace
    assert trace is not None
    step = trace.scores[-1]
    assert step.formula == "what the extender answers, times 10"
    assert [(each.map, each.score) for each in step.nodes] == [("7 × 10", 70)] * len(step.nodes)
    assert trace.sums[0].text.endswith(" + 70 × 2")


def test_extenders_are_asked_where_an_event_loop_runs() -> None:
    async def within_a_loop(url: str) -> dict[str, str | None]:
        return nodes(asking(url))

    with Scripted(filter=only("worker-1")) as extender:
        assert asyncio.run(within_a_loop(extender.url))[POD] == "worker-1"


def test_an_ignored_extender_is_told_of_once() -> None:
    told: list[str] = []
    profile = asking("http://127.0.0.1:9", ignorable=True)

    steps = list(podium.simulate(podium.read([DUMP]), profile, notify=told.append))

    assert len(steps) == 2
    assert len(told) == 1
    assert told[0].startswith("extender http://127.0.0.1:9 is ignored: ")


def test_a_bare_simulation_asks_no_extenders() -> None:
    simulation = podium.Simulation(asking("http://127.0.0.1:9"))
    objects = podium.read([DUMP])
    simulation.load(objects)

    with pytest.raises(RuntimeError, match="open_simulation connects to extenders"):
        simulation.attempt(podium.pending(objects)[0])


def test_pods_may_be_tried_in_another_order() -> None:
    objects = podium.read([DUMP])
    waiting = podium.pending(objects)

    steps = podium.simulate(objects, podium.default_profile(), pods=waiting[::-1])

    assert [step.pod.key for step in steps] == [pod.key for pod in waiting[::-1]]


def test_each_profile_decides_about_the_pods_of_its_scheduler() -> None:
    config = (ROOT / "examples" / "configs" / "two-profiles.yaml").read_text("utf-8")
    objects = podium.read([DUMP])

    steps = list(podium.simulate(objects, podium.from_config(config)))

    assert {step.decision.profile for step in steps} == {"v1.37 default-scheduler"}


def test_scores_are_kept_where_asked() -> None:
    objects, profile = podium.read([DUMP]), podium.default_profile()

    [kept, _] = podium.simulate(objects, profile, recording=True)
    [bare, _] = podium.simulate(objects, profile)

    assert [column.name for column in kept.decision.scores][:2] == [
        "ImageLocality",
        "NodeResourcesBalancedAllocation",
    ]
    assert kept.decision.node == bare.decision.node
    assert not bare.decision.scores
