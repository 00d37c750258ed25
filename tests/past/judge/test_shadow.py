"""What Podium would have done beside a scheduler that does the work."""

from __future__ import annotations

from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from builders import node, pod, taint
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import Pod
from podium.past.format.reading import ObjectChange
from podium.past.judge.agreement import (
    AS_GOOD,
    DIFFERENT,
    LOWER,
    REJECTED,
    SAME,
    UNPLACED,
    Agreement,
    PlacementComparison,
)
from podium.past.judge.judge import Judge
from podium.past.replay.replay import Rules
from podium.scheduler.telemetry.metrics import Metrics
from scheduler.fakes import PROFILES

PROFILE, BEHAVIOUR = PROFILES["v1.37"]


class Beside:
    """A shadow with its judge, and what the cluster shows."""

    def __init__(self, *items: Object) -> None:
        self.shadow = Agreement()
        rules = Rules({PROFILE.scheduler_name: PROFILE}, BEHAVIOUR)
        self.judge = Judge(rules, self.shadow.judged)
        self.shadow.waiting = lambda: self.judge.waiting
        self.time = 0.0
        for item in items:
            self.seen(item.kind, None, item)

    def seen(self, kind: str, old: Object | None, new: Object | None) -> None:
        self.time += 1
        self.judge.feed(ObjectChange(self.time, kind, old, new))
        self.judge.advance()

    def places(self, waiting: Pod, name: str) -> PlacementComparison | None:
        """A pod comes, and is bound to the node of this name."""
        self.seen("Pod", None, waiting)
        self.seen("Pod", waiting, replace(waiting, spec=replace(waiting.spec, node_name=name)))
        found = self.shadow.differences
        return found[0] if found else None


def test_the_same_node_is_agreement() -> None:
    beside = Beside(node("n1"))

    assert beside.places(pod(), "n1") is None
    assert beside.shadow.counts[SAME] == 1
    assert beside.shadow.ratio == 1.0


def test_a_node_as_good_as_ours_is_agreement() -> None:
    beside = Beside(node("n1"), node("n2"), node("n3"))
    found = beside.places(pod(), "n2")

    assert found is not None
    assert (found.ours, found.theirs, found.kind) == ("n1", "n2", AS_GOOD)
    assert found.why[0].startswith("it fits, and its total ")
    assert beside.shadow.ratio == 1.0


def test_a_node_with_fewer_points_is_told_by_how_much_and_why() -> None:
    beside = Beside(node("small", cpu="2", memory="2Gi"), node("large", cpu="64", memory="64Gi"))
    found = beside.places(pod(requests={"cpu": "1", "memory": "1Gi"}), "small")

    assert found is not None
    assert (found.ours, found.kind, found.detail) == ("large", DIFFERENT, LOWER)
    assert found.why[0].startswith("it fits, but its total ")
    assert "NodeResourcesFit" in {gap.priority for gap in found.gaps}
    assert beside.shadow.ratio == 0.0
    assert "points for large: NodeResourcesFit +" in beside.shadow.table()
    assert beside.shadow.as_json()["different"] == beside.shadow.as_json()["lower"] == 1


def test_a_node_that_we_turn_down_is_told_with_the_predicate() -> None:
    beside = Beside(node("n1"), node("tainted", taints=[taint("gpu")]))
    found = beside.places(pod(), "tainted")

    assert found is not None
    assert found.detail == REJECTED
    assert found.why[0] == "TaintToleration rejected it: node(s) had untolerated taint(s)"


def test_a_pod_that_we_would_not_place_is_told_with_our_message() -> None:
    beside = Beside(node("n1", cpu="2"))
    found = beside.places(pod(requests={"cpu": "4"}), "n1")

    assert found is not None
    assert (found.ours, found.kind, found.detail) == (None, DIFFERENT, UNPLACED)
    assert found.why[0].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert found.why[1].startswith("NodeResourcesFit rejected it")


def test_pods_that_ran_before_and_pods_that_are_gone_are_not_compared() -> None:
    beside = Beside(node("n1"))
    beside.seen("Pod", None, pod("old", node="n1"))
    beside.seen("Pod", None, pod("gone"))
    assert beside.shadow.waiting() == 1
    beside.seen("Pod", pod("gone"), None)

    found = beside.shadow

    assert (found.pods, found.waiting(), found.undecided) == (0, 0, 0)


def test_a_placement_is_judged_when_those_before_it_are_known() -> None:
    """The second pod is bound first; both are judged in the order in which they came."""
    beside = Beside(node("n1", cpu="4"), node("n2", cpu="4"))
    first, second = (pod(name, requests={"cpu": "3"}) for name in ("first", "second"))
    beside.seen("Pod", None, first)
    beside.seen("Pod", None, second)
    beside.seen("Pod", second, replace(second, spec=replace(second.spec, node_name="n2")))
    before = (beside.shadow.pods, beside.shadow.waiting())
    beside.seen("Pod", first, replace(first, spec=replace(first.spec, node_name="n1")))
    found = beside.shadow

    assert before == (0, 2)
    assert (found.counts[SAME], found.pods, found.waiting()) == (2, 2, 0)


def test_a_pod_that_is_never_bound_is_given_up_after_a_while() -> None:
    beside = Beside(node("n1", cpu="4"), node("n2", cpu="4"))
    first, second = (pod(name, requests={"cpu": "1"}) for name in ("first", "second"))
    beside.seen("Pod", None, first)
    beside.seen("Pod", None, second)
    beside.seen("Pod", second, replace(second, spec=replace(second.spec, node_name="n2")))
    beside.time += 31
    beside.seen("Node", None, node("n3"))

    found = beside.shadow

    assert (found.pods, found.counts[DIFFERENT]) == (1, 0)
    assert found.waiting() == 1


def test_agreement_is_a_metric() -> None:
    beside, metrics = Beside(node("n1", cpu="4"), node("n2", cpu="4")), Metrics()
    metrics.more.append(beside.shadow.families)
    beside.places(pod(requests={"cpu": "1"}), "n1")
    beside.places(pod("q", requests={"cpu": "1"}), "n1")
    beside.places(pod("r"), "n2")

    found = {
        (sample.name, sample.labels.get("result", "")): sample.value
        for family in text_string_to_metric_families(metrics.exposition()[0].decode())
        for sample in family.samples
    }

    assert found["podium_shadow_placements_total", "same"] == 2
    assert found["podium_shadow_placements_total", "different"] == 1
    assert found["podium_shadow_placements_total", "as_good_in_another_order"] == 0
    assert found["podium_shadow_agreement_ratio", ""] == 1 - 1 / 3
