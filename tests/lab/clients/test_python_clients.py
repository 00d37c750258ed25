"""The official Python client and kubernetes_asyncio talk to the lab as to any cluster."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

import pytest

from lab.serving import LabServer, node, pod

#: Their annotations want models where the clients take plain objects as well.
official: Any = import_module("kubernetes")
asynchronous: Any = import_module("kubernetes_asyncio")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def test_the_official_client_lists_creates_patches_watches_and_deletes(
    lab_server: LabServer,
) -> None:
    configuration = official.client.Configuration(host=lab_server.url)
    configuration.api_key = {"authorization": f"Bearer {lab_server.token}"}
    with official.client.ApiClient(configuration) as client:
        api = official.client.CoreV1Api(client)
        api.create_node(node("n1"))
        made = api.create_namespaced_pod("default", pod("web"))
        assert made.spec.restart_policy == "Always"
        version = api.list_namespaced_pod("default").metadata.resource_version

        api.patch_namespaced_pod("web", "default", {"metadata": {"labels": {"a": "b"}}})
        target = official.client.V1ObjectReference(kind="Node", name="n1")
        about = official.client.V1ObjectMeta(name="web")
        binding = official.client.V1Binding(metadata=about, target=target)
        api.create_namespaced_binding("default", binding, _preload_content=False)
        api.delete_namespaced_pod("web", "default", grace_period_seconds=0)

        seen = [
            (each["type"], each["object"].spec.node_name)
            for each in official.watch.Watch().stream(
                api.list_namespaced_pod, "default", resource_version=version, timeout_seconds=1
            )
        ]
        assert seen == [("MODIFIED", None), ("MODIFIED", "n1"), ("DELETED", "n1")]
        with pytest.raises(official.client.ApiException) as error:
            api.read_namespaced_pod("web", "default")
        assert error.value.status == 404

        deployments = official.client.AppsV1Api(client)
        template = {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        deployments.create_namespaced_deployment(
            "default", {"metadata": {"name": "web"}, "spec": spec}
        )
        scaled = deployments.patch_namespaced_deployment_scale(
            "web", "default", {"spec": {"replicas": 3}}
        )
        assert (scaled.spec.replicas, scaled.status.selector) == (3, "a=b")


def test_the_asynchronous_client_lists_creates_and_watches(lab_server: LabServer) -> None:
    async def talk() -> list[Any]:
        configuration = asynchronous.client.Configuration(host=lab_server.url)
        configuration.api_key = {"BearerToken": f"Bearer {lab_server.token}"}
        async with asynchronous.client.ApiClient(configuration) as client:
            api = asynchronous.client.CoreV1Api(client)
            listed = await api.list_namespaced_pod("default")
            await api.create_namespaced_pod("default", pod("a"))
            await api.delete_collection_namespaced_pod("default")
            version = listed.metadata.resource_version
            way = {"resource_version": version, "timeout_seconds": 1}
            async with asynchronous.watch.Watch() as watch:
                stream = watch.stream(api.list_namespaced_pod, "default", **way)
                return [(each["type"], each["object"].metadata.name) async for each in stream]

    assert asyncio.run(talk()) == [("ADDED", "a"), ("DELETED", "a")]
