"""Notes on conditions, zones, claims and affinity terms that may surprise a reader."""

from __future__ import annotations

import builders as b
from podium.lab.contents.demo import node_manifest
from podium.library.cluster_notes import cluster_notes
from podium.library.profile_source import ProfileSource
from podium.objects.completing.defaults import with_defaults
from podium.objects.completing.expansion import expand
from podium.objects.kinds.devices import ResourceSlice
from podium.objects.kinds.meta import Object
from podium.objects.reading.decoding import decode

V1_13 = ProfileSource(profile="v1.13", environment={})
V1_36 = ProfileSource(profile="v1.36", environment={})
NEWER, OLDER = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"


def notes(source: ProfileSource, *items: Object) -> list[str]:
    return list(cluster_notes(b.objects(*items), source.choose()))


def test_a_node_that_is_not_ready_without_the_taint_is_noted() -> None:
    sick = [b.node(f"n{i}", conditions={"Ready": "False"}) for i in range(5)]

    [note] = notes(V1_36, *sick, b.node("ok", conditions={"Ready": "True"}))

    assert note == (
        "nodes n0, n1, n2 and 2 more: condition Ready is False, which keeps no pod away without "
        "the taint node.kubernetes.io/not-ready; the node controller would add it: write it into "
        "the file"
    )


def test_pressure_is_noted_and_the_taint_ends_the_note() -> None:
    pressed = b.node("n", conditions={"MemoryPressure": "True", "DiskPressure": "False"})
    tainted = b.node(
        "m",
        conditions={"MemoryPressure": "True"},
        taints=[b.taint("node.kubernetes.io/memory-pressure")],
    )

    [note] = notes(V1_13, pressed, tainted)

    assert note.startswith("node n: condition MemoryPressure is True")
    assert note.endswith("or give --feature-gates TaintNodesByCondition=false")


def test_predicates_that_look_at_conditions_need_no_note() -> None:
    source = ProfileSource(
        profile="v1.13", feature_gates=({"TaintNodesByCondition": False},), environment={}
    )

    assert notes(source, b.node("n", conditions={"Ready": "False", "PIDPressure": "True"})) == []


def test_zones_by_the_newer_label_only_are_noted_for_v1_13() -> None:
    newer = b.node("n", labels={NEWER: "a"})

    assert notes(V1_36, newer) == []
    assert notes(V1_13, b.node("n", labels={NEWER: "a", OLDER: "a"})) == []
    [note] = notes(V1_13, newer)
    assert note.startswith(f"node n: v1.13 reads zones from the label {OLDER} only")


def test_nodes_of_the_lab_have_the_labels_of_both_generations() -> None:
    labels = node_manifest("n", "zone-a", "small")["metadata"]["labels"]

    assert labels[NEWER] == labels[OLDER] == "zone-a"


def test_a_claim_with_a_volume_but_without_the_annotation_is_noted() -> None:
    by_hand = b.claim("data", volume="disk", bound=False)

    for source in (V1_13, V1_36):
        [note] = notes(source, b.node("n"), by_hand)
        assert note == (
            "claim default/data: spec.volumeName is set without the annotation "
            "pv.kubernetes.io/bind-completed, so the scheduler takes the claim for unbound; the "
            'volume controller would add it: write pv.kubernetes.io/bind-completed: "yes" into '
            "the file"
        )
        assert notes(source, b.claim("data", volume="disk"), b.claim("free")) == []


DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: i}]
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - topologyKey: kubernetes.io/hostname
            labelSelector: {matchLabels: {app: APP}}
"""


def test_a_term_that_selects_no_pod_at_all_is_noted_once() -> None:
    def noted(app: str) -> list[str]:
        objects = expand(with_defaults(decode(DEPLOYMENT.replace("APP", app))))
        objects.pods.append(b.pod("other", labels={"app": "batch"}))
        return list(cluster_notes(objects, V1_13.choose()))

    assert noted("wbe") == [
        (
            "Deployment default/web: a required term of podAntiAffinity selects no pod of the "
            "input, not even its own: app=wbe by kubernetes.io/hostname"
        )
    ]
    assert noted("web") == []
    assert noted("batch") == []  # keeps off others


def test_what_is_chance_in_a_release_is_said_where_it_matters() -> None:
    v1_34 = ProfileSource(profile="v1.34", environment={}).choose()
    objects = b.objects(b.node("n"))
    plain = list(cluster_notes(objects, v1_34))
    objects.add("ResourceSlice", ResourceSlice())
    [note] = set(cluster_notes(objects, v1_34)) - set(plain)

    assert note.startswith("v1.34 tries pools and slices of devices in no order")
    [tied] = v1_34.profile.notes
    assert tied == (
        "v1.34 takes any of the nodes with the best total; the first is taken here, and "
        "--ties random:SEED takes any"
    )
    assert ProfileSource(profile="v1.35", environment={}).choose().profile.notes == ()
