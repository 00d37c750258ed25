"""Bodies of requests: unknown fields, wrong types, versions of a kind, and protocol buffers."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from lab.serving import LabServer, pod
from manifests import deployment

PODS = "/api/v1/namespaces/default/pods"


def test_unknown_fields_are_rejected_if_the_client_asks_for_that(lab_server: LabServer) -> None:
    item = pod("web", somethingNew=1)

    lenient = lab_server.call("POST", f"{PODS}?dryRun=All", item)
    warned = lab_server.call("POST", f"{PODS}?dryRun=All&fieldValidation=Warn", item)
    strict = lab_server.call("POST", f"{PODS}?fieldValidation=Strict", item)

    assert lenient.status == 201
    assert warned.headers["warning"] == r'299 - "unknown field \"spec.somethingNew\""'
    assert strict.status == 400
    assert 'strict decoding error: unknown field "spec.somethingNew"' in strict.body["message"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", f"{PODS}/web/eviction", {"metadata": -1}),
        ("POST", f"{PODS}/web/eviction", {"deleteOptions": {"preconditions": "u"}}),
        ("POST", f"{PODS}/web/eviction", {"kind": "Pod", "apiVersion": "v1"}),
        ("POST", f"{PODS}/web/eviction", []),
        ("POST", f"{PODS}/web/binding", {"target": ["n"]}),
        ("POST", f"{PODS}/web/binding", {"metadata": {"labels": {"a": 1}}}),
        ("PUT", f"{PODS}/web/status", {"metadata": {"name": "web"}, "status": "Running"}),
        ("PUT", "/apis/apps/v1/namespaces/default/deployments/web/scale", {"spec": 3}),
        ("PUT", "/apis/apps/v1/namespaces/default/deployments/web/scale", {"metadata": "web"}),
        ("DELETE", f"{PODS}/web", {"preconditions": "u"}),
        ("DELETE", f"{PODS}/web", {"dryRun": "All"}),
        ("DELETE", f"{PODS}/web", {"gracePeriodSeconds": "1"}),
        ("DELETE", f"{PODS}/web", {"kind": "Pod", "apiVersion": "v1"}),
        ("DELETE", f"{PODS}/web", 5),
        ("DELETE", PODS, {"propagationPolicy": {}}),
    ],
)
def test_a_body_with_a_part_of_the_wrong_type_is_a_bad_request(
    lab_server: LabServer, method: str, path: str, body: object
) -> None:
    lab_server.post(PODS, pod("web"))
    lab_server.post("/apis/apps/v1/namespaces/default/deployments", deployment(replicas=None))

    reply = lab_server.call(method, path, body)

    assert (reply.status, reply.body["reason"]) == (400, "BadRequest"), reply
    assert lab_server.get(f"{PODS}/web")["metadata"].get("deletionTimestamp") is None


@pytest.mark.parametrize(
    ("form", "patch"),
    [
        ("application/merge-patch+json", {"metadata": 1}),
        ("application/merge-patch+json", {"spec": {"replicas": "2"}}),
        ("application/json-patch+json", [{"op": "replace", "path": "/metadata", "value": []}]),
        ("application/json-patch+json", [{"op": "replace", "path": "/spec", "value": 2}]),
        ("application/strategic-merge-patch+json", {"spec": 1}),
    ],
)
@pytest.mark.parametrize("subresource", ["", "/scale", "/status"])
def test_a_patch_that_leaves_a_part_of_the_wrong_type_is_a_bad_request(
    lab_server: LabServer, form: str, patch: object, subresource: str
) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    lab_server.post(path, deployment(replicas=None))

    reply = lab_server.call("PATCH", f"{path}/web{subresource}", patch, content_type=form)

    assert (reply.status, reply.body["reason"]) == (400, "BadRequest"), reply


@pytest.mark.parametrize("version", ["policy/v1", "policy/v1beta1"])
def test_evictions_of_both_versions_are_understood(lab_server: LabServer, version: str) -> None:
    lab_server.post(PODS, pod("web"))
    eviction = {"apiVersion": version, "kind": "Eviction", "metadata": {"name": "web"}}

    assert lab_server.call("POST", f"{PODS}/web/eviction", eviction).status == 201
    assert lab_server.call("GET", f"{PODS}/web").status == 404


def test_events_and_budgets_are_seen_in_both_versions(lab_server: LabServer) -> None:
    lab_server.post(
        "/api/v1/namespaces/default/events",
        {
            "metadata": {"name": "e"},
            "involvedObject": {"kind": "Pod", "name": "p"},
            "message": "hi",
        },
    )
    lab_server.post(
        "/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets",
        {"metadata": {"name": "b"}, "spec": {"minAvailable": 1}},
    )

    event = lab_server.get("/apis/events.k8s.io/v1/namespaces/default/events/e")
    budget = lab_server.get("/apis/policy/v1/namespaces/default/poddisruptionbudgets/b")

    assert (event["apiVersion"], event["regarding"]["name"], event["note"]) == (
        "events.k8s.io/v1", "p", "hi",
    )  # fmt: skip
    assert budget["apiVersion"] == "policy/v1"
    listed = lab_server.get("/apis/events.k8s.io/v1/events?fieldSelector=regarding.name=p")
    assert [each["note"] for each in listed["items"]] == ["hi"]


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
    # Zero replicas are kept, an absent limit is defaulted.
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
