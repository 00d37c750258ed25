"""`podium schedule`: placements, the reasons of those without one, and every way of printing."""

from __future__ import annotations

import json

import pytest
import yaml

from cases import cases
from cli.conftest import Files, Podium
from manifests import FIVE, deployment, many, node, pod, service


def test_the_first_line_names_the_profile_and_every_pod_has_a_row(
    classic: Podium, write: Files
) -> None:
    file = write([*FIVE, pod("big", cpu="32"), pod("a"), pod("b")])

    result = classic("schedule", file, "--exit-code")

    assert result.code == 1
    assert result.lines[0] == "v1.13 DefaultProvider: 5 nodes, 3 pods, 3 pending"
    assert result.lines[2].split() == ["POD", "NODE", "REASON"]
    assert [line.split()[:2] for line in result.lines[3:6]] == [
        ["default/big", "<none>"],
        ["default/a", "n3"],
        ["default/b", "n3"],
    ]
    assert result.lines[3].endswith(
        "0/5 nodes are available: 1 node(s) were unschedulable, 4 Insufficient cpu."
    )
    assert result.lines[-1] == "2 of 3 pods placed, 1 not"
    assert result.err == ""


def test_all_placed_is_exit_code_0(classic: Podium, write: Files) -> None:
    assert classic("schedule", write([*FIVE, pod("a")])).code == 0


def test_nothing_pending_is_exit_code_0(classic: Podium, write: Files) -> None:
    result = classic("schedule", write(FIVE))

    assert result.code == 0
    assert result.lines[-1] == "no pod is pending for default-scheduler"


def test_only_waiting_pods_of_this_scheduler_are_pending(classic: Podium, write: Files) -> None:
    file = write(
        [
            *FIVE,
            pod("waits"),
            pod("runs", nodeName="n1"),
            pod("goes", deletionTimestamp="2024-01-01T00:00:00Z"),
            pod("done", status={"phase": "Succeeded"}),
            pod("other", schedulerName="mine"),
        ]
    )

    assert classic("schedule", file, "-o", "name").out == "default/waits n3\n"
    mine = classic("schedule", file, "-o", "name", "--scheduler-name", "mine")
    assert mine.out == "default/other n3\n"


def test_pods_go_in_queue_order(classic: Podium, write: Files) -> None:
    file = write(
        [
            node("n"),
            pod("late", creationTimestamp="2024-01-02T00:00:00Z"),
            pod("early", creationTimestamp="2024-01-01T00:00:00Z"),
            pod("important", priority=10, creationTimestamp="2024-01-03T00:00:00Z"),
        ]
    )

    names = [line.split()[0] for line in classic("schedule", file, "-o", "name").lines]
    assert names == ["default/important", "default/early", "default/late"]
    by_arrival = classic("schedule", file, "-o", "name", "--feature-gates", "PodPriority=false")
    assert [line.split()[0] for line in by_arrival.lines] == [
        "default/late",
        "default/early",
        "default/important",
    ]


def test_a_workload_stands_for_its_pods(classic: Podium, write: Files) -> None:
    result = classic("schedule", write([*FIVE, deployment("web", replicas=3)]), "-o", "name")

    assert len(result.lines) == 3
    assert all(line.startswith("default/web-") for line in result.lines)


def test_preemption_names_victims_and_the_reason(classic: Podium, write: Files) -> None:
    cluster = [
        node("n1", cpu="1"),
        node("n2", cpu="1"),
        pod("cheap", cpu="800m", nodeName="n1", priority=1),
        pod("dear", cpu="800m", nodeName="n2", priority=5),
        pod("vip", cpu="500m", priority=100),
    ]
    file = write(cluster)

    result = classic("schedule", file)

    assert result.code == 0
    assert "default/vip   n1     preempted 1 pod on n1" in result.out
    assert result.lines[5].split() == ["EVICTED", "FROM", "FOR", "BECAUSE"]
    assert result.lines[6].split()[:3] == ["default/cheap", "n1", "default/vip"]
    assert result.lines[6].endswith("the highest priority of its victims is the lowest")
    assert result.lines[-1] == "1 of 1 pod placed, 1 pod evicted"


@pytest.mark.parametrize(
    ("flag", "placed"),
    [
        ("--no-preemption", False),
        ("--no-preemption=true", False),
        ("--no-preemption=false", True),
    ],
)
def test_preemption_can_be_turned_off(
    classic: Podium, write: Files, flag: str, placed: bool
) -> None:
    file = write([node("n", cpu="1"), pod("low", "1", nodeName="n"), pod("vip", "1", priority=9)])

    result = classic("schedule", flag, file, "--exit-code", "-o", "name")

    assert result.out == f"default/vip {'n' if placed else '<none>'}\n"
    assert result.code == (0 if placed else 1)


def test_wide_adds_columns(classic: Podium, write: Files) -> None:
    result = classic("schedule", write([*FIVE, pod("a", priority=7)]), "-o", "wide")

    header, row = result.lines[2].split(), result.lines[3].split()
    assert header == ["POD", "NODE", "PRIORITY", "FIT", "TIED", "ATTEMPTS", "REASON"]
    assert row == ["default/a", "n3", "7", "3/5", "1", "1"]


def test_json_is_a_list_of_decisions_one_per_attempt(classic: Podium, write: Files) -> None:
    file = write([node("n", cpu="1"), pod("low", "1", nodeName="n"), pod("vip", "1", priority=9)])

    first, second = classic("schedule", file, "-o", "json").json

    assert (first["kind"], first["apiVersion"]) == ("Decision", "podium/v1")
    assert (first["outcome"], first["attempt"], first["preemption"]["node"]) == (
        "nominated",
        1,
        "n",
    )
    assert (second["outcome"], second["attempt"], second["node"]) == ("placed", 2, "n")


def test_json_names_causes_unless_they_are_not_wanted(classic: Podium, write: Files) -> None:
    wanted = pod("b", "1") | {"spec": {**pod("b", "1")["spec"], "nodeSelector": {"disk": "ssd"}}}
    nodes = [node("n", cpu="1"), node("m", cpu="4"), node("k", cpu="4")]
    file = write([*nodes, pod("a", "2"), wanted])

    with_causes = classic("schedule", file, "-o", "json").json
    without = classic("schedule", file, "-o", "json", "--no-causes").json

    first, second = with_causes
    assert [c["text"] for r in first["rejections"] for c in r["causes"]] == [
        "cpu: wants 2, 1 free of 1 (0 used)"
    ]
    assert all(column["formula"] for column in first["scores"])
    assert "nodeSelector: disk In [ssd]: the node does not have it" in [
        c["text"] for r in second["rejections"] for c in r["causes"]
    ]
    assert not any("causes" in r for each in without for r in each["rejections"])
    assert [each["node"] for each in without] == [each["node"] for each in with_causes]


def test_json_of_nothing_is_an_empty_list(classic: Podium, write: Files) -> None:
    assert classic("schedule", write(FIVE), "-o", "json").json == []


def test_yaml_is_the_whole_pod_with_its_node(classic: Podium, write: Files) -> None:
    written = pod("a", labels={"version": "1e3", "on": "yes"}, hostAliases=[{"ip": "10.0.0.1"}])
    file = write([*FIVE, written, pod("big", cpu="32")])

    result = classic("schedule", file, "-o", "yaml")

    placed, waiting = yaml.safe_load_all(result.out)
    assert placed["spec"] == written["spec"] | {"nodeName": "n3"}
    assert placed["metadata"]["labels"] == {"version": "1e3", "on": "yes"}
    assert 'version: "1e3"' in result.out
    assert "nodeName" not in waiting["spec"]
    assert result.err.startswith("podium: note: default/big is not placed: 0/5 nodes")


def test_what_yaml_writes_can_be_scheduled_again(classic: Podium, write: Files) -> None:
    nodes = write(FIVE, "nodes.json")
    pods = write([deployment("web", 3), service("web")], "pods.json")
    placed = classic("schedule", nodes, pods, "-o", "yaml").out

    again = classic("schedule", nodes, write(placed, "placed.yaml"))

    assert again.code == 0
    assert again.lines[0] == "v1.13 DefaultProvider: 5 nodes, 3 pods, 0 pending"


def recording_of(classic: Podium, *arguments: str) -> str:
    result = classic("schedule", *arguments, "-o", "recording")
    assert len(result.lines) == 1
    return result.out


def test_a_recording_replays_without_differences(
    classic: Podium, podium: Podium, write: Files
) -> None:
    zones = ("b", "a", "b", "a", "c")
    labels = [{"failure-domain.beta.kubernetes.io/zone": zone} for zone in zones]
    nodes = [node(f"n{i}", labels=each) for i, each in enumerate(labels)]
    cluster = write(
        [
            *nodes,
            *(pod(f"low{i}", "3", nodeName=f"n{i}", priority=i) for i in range(5)),
            pod("lost", nodeName="nowhere"),
            deployment("web", 6, cpu="500m"),
            service("web"),
            pod("vip", "2", priority=100),
            pod("promised", "2", priority=50, status={"nominatedNodeName": "n2"}),
            pod("big", "64"),
        ]
    )
    text = recording_of(classic, cluster)
    scenario = json.loads(text)

    order = [o["metadata"]["name"] for o in scenario["objects"] if o["kind"] == "Node"]
    assert order == ["n0", "n1", "n4", "n2", "n3"]  # zones in turn
    result = podium("history", "verify", write(text, "mine.jsonl"), "-o", "json")
    assert result.code == 0
    assert result.json["steps"] == 10
    assert result.json["differences"] == 0


def test_a_recording_holds_its_configuration(podium: Podium, write: Files) -> None:
    policy = write(
        '{"kind":"Policy","apiVersion":"v1","priorities":[{"name":"EqualPriority","weight":2}]}',
        "policy.json",
    )
    flags = ("--no-preemption", "--feature-gates", "TaintNodesByCondition=false")
    text = recording_of(podium, write([*FIVE, pod("a")]), "--policy", policy, *flags)
    scenario = json.loads(text)

    assert scenario["policy"]["priorities"] == [{"name": "EqualPriority", "weight": 2}]
    assert scenario["options"] == {
        "percentageOfNodesToScore": 100,
        "hardPodAffinitySymmetricWeight": 1,
        "disablePreemption": True,
        "featureGates": {"TaintNodesByCondition": False},
    }
    assert podium("history", "verify", write(text, "mine.jsonl")).code == 0


def test_a_recording_has_the_names_of_predicates_that_kube_scheduler_knows(
    podium: Podium, write: Files
) -> None:
    names = ["GeneralPredicates", "MaxPDVolumeCountPredicate", "PodFitsHost"]
    policy = {
        "kind": "Policy",
        "apiVersion": "v1",
        "predicates": [{"name": name} for name in names],
        "priorities": [{"name": "EqualPriority", "weight": 1}],
    }
    path = write(json.dumps(policy), "policy.json")
    text = recording_of(podium, write([*FIVE, pod("a")]), "--policy", path)

    assert [each["name"] for each in json.loads(text)["policy"]["predicates"]] == [
        "GeneralPredicates",
        "MaxEBSVolumeCount",
        "MaxGCEPDVolumeCount",
        "MaxAzureDiskVolumeCount",
        "HostName",
    ]
    assert podium("history", "verify", write(text, "mine.jsonl")).code == 0


def test_a_recording_cannot_hold_other_ties(classic: Podium, write: Files) -> None:
    result = classic("schedule", write(FIVE), "-o", "recording", "--ties", "first")

    assert (result.code, result.out) == (2, "")
    assert result.err == (
        "podium: a recording cannot hold the tie rule first; "
        "round-robin is what recordings of this generation go by\n"
    )


def test_ties_are_broken_as_told(classic: Podium, write: Files) -> None:
    cluster = write([*(node(f"n{i}") for i in range(3)), *(pod(f"p{i}", "0") for i in range(3))])

    def hosts(*flags: str) -> list[str]:
        lines = classic("schedule", cluster, "-o", "name", "--ties", *flags).lines
        return [line.split()[1] for line in lines]

    assert hosts("random:7") == hosts("random:7")
    assert hosts("first")[0] == "n0"
    assert sorted(hosts("round-robin")) == ["n0", "n1", "n2"]


def test_sampling_stops_early(classic: Podium, write: Files) -> None:
    cluster = write([*many(400), pod("a")])

    [decision] = classic(
        "schedule", cluster, "-o", "json", "--percentage-of-nodes-to-score", "30"
    ).json

    assert decision["nodes"]["feasible"] == 120
    assert decision["nodes"]["examined"] < 400


def test_notes_go_to_stderr(classic: Podium, write: Files) -> None:
    odd = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    result = classic("schedule", write([*FIVE, odd, pod("lost", nodeName="gone"), pod("a")]))

    assert result.code == 0
    notes = result.err.splitlines()
    assert all(line.startswith("podium: note: ") for line in notes)
    assert any("ConfigMap 1" in line for line in notes)
    assert any("default/lost on gone" in line for line in notes)


def test_the_limit_of_volumes_comes_from_the_environment(
    classic: Podium, write: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBE_MAX_PD_VOLS", "1")
    disks = [{"name": d, "gcePersistentDisk": {"pdName": d}} for d in ("one", "two")]
    cluster = write([node("n"), pod("a", volumes=disks)])

    assert "1 node(s) exceed max volume count" in classic("schedule", cluster).out


def test_standard_input_is_a_file(classic: Podium) -> None:
    data = "\n---\n".join(map(json.dumps, [node("n"), pod("a")])).encode()

    assert classic("schedule", "-", "-o", "name", stdin=data).out == "default/a n\n"


@cases(
    ("content", "sentence"),
    {
        "truncated YAML": ("kind: [", "is not readable YAML"),
        "binary": (b"\x00\x01\x02", "is binary"),
        "wrong type": ('{"kind":"Node","metadata":{"name":7}}', "metadata.name"),
        "time": ("kind: Pod\nmetadata: {name: a, creationTimestamp: soon}\n", "a time"),
    },
)
def test_bad_input_is_one_sentence(
    classic: Podium, write: Files, content: str | bytes, sentence: str
) -> None:
    result = classic("schedule", write(content, "bad.yaml"))

    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("podium: ")
    assert sentence in result.err
    assert len(result.err.splitlines()) == 1


def test_what_extenders_say_is_not_recorded(podium: Podium, write: Files) -> None:
    policy = {"kind": "Policy", "apiVersion": "v1", "extenders": [{"urlPrefix": "http://x/"}]}
    path = write(json.dumps(policy), "p.json")
    result = podium("schedule", write(FIVE), "--policy", path, "-o", "recording")

    assert result.code == 2
    assert "asks extenders (http://x/), whose answers a recording cannot hold" in result.err


def test_without_a_policy_the_current_generation_decides(podium: Podium, write: Files) -> None:
    gated = pod("gated", schedulingGates=[{"name": "quota"}])
    result = podium("schedule", write([*FIVE, pod("a"), gated]), "--exit-code")

    assert result.code == 1
    assert result.lines[0] == "v1.37 default-scheduler: 5 nodes, 2 pods, 2 pending"
    assert result.lines[3].split() == ["default/a", "n3"]
    assert result.lines[4].split(maxsplit=2)[:2] == ["default/gated", "<none>"]
    assert "quota" in result.lines[4]


def test_a_recording_of_the_current_generation_replays(podium: Podium, write: Files) -> None:
    full = [pod(f"low{i}", "1500m", nodeName=f"n{i}", priority=i) for i in (1, 2)]
    cluster = write([*FIVE, *full, deployment("web", 4), pod("vip", "8", priority=9)])

    text = recording_of(podium, cluster)

    result = podium("history", "verify", write(text, "mine.jsonl"))
    assert (result.code, result.lines[0]) == (0, "recordings of v1.37, replayed")
