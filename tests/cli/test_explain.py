"""`podium explain`: the whole picture at 5 nodes and at 500, for waiting and running pods."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from cli.conftest import Files, Podium
from manifests import FIVE, deployment, many, node, pod, service
from render.json_schema import problems

SCHEMA = Path(__file__).parents[2] / "docs" / "decision.schema.json"


def test_the_picture_at_five_nodes(classic: Podium, write: Files) -> None:
    file = write([*FIVE, pod("low", "300m", nodeName="n1"), pod("a")])

    result = classic("explain", "a", file)

    assert result.code == 0
    assert result.err == ""
    assert result.out == (
        "v1.13 DefaultProvider: 5 nodes, 2 pods\n"
        "\n"
        "default/a goes to n3\n"
        "  3 nodes fit, and its total 100038 is 3 more than that of n2 "
        "(BalancedResourceAllocation +2, LeastRequested +1)\n"
        "\n"
        "Rejected: 2 of 5 nodes\n"
        "PREDICATE                REASON                                            NODES   WHICH\n"
        "CheckNodeUnschedulable   node(s) were unschedulable                            1   n4\n"
        "                           the node is cordoned (spec.unschedulable)\n"
        "PodToleratesNodeTaints   node(s) had taints that the pod didn't tolerate       1   n5\n"
        "                           taint for=db:NoSchedule is not tolerated\n"
        "\n"
        "Scores: 3 nodes that fit\n"
        "         Balanced\n"
        "         Resource       Least\n"
        "       Allocation   Requested\n"
        "NODE           ×1          ×1    TOTAL\n"
        "n3              9           9   100038\n"
        "n2              7           8   100035\n"
        "n1              6           7   100033\n"
        "the same for all: ImageLocality 0 ×1, InterPodAffinity 0 ×1, NodeAffinity 0 ×1, "
        "NodePreferAvoidPods 10 ×10000, SelectorSpread 10 ×1, TaintToleration 10 ×1\n"
        "\n"
        "What puts n3 ahead of n2: 3 points\n"
        "PRIORITY                     WEIGHT   n3   n2   POINTS\n"
        "BalancedResourceAllocation        1    9    7       +2\n"
        "LeastRequestedPriority            1    9    8       +1\n"
        "BalancedResourceAllocation: "
        "10 * (1 - the difference between the requested fractions of cpu and memory)\n"
        "  n3: cpu 500m of 8, memory 200Mi of 64Gi; score 9\n"
        "  n2: cpu 500m of 2, memory 200Mi of 8Gi; score 7\n"
        "LeastRequestedPriority: "
        "the mean of cpu and memory: (capacity - requested) * 10 / capacity\n"
        "  n3: cpu 500m of 8, memory 200Mi of 64Gi; score 9\n"
        "  n2: cpu 500m of 2, memory 200Mi of 8Gi; score 8\n"
    )


def test_the_picture_at_five_hundred_nodes(classic: Podium, write: Files) -> None:
    result = classic("explain", "a", write([*many(500), pod("a")]))

    assert len(result.lines) < 40
    assert max(map(len, result.lines)) <= 160
    assert "500 nodes, 1 pod (tables leave out .eu-west-1.compute.internal)" in result.lines[0]
    counts = re.findall(r"^(\w+) .*?  (\d+)   ip-", result.out, re.MULTILINE)
    assert counts == [("GeneralPredicates", "100"), ("PodToleratesNodeTaints", "50")]
    assert "Rejected: 150 of 500 nodes" in result.out
    assert "ip-10-0-0-15 and 96 more" in result.out
    assert "Scores: 350 nodes that fit, the best 10" in result.out
    assert len(re.findall(r"^ip-10-0-\d+-\d+ +\d+", result.out, re.MULTILINE)) == 10


def test_where_priorities_across_are_too_wide_they_go_down(
    classic: Podium, write: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    rather = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
    preferred = [{"weight": 1, "preference": rather}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    file = write(
        [
            node("n1", labels={"disk": "ssd"}),
            node("n2", taints=[{"key": "old", "effect": "PreferNoSchedule"}]),
            node("n3", cpu="8"),
            service("web"),
            pod("runs", nodeName="n3", labels={"app": "web"}),
            pod("a", labels={"app": "web"}, affinity=affinity),
        ]
    )

    out = classic("explain", "a", file).out

    assert re.search(r"^PRIORITY +n1 +n3 +n2$", out, re.MULTILINE)
    assert re.search(r"^NodeAffinity .1 +10 +0 +0$", out, re.MULTILINE)
    assert re.search(r"^TOTAL +\d+ +\d+ +\d+$", out, re.MULTILINE)


def test_a_tie_says_how_it_was_broken(classic: Podium, write: Files) -> None:
    file = write([*(node(f"n{i}") for i in range(3)), pod("a")])

    out = classic("explain", "a", file).out
    assert "3 of the 3 nodes that fit share the best total, " in out
    assert "round robin takes the 1st of them (the counter is at 0)" in out
    assert "the first of them in node order" in classic("explain", "a", file, "--ties=first").out
    assert "chosen at random with seed 5" in classic("explain", "a", file, "--ties", "random:5").out


def test_a_pod_that_fits_nowhere_exits_1_and_says_why(classic: Podium, write: Files) -> None:
    result = classic("explain", "big", write([*FIVE, pod("big", "32")]), "--exit-code")

    assert result.code == 1
    assert result.lines[2:5] == [
        "default/big fits nowhere",
        "  wants 32 CPUs; 4 of 5 nodes have at most 8; 1 of 5 nodes is cordoned",
        "  0/5 nodes are available: 1 node(s) were unschedulable, 4 Insufficient cpu.",
    ]
    assert re.search(
        r"^GeneralPredicates +Insufficient cpu +4   n1, n2, n3, n5$", result.out, re.MULTILINE
    )
    assert re.search(r"^ +cpu: wants 32, 8 free of 8 \(0 used\)", result.out, re.MULTILINE)
    assert re.search(r"^ +the node is cordoned \(spec.unschedulable\)$", result.out, re.MULTILINE)
    assert "evicting pods of lower priority was tried on 4 nodes and helps on none" in result.out


def test_the_only_node_that_fits_needs_no_scores(classic: Podium, write: Files) -> None:
    result = classic("explain", "a", write([*FIVE, pod("a", "7")]))

    assert "of 5 nodes, only this one fits" in result.out
    assert "Scores" not in result.out


CROWDED = [
    node("n1", cpu="1"),
    node("n2", cpu="1"),
    node("n3", cpu="1", unschedulable=True),
    pod("dear", "800m", nodeName="n1", priority=5),
    pod("cheap-1", "400m", nodeName="n2", priority=1),
    pod("cheap-2", "400m", nodeName="n2", priority=1),
    pod("vip", "900m", priority=100),
]


def test_preemption_shows_candidates_their_victims_and_the_winner(
    classic: Podium, write: Files
) -> None:
    result = classic("explain", "vip", write(CROWDED), "--exit-code")

    assert result.code == 1
    assert "default/vip fits nowhere now, but evicting pods from n2 helps" in result.out
    assert "Preemption: tried on 2 nodes, would help on 2" in result.out
    assert "n2 is chosen: the highest priority of its victims is the lowest" in result.out
    rows = [line.split() for line in result.lines[-5:-3]]
    assert rows[0][:5] == ["n2", "0", "1", "2", "2"]
    assert rows[0][5:] == ["default/cheap-1", "(1),", "default/cheap-2", "(1)"]
    assert rows[1] == ["n1", "0", "5", "5", "1", "default/dear", "(5)"]
    assert result.lines[-3:] == [
        (
            "  n2: default/cheap-1 (priority 1): with it back, cpu: wants 900m, "
            "600m free of 1 (400m used)"
        ),
        (
            "  n2: default/cheap-2 (priority 1): with it back, cpu: wants 900m, "
            "600m free of 1 (400m used)"
        ),
        "  no candidate: n3: evicting pods does not change this: node(s) were unschedulable",
    ]


def test_no_preemption_says_so(classic: Podium, write: Files) -> None:
    assert "preemption is off" in classic("explain", "vip", write(CROWDED), "--no-preemption").out


@pytest.mark.parametrize(
    ("name", "sentences"),
    [
        ("n3", ["CheckNodeUnschedulable rejected it", "evicting pods there would not help"]),
        (
            "n1",
            [
                "GeneralPredicates rejected it: Insufficient cpu",
                "evicting default/dear there would help, but n2 is chosen: the highest priority",
            ],
        ),
        ("n2", ["evicting default/cheap-1, default/cheap-2 there would help, and that is what"]),
    ],
)
def test_why_not_this_node(classic: Podium, write: Files, name: str, sentences: list[str]) -> None:
    out = classic("explain", "vip", write(CROWDED), "--node", name).out

    assert f"Why not {name}?" in out
    assert all(sentence in out for sentence in sentences)
    assert re.search(r"^cpu +900m +\d+m? +\d+m? +1$", out, re.MULTILINE)


def test_why_not_a_node_that_fits(classic: Podium, write: Files) -> None:
    file = write([*FIVE, pod("a")])

    out = classic("explain", "a", file, "--node", "n1").out

    assert "it fits, but its total" in out
    assert "less than the best (2nd of 3)" in out
    assert (
        "Why n3?\n  it is the node that was chosen"
        in classic("explain", "a", file, "--node", "n3").out
    )


def test_a_running_pod_is_taken_off_its_node_first(classic: Podium, write: Files) -> None:
    file = write([node("n1", cpu="1"), node("n2", cpu="1"), pod("a", "800m", nodeName="n2")])

    result = classic("explain", "a", file, "--node", "n2", "-o", "json")
    assert result.json["actual"] == "n2"
    assert result.json["nodes"]["feasible"] == 2
    assert result.json["asked"]["room"][0]["used"] == 0

    assert "it runs on n2, but would go to n1 now" in classic("explain", "a", file).out
    stays = write([node("n1"), pod("a", nodeName="n1")], "stays.json")
    assert "it runs on n1, and would go there again" in classic("explain", "a", stays).out


def test_other_pending_pods_are_not_scheduled_before_it(classic: Podium, write: Files) -> None:
    file = write([node("n", cpu="1"), pod("first", "1", priority=9), pod("second", "1")])

    assert classic("explain", "second", file).code == 0


def test_odd_pods_are_noted(classic: Podium, write: Files) -> None:
    file = write(
        [
            *FIVE,
            pod("done", nodeName="n1", status={"phase": "Failed"}),
            pod("goes", deletionTimestamp="2024-01-01T00:00:00Z"),
            pod("other", schedulerName="mine"),
        ]
    )

    assert "note: it has finished (Failed)" in classic("explain", "done", file).out
    assert "note: it is being deleted" in classic("explain", "goes", file).out
    other = classic("explain", "other", file, "-o", "json").json
    assert other["notes"][0].startswith("it belongs to the scheduler mine, not to")
    assert other["notes"][0] in classic("explain", "other", file, "-o", "html").out
    assert "1 pending pod belongs to the scheduler mine" in classic("schedule", file).out


def test_the_steps_can_be_timed(classic: Podium, write: Files) -> None:
    file = write([*FIVE, pod("a")])

    out = classic("explain", "a", file, "--timings").out

    assert re.search(r"^read and check the input +\d+\.\d$", out, re.MULTILINE)
    assert re.search(r"^decide +\d+\.\d$", out, re.MULTILINE)
    steps = classic("explain", "a", file, "--timings=true", "-o", "json").json["timings"]
    assert [step["step"] for step in steps][2:] == [
        "decide",
        "  Basic checks",
        "  Computing predicates",
        "  Prioritizing",
        "  Selecting host",
        "find the causes",
    ]


def test_json_and_yaml_are_the_decision(classic: Podium, write: Files) -> None:
    file = write([*FIVE, pod("a")])

    decision = classic("explain", "a", file, "-o", "json").json

    assert (decision["kind"], decision["node"]) == ("Decision", "n3")
    assert decision == yaml.safe_load(classic("explain", "a", file, "-o", "yaml").out)


def test_html_is_one_self_contained_page(classic: Podium, write: Files) -> None:
    out = classic("explain", "a", write([*FIVE, pod("a")]), "-o", "html").out

    assert out.startswith("<!doctype html>")
    assert '<h1 class="placed">default/a goes to n3</h1>' in out
    assert not re.search(r"(src|href)=|@import|url\(", out)


def test_a_namespace_can_be_named(classic: Podium, write: Files) -> None:
    file = write([*FIVE, pod("a", namespace="one"), pod("a", "32", namespace="two")])

    assert classic("explain", "one/a", file).code == 0
    assert classic("explain", "two/a", file, "--exit-code").code == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("a",), "a is in 2 namespaces; name one: one/a, two/a"),
        (("default/aa",), "there is no pod default/aa; did you mean default/ab?"),
        (("zzz",), "there is no pod zzz; there are a, a, ab, …"),
        (("one/a", "--node", "n33"), "there is no node n33; did you mean n3?"),
        (("idle",), "Deployment default/idle has no pods in the input"),
        (("deployment/webb",), "there is no deployment webb; did you mean deployment/web?"),
        (("tier=front",), "no pod has the labels tier=front"),
        (("a/b/c/d",), "'a/b/c/d' names nothing"),
    ],
)
def test_wrong_names_exit_2_with_help(
    classic: Podium, write: Files, arguments: tuple[str, ...], sentence: str
) -> None:
    pods = [pod("a", namespace="one"), pod("a", namespace="two"), pod("ab")]
    file = write([*FIVE, *pods, deployment("web"), deployment("idle", replicas=0)])

    result = classic("explain", arguments[0], file, *arguments[1:])

    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"podium: {sentence}")


@pytest.mark.parametrize(
    "name", ["web", "default/web", "deployment/web", "deploy/default/web", "app=web"]
)
def test_a_workload_or_a_selector_stands_for_its_pod(
    classic: Podium, write: Files, name: str
) -> None:
    result = classic("explain", name, write([*FIVE, deployment("web", replicas=1)]))

    assert result.code == 0
    assert re.search(r"default/web-\S+ goes to", result.out)


def test_no_nodes_is_an_error_of_the_attempt(classic: Podium, write: Files) -> None:
    result = classic("explain", "a", write([pod("a")]), "--exit-code")

    assert result.code == 1
    failure = "the attempt to schedule default/a failed: no nodes available to schedule pods"
    assert failure in result.out


def test_a_file_that_is_not_there(classic: Podium) -> None:
    result = classic("explain", "a", "missing.yaml")

    assert result.code == 2
    assert result.err == "podium: missing.yaml: cannot be read: no such file or directory\n"


def test_the_current_generation_speaks_of_plugins(podium: Podium, write: Files) -> None:
    result = podium("explain", "a", write([*FIVE, pod("a")]), "--node", "n4")

    assert result.lines[0] == "v1.37 default-scheduler: 5 nodes, 1 pod"
    assert re.search(r"^PLUGIN +REASON +NODES +WHICH$", result.out, re.MULTILINE)
    assert "NodeUnschedulable rejected it: node(s) were unschedulable" in result.out
    assert "PREDICATE" not in result.out
    assert "PRIORITY" not in result.out


def test_the_same_reason_for_good_is_told_apart(podium: Podium, write: Files) -> None:
    full = pod("runs", "7", nodeName="n3")

    out = podium("explain", "a", write([*FIVE, full, pod("a", "6")])).out

    assert re.search(r"^NodeResourcesFit +Insufficient cpu +1   n3$", out, re.MULTILINE)
    wanted = r"^NodeResourcesFit +Insufficient cpu \(evicting pods would not help\) +2   n1, n2$"
    assert re.search(wanted, out, re.MULTILINE)


def test_a_pod_that_is_held_back(podium: Podium, write: Files) -> None:
    gated = pod("a", schedulingGates=[{"name": "quota"}])

    result = podium("explain", "a", write([*FIVE, gated]), "--exit-code")

    assert result.code == 1
    assert result.lines[2] == "default/a is held back by SchedulingGates"
    assert "quota" in result.lines[3]
    assert "Preemption" not in result.out


@pytest.mark.parametrize(
    ("generation", "reason"),
    [
        ("v1.13", "node(s) didn't match the requested hostname"),
        ("v1.36", "node(s) didn't match the requested node name"),
    ],
)
def test_a_pod_that_names_a_node_can_be_tried(
    podium: Podium, write: Files, generation: str, reason: str
) -> None:
    file = write([node("n1"), node("n2"), pod("a", nodeName="n2")])

    result = podium("explain", "a", file, "--keep-node-name", "--profile", generation)

    assert "default/a goes to n2" in result.out
    assert reason in result.out
    assert "the pod names node n2" in result.out


def test_a_decision_is_traced_step_by_step(classic: Podium, write: Files) -> None:
    file = write([*FIVE, pod("low", "300m", nodeName="n1"), pod("a")])

    lines = classic("explain", "a", file, "--trace").lines

    assert "Rule by rule: 5 nodes" in lines
    walked = [line.split()[:4] for line in lines if " ✕ " in line]
    assert walked == [
        ["CheckNodeUnschedulable", "✕", "1", "4"],
        ["PodToleratesNodeTaints", "✕", "1", "3"],
    ]
    assert any("map" in line and "÷" in line and line.endswith("= 9") for line in lines)
    assert lines[-1].startswith("  n3 alone has the best total, 100038")


def test_one_node_is_traced_rule_by_rule(classic: Podium, write: Files) -> None:
    file = write([*FIVE, pod("a")])

    lines = classic("explain", "a", file, "--trace", "--node", "n5").lines

    assert "n5, rule by rule" in lines
    at = next(i for i, line in enumerate(lines) if line.startswith("PodToleratesNodeTaints"))
    assert lines[at].split(maxsplit=2)[1] == "✕"
    assert lines[at + 1].strip() == "taint for=db:NoSchedule is not tolerated"
    assert lines[at + 2].split(maxsplit=1)[1] == "·   not asked"


def test_a_trace_in_json_follows_the_schema(classic: Podium, write: Files) -> None:
    file = write([*FIVE, pod("a")])

    found = classic("explain", "a", file, "--trace", "-o", "json").json

    schema = json.loads(SCHEMA.read_text("utf-8"))
    assert problems(found, schema, schema) == []
    assert [step["left"] for step in found["trace"]["filters"]][-1] == 3
    assert {each["node"] for each in found["trace"]["sums"]} >= {"n3"}
