"""A gang as ARCHITECTURE.md says how to add one: pods that start together or not at all."""

from __future__ import annotations

import pytest

from builders import node, objects, pod
from podium.cluster.simulation import Simulation
from podium.engine.framework.decision import Decision
from podium.engine.framework.declaration import PluginDeclaration, plain
from podium.engine.framework.rule import ALLOWED, Permission, PermitRule, Refused, Scope
from podium.engine.rows.rows import OneRow
from podium.engine.state.pod_class import Incoming
from podium.engine.state.view import View
from podium.generations.v1_36 import V1_36
from podium.objects.kinds.pod import Pod
from profiles.config.documents import built, config
from scheduler.fakes import Cluster, running

NAME, SIZE = "gang", "gang-size"


class Gang(PermitRule):
    """Lets each pod of a gang wait until as many have nodes as the gang has members."""

    name = "Gang"
    always = Scope.CLUSTER

    def permit(self, pod: Incoming, at: OneRow) -> Permission:
        labels = pod.pod.labels
        if NAME not in labels:
            return ALLOWED
        mates = (
            mate
            for mates in at.view.pods.residents
            for mate in mates
            if mate.labels.labels.get(NAME) == labels[NAME] and mate.uid != pod.uid
        )
        missing = int(labels[SIZE]) - sum(1 for _ in mates) - 1
        if missing <= 0:
            return ALLOWED
        return Permission(allowed=False, reason=f"{missing} more are missing", wait_seconds=30.0)


class WithoutService:
    """Holds pods of a gang until its service exists."""

    name = "Gang"

    def hold(self, pod: Incoming, view: View) -> Refused | None:
        name = pod.pod.labels.get(NAME, "")
        known = not name or view.catalog.services.get(name, pod.pod.namespace) is not None
        return None if known else Refused(self.name, f"service {name} does not exist")


GANGS = V1_36.having(
    plugins=(
        *V1_36.plugins,
        PluginDeclaration(
            "Gang",
            "permit",
            "pods of a gang start together",
            permit=plain(Gang),
        ),
    )
)
HELD = V1_36.having(
    plugins=(
        *V1_36.plugins,
        PluginDeclaration(
            "Gang", "preEnqueue", "gangs wait for a service", gate=plain(WithoutService)
        ),
    )
)


def member(name: str, size: int = 2) -> Pod:
    return pod(name, uid=name, labels={NAME: "g", SIZE: str(size)})


def decided(made: Simulation, wanted: Pod) -> Decision:
    """A decision in which pods may wait, as the scheduler of a cluster makes it."""
    return made.decider.decide(wanted, made.profile)


def test_members_wait_until_the_others_have_nodes() -> None:
    made = Simulation(built(config(), GANGS))
    made.load(objects(node("n0"), node("n1")))
    first, second = member("a"), member("b")

    waiting = decided(made, first)
    assert waiting.node is not None
    assert [name for name, _ in waiting.waits] == ["Gang"]
    made.cache.assume(first, waiting.node)
    allowed = decided(made, second)
    assert (allowed.node is not None, allowed.waits) == (True, ())


def test_a_gang_that_stays_incomplete_is_rejected_without_time() -> None:
    made = Simulation(built(config(), GANGS))
    made.load(objects(node("n0")))

    [step] = made.run([member("a")])

    assert step.decision.node is None
    assert "1 more are missing" in step.decision.message


@pytest.mark.parametrize("mates", [0, 1])
def test_the_scheduler_waits_for_the_others_and_gives_up(mates: int) -> None:
    others = [running(f"b{number}", labels=member("b").labels) for number in range(mates)]
    made = Cluster(node("n1"), *others, member("a"), permits=(Gang(),))
    waits = (("Gang", Permission(allowed=False, reason="later", wait_seconds=5.0)),)

    made.bind(waits=waits)

    assert ("default/a" in made.placed()) is (mates == 1)
    told = [error for _, _, error in made.reports.failures]
    assert told == ([] if mates else ["timed out waiting for Gang: 1 more are missing"])


def test_a_gate_holds_a_gang_until_an_object_exists() -> None:
    made = Simulation(built(config(), HELD))
    made.load(objects(node("n0")))

    [step] = made.run([member("a")])

    assert step.decision.held is not None
    assert step.decision.held.reason == "service g does not exist"
