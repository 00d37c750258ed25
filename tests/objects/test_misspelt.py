"""Fields of a manifest that do not exist."""

from __future__ import annotations

import json

import yaml

from podium.objects.reading.decoding import decode
from podium.objects.reading.validation import notes

IGNORED = "is no field and is ignored; did you mean"
POD = """
kind: Pod
apiVersion: v1
metadata: {name: p}
spec:
  containers: [{name: c, unknown: 1}]
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchFileds: [{key: metadata.name, operator: In, values: [n]}]
  tolerations: [{key: a, efect: NoSchedule, tolerationSeconds: 5}]
"""


def test_a_misspelt_field_is_noted_with_the_one_that_is_meant() -> None:
    required = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"

    assert notes(decode(POD)) == [
        f"Pod p: {required}.nodeSelectorTerms[0].matchFileds {IGNORED} matchFields?",
        f"Pod p: spec.tolerations[0].efect {IGNORED} effect?",
    ]


def test_what_is_right_is_not_noted() -> None:
    right = POD.replace("matchFileds", "matchFields").replace("efect", "effect")

    assert notes(decode(right)) == []


def test_a_manifest_in_json_is_checked_too_and_what_a_server_wrote_is_not() -> None:
    pod = yaml.safe_load(POD)
    affinity = pod["spec"]["affinity"]["nodeAffinity"]
    name = "requiredDuringSchedulingRequiredDuringExecution"
    affinity[name] = affinity.pop("requiredDuringSchedulingIgnoredDuringExecution")
    del pod["spec"]["tolerations"]

    assert notes(decode(json.dumps(pod))) == [
        (
            f"Pod p: spec.affinity.nodeAffinity.{name} {IGNORED} "
            "requiredDuringSchedulingIgnoredDuringExecution?"
        )
    ]
    pod["metadata"]["uid"] = "u"
    assert notes(decode(json.dumps(pod))) == []
