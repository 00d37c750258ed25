"""Bodies of `application/vnd.kubernetes.protobuf`."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from lab.serving import LabServer

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
