"""A remembered answer equals a fresh one under predicates and priorities, whatever happened."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from builders import (
    BROKEN,
    REGION,
    ZONE,
    budget,
    claim,
    claim_volume,
    expression,
    gce,
    node,
    node_term,
    pod,
    replica_set,
    selector,
    service,
    storage_class,
    taint,
    term,
    tolerates,
    volume,
)
from engine.fast.twins import Ground, History, histories
from podium.engine.framework.profile import Profile
from podium.objects.kinds.node import Node
from podium.objects.kinds.pod import Pod
from podium.profiles.policy.build import Options, from_policy, from_provider
from user_rules import MILD, always_out_of_range, extended, grows_out_of_range

pytestmark = pytest.mark.slow

HOST = "kubernetes.io/hostname"
AVOID = "scheduler.alpha.kubernetes.io/preferAvoidPods"
AVOIDING = (
    '{"preferAvoidPods": [{"podSignature": {"podController": {"kind": "ReplicaSet", "uid": "r"}}}]}'
)
POLICY = {"apiVersion": "v1", "kind": "Policy"}
SPREADING = POLICY | {
    "predicates": [
        {"name": "GeneralPredicates"},
        {"name": "MatchInterPodAffinity"},
        {"name": "NoDiskConflict"},
        {"name": "ByZone", "argument": {"serviceAffinity": {"labels": [ZONE]}}},
        {"name": "Labelled", "argument": {"labelsPresence": {"labels": [HOST], "presence": True}}},
    ],
    "priorities": [
        {"name": "LeastRequestedPriority", "weight": 2},
        {"name": "SelectorSpreadPriority", "weight": 3},
        {"name": "InterPodAffinityPriority", "weight": 1},
        {"name": "Apart", "weight": 2, "argument": {"serviceAntiAffinity": {"label": ZONE}}},
        {
            "name": "Ssd",
            "weight": 1,
            "argument": {"labelPreference": {"label": "disk", "presence": True}},
        },
    ],
}
PROFILES: dict[str, Profile] = {
    "default": from_provider("DefaultProvider", Options()),
    "autoscaler": from_provider(
        "ClusterAutoscalerProvider", Options(hard_pod_affinity_symmetric_weight=7, ties="first")
    ),
    "policy": from_policy(SPREADING, Options()),
    "all predicates": from_policy(POLICY | {"alwaysCheckAllPredicates": True}, Options()),
    "conditions": from_provider(
        "DefaultProvider", Options(feature_gates={"TaintNodesByCondition": False})
    ),
    "user rules": extended(from_provider("DefaultProvider", Options()), *MILD),
    "user rules beyond 10": extended(
        from_provider("DefaultProvider", Options()), grows_out_of_range, always_out_of_range
    ),
}

#: What a pod can be like. Names and uids come later.
PODS: dict[str, dict[str, Any]] = {
    "basic": {"requests": {"cpu": "1", "memory": "1Gi"}},
    "large": {"requests": {"cpu": "3", "memory": "3Gi"}, "priority": 5},
    "nothing": {},
    "app": {"labels": {"app": "a"}, "requests": {"cpu": "500m"}},
    "owned": {"labels": {"app": "a"}, "owner": ("ReplicaSet", "r"), "requests": {"cpu": "1"}},
    "alone": {"labels": {"app": "b"}, "anti": [term({"app": "b"}, HOST)]},
    "zone alone": {"labels": {"app": "c"}, "anti": [term({"app": "c"}, ZONE)], "priority": 3},
    "together": {"labels": {"app": "d"}, "affinity": [term({"app": "d"}, ZONE)]},
    "near a": {"affinity": [term({"app": "a"}, HOST)], "requests": {"cpu": "1"}},
    "likes": {"labels": {"app": "a"}, "prefers": [(5, term({"app": "a"}, ZONE))]},
    "dislikes": {"labels": {"app": "e"}, "avoids": [(3, term({"app": "a"}, HOST))]},
    "both": {"prefers": [(2, term({"app": "b"}, HOST))], "avoids": [(7, term({"app": "d"}, ZONE))]},
    "port": {"ports": [80], "requests": {"cpu": "100m"}},
    "chooses": {"node_selector": {"disk": "ssd"}, "requests": {"cpu": "1"}},
    "prefers ssd": {"prefers_nodes": [(4, node_term(expression("disk", "In", "ssd")))]},
    "tolerates": {"tolerations": [tolerates("t", "Exists")], "requests": {"cpu": "1"}},
    "image": {"image": "app:1", "requests": {"memory": "1Gi"}},
    "disk": {"volumes": [gce("shared")]},
    "claim": {"volumes": [claim_volume("data")]},
    "gpu": {"requests": {"example.com/gpu": 1}},
    "broken": {"affinity": [term(BROKEN, ZONE)]},
    "broken anti": {"labels": {"app": "a"}, "anti": [term(BROKEN, ZONE)]},
    "urgent": {"requests": {"cpu": "4", "memory": "1Gi"}, "priority": 9},
    "urgent alone": {"labels": {"app": "b"}, "anti": [term({"app": "b"}, HOST)], "priority": 8},
    "polite": {"requests": {"cpu": "4"}, "priority": 9, "preemption_policy": "Never"},
}
#: What a node can be like.
NODE_KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "small": {"cpu": "2", "memory": "2Gi", "pods": 2},
    "ssd": {"labels": {"disk": "ssd"}},
    "tainted": {"taints": [taint("t")]},
    "softly tainted": {"taints": [taint("t", effect="PreferNoSchedule")]},
    "cordoned": {"unschedulable": True},
    "image": {"images": {"app:1": 600 * 1024 * 1024}},
    "gpu": {"resources": {"example.com/gpu": 2}},
    "avoiding": {"annotations": {AVOID: AVOIDING}},
    "pressed": {"conditions": {"Ready": "True", "MemoryPressure": "True"}},
    "not ready": {"conditions": {"Ready": "False"}},
}
#: Objects besides nodes and pods, by the name under which a history adds and drops them.
OTHERS: dict[str, tuple[str, Any]] = {
    "service a": ("services", service("a", {"app": "a"})),
    "service b": ("services", service("b", {"app": "b"})),
    "set a": ("replica_sets", replica_set("a", selector({"app": "a"}))),
    "set b": ("replica_sets", replica_set("b", selector({"app": "b"}))),
    "claim": ("claims", claim("data", volume="v")),
    "unbound claim": ("claims", claim("data", storage_class="late")),
    "class": ("storage_classes", storage_class("late")),
    "volume": ("volumes", volume("v", claimed_by="data")),
    "volume near n1": (
        "volumes",
        volume("v", storage_class="late", reachable=[node_term(expression(HOST, "In", "n1"))]),
    ),
    "budget": ("budgets", budget("a", selector({"app": "a"}))),
}


def made_pod(name: str, kind: str, **more: Any) -> Pod:
    return pod(name, **{**PODS[kind], **more})


def made_node(name: str, kind: str, zone: str) -> Node:
    options: dict[str, Any] = {"cpu": "4", "memory": "8Gi", "pods": 5} | NODE_KINDS[kind]
    labels = {HOST: name} | options.pop("labels", {})
    if zone:
        labels |= {ZONE: zone, REGION: "r"}
    return node(name, labels=labels, **options)


GROUND = Ground(PROFILES, PODS, made_pod, NODE_KINDS, made_node, OTHERS, ("", "east", "west"))


@settings(max_examples=max(300, settings().max_examples))
@given(history=histories(GROUND))
def test_a_remembered_answer_equals_a_fresh_one(history: History) -> None:
    history.live()
