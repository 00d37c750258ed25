"""Which event wakes which pod, where releases differ."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from cases import cases
from cluster.wakeups.test_hints import GPU, NODE, TAINTED, asked, node, pod, requests, waiting
from podium.cluster.wakeups.hints import HintRules
from podium.cluster.wakeups.wakeups import Added, ClusterEvent, Deleted, Updated
from podium.generations.known import GENERATIONS
from podium.objects.kinds.devices import ResourceClaim
from podium.objects.kinds.pod import ExtendedResourceClaimStatus, Pod, PodStatus

RELEASES = ("v1.34", "v1.35", "v1.36", "v1.37")
RULES = {name: HintRules(requests, generation=GENERATIONS[name]) for name in RELEASES}


def term(app: str) -> dict[str, object]:
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}}


def shuns(*apps: str) -> dict[str, object]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term(app) for app in apps]}
    return {"podAntiAffinity": required}


AVOIDS_BOTH = waiting({"app": "me"}, affinity=shuns("a", "b"))
AVOIDS_ME = pod(labels={"app": "x"}, affinity=shuns("me"))
SPREAD = waiting(
    {"app": "a"},
    topologySpreadConstraints=[
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "a"}},
        }
    ],
)
NOMINATED = pod(labels={"app": "a"}, node="", nominated="n")
RELABELLED = pod(labels={"app": "b"}, node="", nominated="n")

WITH_EXTENDED_CLAIM = replace(
    waiting(),
    status=PodStatus(
        extended_resource_claim_status=ExtendedResourceClaimStatus(resource_claim_name="made")
    ),
)


def claim(*, allocated: bool) -> ResourceClaim:
    status: dict[str, object] = {"allocation": {"devices": {"results": []}}} if allocated else {}
    return msgspec.convert({"metadata": {"name": "c"}, "status": status}, ResourceClaim)


@cases(
    ("plugin", "event", "waits", "woken"),
    {
        "changed taints wake all that wait for nodes": (
            "NodeResourcesFit",
            Updated(NODE, TAINTED),
            waiting(wants={"cpu": "1"}),
            "v1.34 v1.35 v1.36",
        ),
        "a taint that went wakes those who did not tolerate it": (
            "TaintToleration",
            Updated(TAINTED, NODE),
            waiting(),
            "v1.34 v1.35 v1.36 v1.37",
        ),
        "a pod went that one of two terms forbids": (
            "InterPodAffinity",
            Deleted(pod(labels={"app": "a"})),
            AVOIDS_BOTH,
            "v1.37",
        ),
        "a pod went that forbids this one": (
            "InterPodAffinity",
            Deleted(AVOIDS_ME),
            waiting({"app": "me"}),
            "v1.36 v1.37",
        ),
        "the pod itself got other labels": (
            "InterPodAffinity",
            Updated(waiting({"app": "me"}), waiting({"app": "you"})),
            waiting({"app": "me"}),
            "v1.36 v1.37",
        ),
        "a nominated pod that counted went": (
            "PodTopologySpread",
            Deleted(NOMINATED),
            SPREAD,
            "v1.36 v1.37",
        ),
        "a nominated pod got other labels": (
            "PodTopologySpread",
            Updated(NOMINATED, RELABELLED),
            SPREAD,
            "v1.36",
        ),
        "a claim with devices was deleted": (
            "DynamicResources",
            Deleted(claim(allocated=True)),
            waiting(),
            "v1.37",
        ),
        "one without": ("DynamicResources", Deleted(claim(allocated=False)), waiting(), ""),
        "the pod itself got a claim for its extended resources": (
            "DynamicResources",
            Updated(waiting(), WITH_EXTENDED_CLAIM),
            waiting(),
            "v1.34 v1.35 v1.36 v1.37",
        ),
        "a node came": (
            "NodeResourcesFit",
            Added(node()),
            waiting(wants={"cpu": "1"}),
            "v1.34 v1.35 v1.36 v1.37",
        ),
    },
)
def test_an_event_wakes_pods_as_the_release_does(
    plugin: str, event: ClusterEvent, waits: Pod, woken: str
) -> None:
    found = [name for name, rules in RULES.items() if asked(plugin, event, waits, rules)]

    assert found == woken.split()


@pytest.mark.parametrize(
    ("release", "label"),
    [("v1.36", "UnschedulablePodAdd"), ("v1.37", "UnscheduledPodAdd")],
)
def test_metrics_name_a_pod_without_a_node_as_the_release_does(release: str, label: str) -> None:
    [request] = RULES[release].requests(Added(pod(node="")), 1)

    assert request.label == label


def test_metrics_name_each_aspect_of_a_change() -> None:
    changed = node({"zone": "b"}, taints=[GPU])

    labels = [each.label for each in RULES["v1.37"].requests(Updated(NODE, changed), 1)]

    assert labels == ["NodeUpdateNodeLabel", "NodeUpdateNodeTaint"]
