"""Errors for what a real cluster has and the lab does not."""

from __future__ import annotations

import pytest

from lab.serving import LabServer


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
            "/apis/custom.metrics.k8s.io/v1beta1/namespaces/default/pods/x",
            404,
            "no custom metrics",
        ),
        ("/apis/external.metrics.k8s.io/v1beta1/x", 404, "no external metrics"),
        ("/apis/example.com/v1/namespaces/default/things", 404, "could not find the requested"),
    ],
)
def test_what_only_a_real_cluster_has_is_refused_in_a_sentence(
    lab_server: LabServer, path: str, code: int, said: str
) -> None:
    reply = lab_server.call("POST", path, {})

    assert reply.status == code
    assert said in reply.body["message"]
