"""What Podium would have done beside a scheduler that does the work."""

from __future__ import annotations

from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from builders import node, pod, simulation, taint
from daemon.attempts import tried
from podium.daemon.metrics import Metrics
from podium.daemon.shadow import Shadow
from podium.objects.kinds.pod import Pod
from podium.profiles.config.build import default_config, from_config
from podium.profiles.policy.build import Options
from podium.render.decision.comparison import (
    LOWER,
    REJECTED,
    SAME,
    TIED,
    UNPLACED,
    PlacementComparison,
)

V1_36 = from_config(default_config({}), Options())[0]


def on(waiting: Pod, name: str) -> Pod:
    return replace(waiting, spec=replace(waiting.spec, node_name=name))


def against(shadow: Shadow, waiting: Pod, name: str, *items: object) -> PlacementComparison | None:
    """We decide in a world of these objects, and the pod goes to the node of this name."""
    world = simulation(*items, profile=V1_36)  # type: ignore[arg-type]
    shadow.pod_seen(None, waiting)
    shadow.attempted(tried(world, waiting, recording=True))
    shadow.pod_seen(waiting, on(waiting, name))
    found = shadow.agreement().differences
    return found[0] if found else None


def test_the_same_node_is_agreement() -> None:
    shadow = Shadow()

    assert against(shadow, pod(), "n1", node("n1")) is None

    assert shadow.agreement().counts[SAME] == 1
    assert shadow.agreement().ratio == 1.0


def test_a_node_as_good_as_ours_is_a_tie() -> None:
    found = against(Shadow(), pod(), "n2", node("n1"), node("n2"), node("n3"))

    assert found is not None
    assert (found.ours, found.theirs, found.kind) == ("n1", "n2", TIED)
    assert found.why[0].startswith("it fits, and its total ")


def test_a_node_with_fewer_points_is_told_by_how_much_and_why() -> None:
    shadow = Shadow()
    found = against(
        shadow,
        pod(requests={"cpu": "1", "memory": "1Gi"}),
        "small",
        node("small", cpu="2", memory="2Gi"),
        node("large", cpu="64", memory="64Gi"),
    )

    assert found is not None
    assert (found.ours, found.kind) == ("large", LOWER)
    assert found.why[0].startswith("it fits, but its total ")
    assert "NodeResourcesFit" in {gap.priority for gap in found.gaps}
    assert shadow.agreement().ratio == 0.0
    assert "points for large: NodeResourcesFit +" in shadow.table()


def test_a_node_that_we_turn_down_is_told_with_the_predicate() -> None:
    found = against(Shadow(), pod(), "tainted", node("n1"), node("tainted", taints=[taint("gpu")]))

    assert found is not None
    assert (found.kind, found.why) == (
        REJECTED,
        (
            "TaintToleration rejected it: node(s) had untolerated taint(s)",
            "evicting pods there would not help",
        ),
    )


def test_a_pod_that_we_would_not_place_is_told_with_our_message() -> None:
    found = against(Shadow(), pod(requests={"cpu": "4"}), "n1", node("n1", cpu="2"))

    assert found is not None
    assert (found.ours, found.kind) == (None, UNPLACED)
    assert found.why[0].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert found.why[1].startswith("NodeResourcesFit rejected it")


def test_pods_that_ran_before_and_pods_that_are_gone_are_not_compared() -> None:
    shadow = Shadow()
    world = simulation(node("n1"), profile=V1_36)
    shadow.pod_seen(None, pod("old", node="n1"))
    gone = pod("gone")
    shadow.attempted(tried(world, gone, recording=True))
    assert shadow.agreement().waiting == 1
    shadow.pod_seen(gone, None)
    shadow.pod_seen(pod("quick"), pod("quick", node="n1"))

    found = shadow.agreement()

    assert (found.pods, found.waiting, found.undecided) == (0, 0, 1)


def test_without_recording_the_reason_is_not_made_up() -> None:
    shadow = Shadow()
    world = simulation(node("n1"), node("n2", cpu="1"), profile=V1_36)
    waiting = pod(requests={"cpu": "2"})
    shadow.attempted(tried(world, waiting))
    shadow.pod_seen(waiting, on(waiting, "n2"))

    [found] = shadow.agreement().differences

    assert found.why == ("the verdict on that node was not recorded",)


def test_agreement_is_a_metric() -> None:
    shadow, metrics = Shadow(), Metrics()
    metrics.more.append(shadow.families)
    against(shadow, pod(), "n1", node("n1"))
    against(shadow, pod("q"), "n2", node("n1"), node("n2"))

    found = {
        (sample.name, sample.labels.get("result", "")): sample.value
        for family in text_string_to_metric_families(metrics.exposition()[0].decode())
        for sample in family.samples
    }

    assert found["podium_shadow_placements_total", "same"] == 1
    assert found["podium_shadow_placements_total", "tied"] == 1
    assert found["podium_shadow_agreement_ratio", ""] == 1.0
