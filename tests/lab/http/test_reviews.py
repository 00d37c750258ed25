"""Reviews of authentication and authorization."""

from __future__ import annotations

from lab.serving import LabServer


def test_questions_about_rights_are_answered_with_yes(lab_server: LabServer) -> None:
    asked = {"spec": {"resourceAttributes": {"verb": "create", "resource": "pods"}}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

    assert lab_server.post(path, asked)["status"]["allowed"] is True
