"""Tables of placements and the scenario that records them."""

from __future__ import annotations

from builders import node, objects, pod, profile, simulation
from podium.objects.kinds.pod import Pod
from podium.render.columns import aligned
from podium.render.decision.placements import (
    Placement,
    evictions,
    manifests,
    placements,
    problem_sentences,
    report,
    rows,
    summary,
)

RULES = profile()
LOW = pod("low", node="a", requests={"cpu": "1"})
VIP = pod("vip", requests={"cpu": "1"}, priority=5)
BIG = pod("big", requests={"cpu": "64"})


def placed(*pending: Pod) -> list[Placement]:
    return placements(simulation(node("a", cpu="1"), LOW, profile=RULES).run(pending))


def test_attempts_at_one_pod_are_one_row() -> None:
    found = placed(VIP, BIG)

    assert [(each.pod.name, each.node, each.attempts) for each in found] == [
        ("vip", "a", 2),
        ("big", None, 1),
    ]
    assert found[0].evicted() == ("default/low",)
    assert found[1].evicted() == ()
    assert [row[:2] for row in rows(found)] == [
        ("POD", "NODE"),
        ("default/vip", "a"),
        ("default/big", "<none>"),
    ]
    assert summary(found) == "1 of 2 pods placed, 1 not, 1 pod evicted"


def test_evicted_pods_are_in_a_table_and_in_sentences() -> None:
    found = placed(VIP, BIG)

    why = "it is the only node where evicting pods helps"
    assert evictions(found)[1:] == [("default/low", "a", "default/vip", why)]
    assert list(problem_sentences(found)) == [
        f"default/low is evicted from a for default/vip: {why}",
        "default/big is not placed: 0/1 nodes are available: 1 Insufficient cpu.",
    ]
    assert evictions(placed(BIG))[1:] == []


def test_only_pods_that_are_not_placed_are_highlighted() -> None:
    lines = list(report(placed(VIP, BIG), RULES, 1, 3))

    assert lines[0] == ("test: 1 node, 3 pods, 2 pending", {"bold": True})
    styles = {line.split()[0]: style for line, style in lines if line.startswith("default/")}
    assert styles == {
        "default/vip": {},
        "default/big": {"fg": "yellow"},
        "default/low": {},
        "default/big:": {"fg": "yellow"},  # its plain sentence
    }


def test_columns_line_up_and_lines_end_in_no_blanks() -> None:
    table = [("A", "LONGER", "Z"), ("aaaa", "b", ""), ("a\x1b", "b", "the last one, however long")]

    assert aligned(table) == [
        "A       LONGER   Z",
        "aaaa    b",
        "a\\x1b   b        the last one, however long",
    ]


def test_a_manifest_gets_its_node() -> None:
    [vip, big] = manifests(placed(VIP, BIG), objects(VIP, BIG))

    assert (vip["kind"], vip["spec"]["nodeName"]) == ("Pod", "a")
    assert "nodeName" not in big["spec"]
