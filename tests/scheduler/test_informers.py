"""Kinds that an API server does not serve: that is said, and they are asked for again."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
import yaml

from podium.kube.connections import Answer
from podium.virtual_cluster.cluster import SimulatedCluster
from podium.virtual_cluster.in_process_api import InProcessApi
from scheduler.one_device import ONE_DEVICE


class Older(InProcessApi):
    """An API server that serves some groups later."""

    hidden: frozenset[str] = frozenset({"resource.k8s.io", "policy"})
    fails = False

    async def exchange(
        self, method: str, path: str, params: Mapping[str, str] | None, *rest: Any
    ) -> Answer:
        if self.fails and path == "/apis":
            return Answer(500, {}, b"{}")
        answer = await super().exchange(method, path, params, *rest)
        if path != "/apis":
            return answer
        found = msgspec.json.decode(answer.body)
        found["groups"] = [each for each in found["groups"] if each["name"] not in self.hidden]
        return Answer(answer.status, answer.headers, msgspec.json.encode(found))


def test_kinds_that_are_served_later_are_considered_then(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with SimulatedCluster() as cluster, caplog.at_level(logging.WARNING):
        cluster.load(list(yaml.safe_load_all(ONE_DEVICE)))
        api = Older(cluster.server)
        cluster.add_scheduler(client=api)
        cluster.run_for(130)
        before = cluster.registry.get("Pod", "claims", "default")["spec"].get("nodeName", "")
        said = caplog.text
        api.fails = True
        cluster.run_for(120)
        api.fails, api.hidden = False, frozenset({"policy"})
        cluster.run_for(130)
        after = cluster.registry.get("Pod", "claims", "default")["spec"].get("nodeName", "")

    assert (before, after) == ("", "n1")
    missing = "DeviceClass, DeviceTaintRule, PodDisruptionBudget, ResourceClaim, ResourceSlice"
    assert said.count("not served by this API server, and not considered until they are") == 1
    assert missing in said
    assert caplog.text.count("discovery: ") == 1
    served = "served by now, and considered from now on: "
    served += "DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice"
    assert caplog.text.count(served) == 1
