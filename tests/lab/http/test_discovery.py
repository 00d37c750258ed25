"""Discovery: versions, groups and resources, health, and the paths of OpenAPI."""

from __future__ import annotations

import pytest

from lab.serving import LabServer
from podium.lab.api.resources import TABLE
from podium.releases import DEFAULT_RELEASE, release_of


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


def test_the_version_is_that_of_the_default_release(lab_server: LabServer) -> None:
    found = lab_server.get("/version")

    assert release_of(found["gitVersion"]) is DEFAULT_RELEASE
    assert f"v{found['major']}.{found['minor']}" == DEFAULT_RELEASE.name


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
