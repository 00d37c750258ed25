"""Rules of users at the Reserve and Permit stages, in a simulation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders import node, objects, pod
from podium.cluster.simulation import Simulation
from podium.engine.framework.profile import Profile
from podium.profiles.config.build import default_config, from_config
from podium.profiles.policy.build import Options, from_provider
from podium.profiles.user_rules.adapter import PERMIT, RESERVE, UserPermit, UserReserve
from podium.profiles.user_rules.loading import LoadedRules, rules_in, with_rules
from podium.rules import permit, predicate, reserve

# Calls of functions are counted here.
pytestmark = pytest.mark.unverified

PROFILES = {
    "v1.13": from_provider("DefaultProvider", Options()),
    "v1.37": from_config(default_config({}), Options())[0],
}
GPUS = 2


@reserve("PickGpu")
def pick_gpu(pod: Any, node: Any) -> int | None:
    """The first device that no pod on the node has."""
    taken = set(node.reserved("PickGpu").values())
    return next(number for number in range(GPUS) if number not in taken)


@predicate("HasGpu", reason="no device left", depends="cluster")
def has_gpu(pod: Any, node: Any) -> bool:
    return len(node.reserved("PickGpu")) < GPUS


def made(base: Profile, *functions: Any) -> Profile:
    specs = {spec.kind: spec for each in functions for spec in rules_in(each)}
    rules = LoadedRules(
        predicates={s.name: s for s in specs.values() if s.kind == "predicate"},
        reserves={s.name: s for s in specs.values() if s.kind == RESERVE},
        permits={s.name: s for s in specs.values() if s.kind == PERMIT},
    )
    return with_rules(base, rules)


def cluster(profile: Profile, *names: str, fast: bool = True) -> Simulation:
    simulation = Simulation(profile, fast=fast)
    simulation.load(objects(*(node(name) for name in names)))
    return simulation


@pytest.mark.parametrize("base", PROFILES.values(), ids=PROFILES)
@pytest.mark.parametrize("fast", [True, False], ids=["fast", "plain"])
def test_a_rule_chooses_a_device_and_sees_what_it_chose(base: Profile, fast: bool) -> None:
    simulation = cluster(made(base, pick_gpu, has_gpu), "n0", fast=fast)
    steps = list(simulation.run([pod(f"p{number}") for number in range(3)]))

    assert [step.decision.reserved("PickGpu") for step in steps] == [0, 1, None]
    assert steps[2].decision.node is None
    assert "no device left" in steps[2].decision.message


def test_a_device_is_free_again_once_its_pod_has_left() -> None:
    over: list[tuple[str, str, Any]] = []
    spec = replace(rules_in(pick_gpu)[0], undo=lambda *told: over.append(told))
    profile = replace(PROFILES["v1.37"], reserves=(UserReserve(spec),))
    simulation = cluster(profile, "n0")
    list(simulation.run([pod("a", uid="a"), pod("b", uid="b")]))

    simulation.remove("a")
    [step] = simulation.run([pod("c", uid="c")])

    assert over == [("default/a", "n0", 0)]
    assert step.decision.reserved("PickGpu") == 0


def test_a_reserve_rule_that_raises_fails_the_attempt() -> None:
    @reserve("Broken")
    def broken(pod: Any, node: Any) -> None:
        raise ValueError("out of order")

    [step] = cluster(made(PROFILES["v1.37"], broken), "n0").run([pod()])

    assert step.decision.node is None
    assert step.decision.error == 'running Reserve plugin "Broken": ValueError: out of order'


@pytest.mark.parametrize(
    ("answer", "node_name", "message"),
    [
        pytest.param(True, "n0", "", id="allowed"),
        pytest.param("the window is closed", None, "the window is closed", id="rejected"),
        pytest.param(30, None, "waiting for Window", id="would wait, and no time passes"),
        pytest.param(None, None, "rule Window failed", id="answered nonsense"),
    ],
)
def test_a_permit_rule_has_the_last_word(answer: Any, node_name: str | None, message: str) -> None:
    @permit("Window")
    def window(pod: Any, node: Any) -> Any:
        return answer

    [step] = cluster(made(PROFILES["v1.37"], window, pick_gpu), "n0").run([pod()])

    assert step.decision.node == node_name
    assert message in step.decision.message
    assert bool(step.decision.reservations) is (node_name is not None)


def test_a_waiting_pod_says_for_how_long() -> None:
    @permit("Window")
    def window(pod: Any, node: Any) -> float:
        return 2.5

    rule = UserPermit(rules_in(window)[0])
    simulation = cluster(PROFILES["v1.37"], "n0")
    columns = simulation.cache.columns
    from podium.engine.rows.rows import OneRow  # noqa: PLC0415

    permission = rule.permit(columns.pods.incoming(pod()), OneRow(columns, 0))

    assert (permission.allowed, permission.wait_seconds) == (False, 2.5)
