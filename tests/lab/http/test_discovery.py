"""What clients ask first: versions, groups, resources, health, and the binary form of bodies."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from lab.serving import LabServer
from podium.lab.api.resources import TABLE

#: What `kubectl create` of release 1.32 sends for a namespace, a deployment and a budget.
NAMESPACE = "azhzAAoPCgJ2MRIJTmFtZXNwYWNlEhwKFAoEc2hvcBIAGgAiACoAMgA4AEIAEgAaAgoAGgAiAA=="
DEPLOYMENT = (
    "azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50ErYBCh8KA3dlYhIAGgAiACoAMgA4AEIAWgoKA2FwcBIDd2ViEoQBCAAS"
    "DAoKCgNhcHASA3dlYhpqChwKABIAGgAiACoAMgA4AEIAWgoKA2FwcBIDd2ViEkoSLAoDYXBwEgVhcHA6MSoAMgoKABAA"
    "GFAiACoAQgBqAHIAgAEAiAEAkAEAogEAGgAyAEIASgBSAFgAYABoAIIBAIoBAJoBAMIBACICCgAoADgAGgwIABAAGAAg"
    "ACgAOAAaACIA"
)
BUDGET = (
    "azhzAAogCglwb2xpY3kvdjESE1BvZERpc3J1cHRpb25CdWRnZXQSOgoRCgFiEgAaACIAKgAyADgAQgASGQoJCAEQABoD"
    "NTAlEgwKCgoDYXBwEgN3ZWIaCggAGAAgACgAMAAaACIA"
)


def test_every_resource_is_in_both_forms_of_discovery(lab_server: LabServer) -> None:
    plain = set()
    for version in {each.group_version for each in TABLE}:
        path = "/api/v1" if version == "v1" else f"/apis/{version}"
        for each in lab_server.get(path)["resources"]:
            plain.add((version, each["name"]))
    accept = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    aggregated = set()
    for root in ("/api", "/apis"):
        reply = lab_server.call("GET", root, headers=accept)
        assert reply.headers["content-type"].endswith("as=APIGroupDiscoveryList")
        for group in reply.body["items"]:
            for version in group["versions"]:
                name = "/".join(filter(None, (group["metadata"].get("name"), version["version"])))
                for each in version["resources"]:
                    aggregated.add((name, each["resource"]))
                    for below in each.get("subresources", ()):
                        aggregated.add((name, f"{each['resource']}/{below['subresource']}"))

    assert plain == aggregated
    assert ("apps/v1", "deployments/scale") in plain


def test_groups_and_version_are_served(lab_server: LabServer) -> None:
    groups = {each["name"] for each in lab_server.get("/apis")["groups"]}

    assert groups == {each.group for each in TABLE if each.group}
    assert lab_server.get("/api")["versions"] == ["v1"]
    assert lab_server.get("/apis/policy")["preferredVersion"]["version"] == "v1"
    assert lab_server.get("/version")["major"] == "1"


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/ping"])
def test_the_server_is_well(lab_server: LabServer, path: str) -> None:
    assert lab_server.get(path) == "ok"


def test_openapi_is_served_in_all_its_forms(lab_server: LabServer) -> None:
    protobuf = {"Accept": "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}

    assert lab_server.get("/openapi/v2")["swagger"] == "2.0"
    assert (
        "protobuf"
        in lab_server.call("GET", "/openapi/v2", headers=protobuf).headers["content-type"]
    )
    index = lab_server.get("/openapi/v3")["paths"]
    assert lab_server.get(index["apis/apps/v1"]["serverRelativeURL"])["openapi"] == "3.0.0"


def test_questions_about_rights_are_answered_with_yes(lab_server: LabServer) -> None:
    asked = {"spec": {"resourceAttributes": {"verb": "create", "resource": "pods"}}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

    assert lab_server.post(path, asked)["status"]["allowed"] is True


def test_a_log_is_a_sentence(lab_server: LabServer) -> None:
    about = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
    lab_server.post("/api/v1/namespaces/default/pods", about)

    said = lab_server.get("/api/v1/namespaces/default/pods/web/log")

    assert "there are no logs" in said


@pytest.mark.parametrize(
    ("path", "code", "said"),
    [
        ("/api/v1/namespaces/default/pods/web/exec", 400, "no commands can be run in it"),
        ("/api/v1/namespaces/default/pods/web/attach", 400, "nothing to attach to"),
        ("/api/v1/namespaces/default/pods/web/portforward", 400, "it has no ports"),
        ("/api/v1/namespaces/default/pods/web/proxy/index.html", 400, "it answers no requests"),
        ("/api/v1/nodes/n/proxy/pods", 400, "has no kubelet"),
        (
            "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
            404,
            "the lab has no autoscalers",
        ),
        ("/apis/metrics.k8s.io/v1beta1/nodes", 404, "no metrics of pods and nodes"),
        ("/apis/example.com/v1/namespaces/default/things", 404, "could not find the requested"),
    ],
)
def test_what_only_a_real_cluster_has_is_refused_in_a_sentence(
    lab_server: LabServer, path: str, code: int, said: str
) -> None:
    reply = lab_server.call("POST", path, {})

    assert reply.status == code
    assert said in reply.body["message"]


def sent(lab: LabServer, path: str, body: str) -> Any:
    form = "application/vnd.kubernetes.protobuf"
    reply = lab.call("POST", path, base64.b64decode(body), content_type=form)
    assert reply.status == 201, reply
    return reply.body


def test_bodies_in_the_binary_form_are_read_like_json(lab_server: LabServer) -> None:
    namespace = sent(lab_server, "/api/v1/namespaces", NAMESPACE)
    deployment = sent(lab_server, "/apis/apps/v1/namespaces/default/deployments", DEPLOYMENT)
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    budget = sent(lab_server, path, BUDGET)

    assert namespace["metadata"]["name"] == "shop"
    # Nothing asked for is something else than nothing said: the one is kept, the other defaulted.
    assert deployment["spec"]["replicas"] == 0
    assert deployment["spec"]["revisionHistoryLimit"] == 10
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert budget["spec"] == {
        "minAvailable": "50%",
        "selector": {"matchLabels": {"app": "web"}},
    }


@pytest.mark.parametrize("cut", [0, 3, 4, 10, 25, 50])
def test_a_damaged_binary_body_is_refused(lab_server: LabServer, cut: int) -> None:
    body = base64.b64decode(BUDGET)[:cut]
    form = "application/vnd.kubernetes.protobuf"
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"

    assert lab_server.call("POST", path, body, content_type=form).status in {400, 422}
