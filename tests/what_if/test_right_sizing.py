"""Other requests for workloads, and the nodes that come free."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import manifests
from cases import cases
from manifests import Manifest, workload
from podium.errors import InputError
from podium.library.profile_source import ProfileSource
from podium.render.reports.consolidate import right_sizing_report, right_sizing_summary
from podium.what_if.consolidate.recommendations import (
    Recommendation,
    Recommendations,
    autoscalers_in,
    parse_recommendations,
    read_recommendations,
)
from podium.what_if.consolidate.right_sizing import RightSizing, read_prices, right_size
from podium.what_if.plan.inputs import cluster_documents

WEB = Recommendation("default", "Deployment", "web", "c", {"cpu": "500m", "memory": "512Mi"})


def node(name: str) -> Manifest:
    return manifests.node(name, labels={"node.kubernetes.io/instance-type": "m"})


def deployment(name: str, replicas: int, cpu: str) -> Manifest:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return workload("Deployment", name, replicas, {"containers": [container]})


def sized(
    tmp_path: Path,
    *recommended: Recommendation,
    items: list[dict[str, Any]] | None = None,
    share: float = 1.0,
    prices: dict[str, float] | None = None,
) -> RightSizing:
    cluster = items or [*map(node, "abc"), deployment("web", 6, "1500m")]
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all(cluster))
    return right_size(
        cluster_documents([str(file)]).documents,
        Recommendations(list(recommended)),
        ProfileSource().choose(),
        share=share,
        prices=prices,
    )


def test_lower_requests_empty_nodes_and_say_what_is_saved(tmp_path: Path) -> None:
    found = sized(tmp_path, WEB, prices={"m": 0.1})

    assert (found.before.needed, found.after.needed, found.freed) == (3, 1, 2)
    assert (found.price_before, found.price_after) == (0.3, 0.1)
    [resized] = found.resized
    assert (resized.before["cpu"], resized.after["cpu"], resized.pods) == (9000, 3000, 6)
    assert found.plan.pending == []
    assert right_sizing_summary(found) == "6 pods of 1 workload resized: 2 nodes fewer needed"
    assert [(each.resource, each.free) for each in found.stranded] == [
        ("cpu", 1000),
        ("memory", 5 << 30),
    ]


def test_a_lower_request_that_empties_no_node_saves_nothing(tmp_path: Path) -> None:
    less = Recommendation("default", "Deployment", "web", "c", {"cpu": "1400m"})

    found = sized(tmp_path, less)

    assert found.freed == 0
    assert "no node comes free, so nothing is saved" in right_sizing_summary(found)


def test_higher_requests_leave_pods_without_a_node(tmp_path: Path) -> None:
    more = Recommendation("default", "Deployment", "web", "c", {"cpu": "3"})

    found = sized(tmp_path, more)

    assert found.plan.makes_worse
    assert "find no node" in right_sizing_summary(found)
    assert any("Insufficient cpu" in line for line, _ in right_sizing_report(found))


def test_what_frees_most_is_rolled_out_first_and_a_share_stops_early(tmp_path: Path) -> None:
    items = [*map(node, "abc"), deployment("big", 4, "2"), deployment("small", 2, "1")]
    recommended = (
        Recommendation("default", "Deployment", "small", "c", {"cpu": "900m"}),
        Recommendation("default", "Deployment", "big", "c", {"cpu": "1"}),
    )

    whole = sized(tmp_path, *recommended, items=items)
    half = sized(tmp_path, *recommended, items=items, share=0.5)

    order = ["Deployment/default/big", "Deployment/default/small"]
    assert [each.workload for each in whole.resized] == order
    assert [each.workload for each in half.resized] == order[:1]


def test_recommendations_for_others_are_said(tmp_path: Path) -> None:
    other = Recommendation("default", "Deployment", "gone", "c", {"cpu": "1"})
    wrong = Recommendation("default", "Deployment", "web", "x", {"cpu": "1"})

    found = sized(tmp_path, WEB, other, wrong)

    assert found.notes[:2] == [
        "Deployment/default/gone is not in the input; its recommendation is left out",
        "Deployment/default/web has no container x; left out",
    ]
    with pytest.raises(InputError, match="no recommendation is for a workload"):
        sized(tmp_path, other)


# Sources --------------------------------------------------------------------------------------

KRR = {
    "scans": [
        {
            "object": {
                "cluster": "prod",
                "name": "web",
                "container": "c",
                "pods": [{"name": "web-1", "deleted": False}],
                "namespace": "default",
                "kind": "Deployment",
                "allocations": {"requests": {"cpu": 1.5, "memory": 1073741824.0}},
            },
            "recommended": {
                "requests": {
                    "cpu": {"value": 0.1234, "severity": "CRITICAL"},
                    "memory": {"value": 104857600.0, "severity": "GOOD"},
                },
                "limits": {"cpu": {"value": None, "severity": "GOOD"}},
            },
            "severity": "CRITICAL",
        },
        {
            "object": {
                "name": "idle",
                "container": "c",
                "namespace": "default",
                "kind": "Deployment",
            },
            "recommended": {"requests": {"cpu": {"value": "?"}, "memory": {"value": "?"}}},
        },
    ],
    "score": 42,
    "resources": ["cpu", "memory"],
}
VPA = {
    "apiVersion": "autoscaling.k8s.io/v1",
    "kind": "VerticalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
    "status": {
        "recommendation": {
            "containerRecommendations": [
                {
                    "containerName": "c",
                    "lowerBound": {"cpu": "25m", "memory": "262144k"},
                    "target": {"cpu": "163m", "memory": "262144k"},
                    "upperBound": {"cpu": "10", "memory": "10Gi"},
                }
            ]
        }
    },
}
USAGE = {
    "kind": "PodMetricsList",
    "items": [
        {
            "metadata": {"name": f"web-7d9f8b6c5-{end}", "namespace": "default"},
            "containers": [{"name": "c", "usage": {"cpu": cpu, "memory": "10Mi"}}],
        }
        for end, cpu in (("abcde", "100m"), ("fghij", "250000000n"))
    ],
}
SERIES = {
    "status": "success",
    "data": {
        "resultType": "vector",
        "result": [
            {
                "metric": {
                    "namespace": "default",
                    "pod": f"web-7d9f8b6c5-{end}",
                    "container": "c",
                    "resource": resource,
                },
                "value": [1, number],
            }
            for end, resource, number in (
                ("abcde", "cpu", "0.1"),
                ("fghij", "cpu", "0.25"),
                ("abcde", "memory", "1000"),
            )
        ],
    },
}
CSV = "namespace,kind,name,container,cpu,memory\ndefault,Deployment,web,c,163m,\n"


@cases(
    ("text", "kind", "requests"),
    {
        "krr": (json.dumps(KRR), "Deployment", {"cpu": "124m", "memory": "104857600"}),
        "vpa": (yaml.safe_dump(VPA), "Deployment", {"cpu": "163m", "memory": "262144k"}),
        "a list of vpa": (
            json.dumps({"kind": "List", "items": [VPA]}),
            "Deployment",
            {"cpu": "163m", "memory": "262144k"},
        ),
        "usage now": (json.dumps(USAGE), "", {"cpu": "250000000n", "memory": "10Mi"}),
        "prometheus": (json.dumps(SERIES), "", {"cpu": "250m", "memory": "1000"}),
        "csv": (CSV, "Deployment", {"cpu": "163m"}),
    },
)
def test_every_source_recommends(text: str, kind: str, requests: dict[str, str]) -> None:
    found = parse_recommendations(text)

    assert found.found == [Recommendation("default", kind, "web", "c", requests)]


def test_krr_without_data_is_noted() -> None:
    notes = parse_recommendations(json.dumps(KRR)).notes

    assert notes == ["Deployment/default/idle: krr has no value for container c"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "cannot be read"),
        ("a: [", "is not readable YAML at line 2, column 1"),
        ("kind: Pod\n", "holds no recommendation"),
        ("namespace,name,container,cpu\n", "lacks the columns kind"),
        ("namespace,kind,name,container\n", "lacks the columns of resources"),
        ("namespace,kind,name,container,cpu\na,b,c,d,lots\n", "line 2: cpu"),
        (json.dumps({"data": {"result": [{"metric": {"pod": "a"}}]}}), "has the labels pod"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        parse_recommendations(text)


def test_autoscalers_come_from_the_files_of_the_cluster(tmp_path: Path) -> None:
    file = tmp_path / "dump.yaml"
    file.write_text(yaml.safe_dump_all([node("a"), VPA]))

    assert [each.name for each in autoscalers_in([str(file)]).found] == ["web"]
    file.write_text(yaml.safe_dump(node("a")))
    with pytest.raises(InputError, match="holds no VerticalPodAutoscaler"):
        autoscalers_in([str(file)])


def test_an_address_that_does_not_answer_is_a_sentence() -> None:
    with pytest.raises(InputError, match="does not answer"):
        read_recommendations("http://127.0.0.1:9/api/v1/query?query=up")


def test_prices_are_lines(tmp_path: Path) -> None:
    file = tmp_path / "prices"
    file.write_text("# per hour\nm,0.1\nlarge , 0.2\n")
    assert read_prices(str(file)) == {"m": 0.1, "large": 0.2}

    file.write_text("m 0.1\n")
    with pytest.raises(InputError, match="line 1 is no price"):
        read_prices(str(file))
    with pytest.raises(InputError, match="no price for nodes of type 'm'"):
        sized(tmp_path, WEB, prices={"other": 1.0})
