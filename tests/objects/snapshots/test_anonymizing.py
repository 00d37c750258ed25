"""Renamed consistently, a cluster is decided about as before."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import node, pod, simulation
from podium.engine.framework.decision import Decision
from podium.objects.kinds.meta import Object
from podium.objects.kinds.registry import KINDS
from podium.objects.reading.decoding import decode
from podium.objects.snapshots.anonymization import anonymize
from podium.objects.snapshots.kept_fields import trimmed
from podium.objects.snapshots.pseudonyms import NODE, POD, Pseudonyms
from podium.profiles.config.build import default_config, from_config
from podium.profiles.policy.build import Options, from_provider
from random_clusters_v1_36 import ClusterV136, clusters_v1_36

PROFILES = {
    "v1.13": from_provider("DefaultProvider", Options()),
    "v1.37": from_config(default_config({}), Options())[0],
}
_KIND_OF = {known.type: kind for kind, known in KINDS.items()}


def renamed(
    items: list[Object], names: Pseudonyms | None = None
) -> tuple[list[Object], Pseudonyms]:
    """The objects under other names, in the same order."""
    found = Pseudonyms() if names is None else names
    kinds = [_KIND_OF[type(item)] for item in items]
    lines = [trimmed(k, "v1", msgspec.json.encode(i)) for k, i in zip(kinds, items, strict=True)]
    plain = [msgspec.json.decode(line) for line in lines if line is not None]
    assert len(plain) == len(items)
    for kind, item in zip(kinds, plain, strict=True):
        anonymize(kind, item, found)
    found.assign()
    for kind, item in zip(kinds, plain, strict=True):
        anonymize(kind, item, found)
    return [
        msgspec.convert(item, KINDS[kind].type) for kind, item in zip(kinds, plain, strict=True)
    ], found


def essence(decision: Decision, names: Pseudonyms | None = None) -> dict[str, Any]:
    """A decision without any name but those of nodes, renamed where there are *names*."""

    def node_name(name: str | None) -> str | None:
        return name if name is None or names is None else names.name(NODE, name)

    def pod_name(key: str) -> str:
        name = key.partition("/")[2]
        return name if names is None else names.name(POD, name)

    totals = decision.totals
    found: dict[str, Any] = {
        "node": node_name(decision.node),
        "error": bool(decision.error),
        "feasible": [node_name(name) for name in decision.feasible],
        "totals": None if totals is None else totals.tolist(),
        "scores": [(column.name, column.score.tolist()) for column in decision.scores],
        "verdicts": Counter(
            (decision.verdict(code).predicate, decision.verdict(code).curable, count)
            for code, count in decision.histogram.items()
        ),
        "examined": [node_name(name) for name in decision.examined],
        "refused": decision.refused is not None,
        "tied": (decision.tied, decision.cursor),
    }
    if decision.preemption is not None:
        found["preemption"] = node_name(decision.preemption.node)
        found["victims"] = {
            node_name(name): [pod_name(key) for key in victims.pods]
            for name, victims in decision.preemption.candidates.items()
        }
    return found


@pytest.mark.parametrize("generation", PROFILES)
@given(world=clusters_v1_36(least_nodes=1))
@settings(max_examples=120)
def test_decisions_are_the_same_but_for_the_names(generation: str, world: ClusterV136) -> None:
    profile = PROFILES[generation]
    items = [*world.objects(), world.wanted]
    others, names = renamed(list(items))
    before, after = (simulation(*each[:-1], profile=profile) for each in (list(items), others))

    wanted, hidden = items[-1], others[-1]
    first = before.attempt(wanted, recording=True)  # type: ignore[arg-type]
    second = after.attempt(hidden, recording=True)  # type: ignore[arg-type]

    assert essence(second) == essence(first, names)


SECRET = "acme"  # noqa: S105  a customer's name, in every place where one could stand


def test_nothing_that_tells_whose_it_is_remains() -> None:
    telling = f"{SECRET}-1"
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": telling,
            "namespace": telling,
            "uid": telling,
            "labels": {f"{SECRET}.com/app": telling, "kubernetes.io/metadata.name": telling},
            "annotations": {"note": telling},
            "ownerReferences": [{"kind": "ReplicaSet", "name": telling, "uid": telling}],
        },
        "spec": {
            "nodeName": telling,
            "containers": [
                {
                    "name": telling,
                    "image": f"registry.{SECRET}.com:5000/{telling}:{telling}",
                    "env": [{"name": "PASSWORD", "value": telling}],
                    "command": [telling],
                    "ports": [{"hostPort": 80, "hostIP": "10.1.2.3"}],
                }
            ],
            "nodeSelector": {SECRET: telling},
            "tolerations": [{"key": SECRET, "value": telling}],
            "volumes": [
                {"name": telling, "persistentVolumeClaim": {"claimName": telling}},
                {"name": "s", "secret": {"secretName": telling}},
                {"name": "r", "rbd": {"monitors": [telling], "image": telling, "pool": telling}},
            ],
            "affinity": {
                "podAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "topologyKey": SECRET,
                            "namespaces": [telling],
                            "labelSelector": {"matchLabels": {SECRET: telling}},
                        }
                    ]
                }
            },
            "schedulingGates": [{"name": f"{SECRET}.com/gate"}],
        },
    }
    objects = decode(msgspec.json.encode(manifest))
    [hidden], _ = renamed(list(objects.pods))

    text = msgspec.json.encode(hidden).decode()

    assert SECRET not in text
    assert "PASSWORD" not in text
    assert "10.1.2.3" not in text
    assert "kubernetes.io/metadata.name" in text


#: Fields whose text means the same in every cluster: words of the API, times, amounts, products.
MEANINGFUL = {
    *("kind", "apiVersion", "operator", "effect", "type", "status", "reason", "phase", "action"),
    *("protocol", "restartPolicy", "preemptionPolicy", "whenUnsatisfiable", "nodeAffinityPolicy"),
    *("nodeTaintsPolicy", "volumeMode", "accessModes", "volumeBindingMode", "declaredFeatures"),
    *("creationTimestamp", "deletionTimestamp", "startTime", "lastProbeTime"),
    *("lastTransitionTime", "capacity", "allocatable", "requests", "limits"),
    *("overhead", "allocatedResources", "maximumVolumeSize"),
    *("schedulerName", "driver", "provisioner", "attacher"),
    # Expressions read attributes and capacities of devices; classes name extended resources.
    *("expression", "attributes", "string", "version", "value", "counters", "consumedCapacity"),
    *("default", "validValues", "min", "max", "step", "matchAttribute", "distinctAttribute"),
    *("deviceClassName", "extendedResourceName", "resourceName", "allocationMode", "source"),
    *("bindingConditions", "bindingFailureConditions", "allocationTimestamp", "timeAdded"),
    *("finalizers", "apiGroup", "resource", "scopeName"),
}


#: Where a field of a name that tells elsewhere means the same everywhere.
FIXED = {
    "matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"{SECRET}-node"]}],
    "drivers": [{"name": "csi.example.com", "allocatable": {"count": 1}}],
    "disruptedPods": {f"{SECRET}-pod": "2026-01-01T00:00:00Z"},
    "annotations": {"volume.kubernetes.io/selected-node": f"{SECRET}-node"},
}


def filled(info: Any, at: str) -> Any:
    """A value with every field set, and every text telling."""
    kinds = msgspec.inspect
    found: Any = f"{SECRET}-{at}"
    if at in FIXED:
        found = json.loads(json.dumps(FIXED[at]))
    elif isinstance(info, kinds.StructType):
        found = {f.encode_name: filled(f.type, f.encode_name) for f in info.fields}
    elif isinstance(info, kinds.UnionType):
        found = filled(next(t for t in info.types if not isinstance(t, kinds.NoneType)), at)
    elif isinstance(info, kinds.DictType):
        found = {f"{SECRET}.com/{at}": filled(info.value_type, at)}
    elif isinstance(info, kinds.ListType):
        found = [filled(info.item_type, at)]
    elif isinstance(info, kinds.BoolType | kinds.IntType | kinds.FloatType):
        found = isinstance(info, kinds.BoolType) or 1
    return found


def telling(value: Any, at: str = "") -> set[str]:
    """The fields, by their names, under which something telling stands."""
    if isinstance(value, dict):
        within = {at} if any(SECRET in key for key in value) else set()
        return within.union(*(telling(v, at if SECRET in k else k) for k, v in value.items()))
    if isinstance(value, list):
        return set().union(*(telling(each, at) for each in value))
    return {at} if SECRET in str(value) else set()


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_renamed_or_means_the_same_everywhere(kind: str) -> None:
    whole = filled(msgspec.inspect.type_info(KINDS[kind].type), "")
    if kind in {"CSIDriver", "DeviceClass"}:
        whole["metadata"]["name"] = "csi.example.com"
    item = msgspec.convert(whole, KINDS[kind].type)
    [hidden], _ = renamed([item])

    left = telling(msgspec.json.decode(msgspec.json.encode(hidden)))

    assert left - MEANINGFUL == set()


def test_relations_between_names_stay() -> None:
    items = [
        node("b", labels={"kubernetes.io/hostname": "b", "size": "10", "team": "10"}),
        node("a", labels={"kubernetes.io/hostname": "a"}),
        pod("p", node="b", labels={"size": "x"}),
    ]
    (second, first, placed), _ = renamed(list(items))

    assert second.labels["kubernetes.io/hostname"] == second.name
    assert first.name < second.name
    assert placed.spec.node_name == second.name  # type: ignore[attr-defined]
    assert len({*second.labels.values()}) == 2, "equal values stay equal"


def test_numbers_that_are_compared_are_kept_and_others_are_not() -> None:
    chosen = {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["5"]}]}
        ]
    }
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": chosen}
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"affinity": {"nodeAffinity": affinity}},
    }
    [picky] = decode(msgspec.json.encode(manifest)).pods
    (hidden, wanting), names = renamed([node("n", labels={"size": "10", "customer": "10"}), picky])

    values = hidden.labels

    assert values[names.key("size")] == "10"
    assert values[names.key("customer")] != "10"
    assert b'"5"' in msgspec.json.encode(wanting)


def test_the_claim_of_an_ephemeral_volume_is_found_again() -> None:
    manifests = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "db"},
            "spec": {"volumes": [{"name": "scratch", "ephemeral": {}}]},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "db-scratch"},
        },
    ]
    found = decode(msgspec.json.encode({"kind": "List", "items": manifests}))
    (holder, claim), _ = renamed([*found.pods, *found.of("PersistentVolumeClaim")])

    [volume] = holder.spec.volumes  # type: ignore[attr-defined]
    assert claim.name == f"{holder.name}-{volume.name}"


@pytest.mark.parametrize(
    ("image", "node_image", "same"),
    [
        ("nginx", "nginx:latest", True),
        ("nginx:1", "nginx:latest", False),
        ("r.io:5000/a/nginx", "r.io:5000/a/nginx:latest", True),
        ("a@sha256:0011", "a@sha256:0011", True),
    ],
)
def test_images_are_found_on_nodes_again(image: str, node_image: str, same: bool) -> None:
    names = Pseudonyms()
    for text in (image, node_image):
        names.image(text)
    names.assign()

    def full(text: str) -> str:
        return text if text.rfind(":") > text.rfind("/") else f"{text}:latest"

    assert (full(names.image(image)) == full(names.image(node_image))) is same


@given(st.lists(st.from_regex(r"[a-z]([a-z0-9]{0,5})", fullmatch=True), unique=True, min_size=2))
def test_names_of_a_kind_keep_their_order(given_names: list[str]) -> None:
    names = Pseudonyms()
    for name in given_names:
        names.name(NODE, name)
    names.assign()

    kept = {"default", "latest", "true", "false"}
    free = sorted(set(given_names) - kept)
    assert sorted(names.name(NODE, name) for name in free) == [
        names.name(NODE, name) for name in free
    ]


def test_histories_record_every_kind_but_those_that_only_controllers_read() -> None:
    left_out = {name for name, kind in KINDS.items() if not kind.in_histories}

    assert left_out == {
        *("Deployment", "Job", "CronJob", "DaemonSet", "HorizontalPodAutoscaler"),
        *("LimitRange", "ResourceQuota", "RuntimeClass"),
    }
    assert not any(KINDS[name].looked_up for name in left_out)
