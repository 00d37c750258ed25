"""Tokens of service accounts, and reviews of authentication and authorization."""

from __future__ import annotations

from typing import Any

import pytest

from lab.serving import LabServer

ACCOUNT = "/api/v1/namespaces/default/serviceaccounts"


def token(server: LabServer, **spec: Any) -> dict[str, Any]:
    server.call("POST", ACCOUNT, {"metadata": {"name": "robot"}})
    found: dict[str, Any] = server.post(f"{ACCOUNT}/robot/token", {"spec": spec})
    return found


def with_token(server: LabServer, text: str, path: str = "/api/v1/pods") -> int:
    return server.call("GET", path, headers={"Authorization": f"Bearer {text}"}).status


def test_a_token_of_a_service_account_is_accepted(lab_server: LabServer) -> None:
    status = token(lab_server)["status"]
    assert with_token(lab_server, status["token"]) == 200
    assert with_token(lab_server, status["token"][:-2] + "xx") == 401
    assert with_token(lab_server, "a.b.c") == 401


def test_a_token_ends_with_its_service_account(lab_server: LabServer) -> None:
    text = token(lab_server)["status"]["token"]
    lab_server.delete(f"{ACCOUNT}/robot")
    assert with_token(lab_server, text) == 401
    lab_server.post(ACCOUNT, {"metadata": {"name": "robot"}})
    assert with_token(lab_server, text) == 401


def test_a_token_expires(lab_server: LabServer) -> None:
    text = token(lab_server, expirationSeconds=600)["status"]["token"]
    registry = lab_server.registry
    clock = registry.clock
    registry.clock = lambda: clock() + 601
    assert with_token(lab_server, text) == 401


@pytest.mark.parametrize("seconds", [599, 2**32 + 1])
def test_a_token_has_bounds_of_time(lab_server: LabServer, seconds: int) -> None:
    lab_server.post(ACCOUNT, {"metadata": {"name": "robot"}})
    asked = {"spec": {"expirationSeconds": seconds}}
    reply = lab_server.call("POST", f"{ACCOUNT}/robot/token", asked)
    assert reply.status == 422
    assert "spec.expirationSeconds" in reply.body["message"]


def test_a_review_says_whose_token_it_is(lab_server: LabServer) -> None:
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    text = token(lab_server)["status"]["token"]
    status = lab_server.post(path, {"spec": {"token": text}})["status"]
    assert status["authenticated"] is True
    assert status["user"]["username"] == "system:serviceaccount:default:robot"
    assert lab_server.post(path, {"spec": {"token": "x"}})["status"]["authenticated"] is False


@pytest.mark.parametrize("review", ["subjectaccessreviews", "selfsubjectaccessreviews"])
def test_everyone_may_do_everything(lab_server: LabServer, review: str) -> None:
    attributes = {"verb": "delete", "resource": "nodes"}
    asked = {"spec": {"user": "robot", "resourceAttributes": attributes}}
    path = f"/apis/authorization.k8s.io/v1/{review}"
    assert lab_server.post(path, asked)["status"]["allowed"] is True
