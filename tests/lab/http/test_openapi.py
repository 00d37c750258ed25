"""The OpenAPI documents: complete, with the names of Kubernetes, as JSON and as protobuf."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from podium.lab import schema
from podium.lab.api.resources import TABLE as RESOURCES
from podium.lab.api.status import StatusError
from podium.lab.http import openapi
from podium.lab.schema import api_types
from podium.lab.schema.merge_keys import ATOMIC_TYPES, TABLE
from podium.objects.protobuf import wire


@pytest.fixture(scope="module")
def document() -> Any:
    return json.loads(openapi.v2_json())


def third(name: str) -> Any:
    return json.loads(openapi.v3_document(name))


NAMES = sorted(json.loads(openapi.v3_index())["paths"])


def references(text: str) -> set[str]:
    return set(re.findall(r'"\$ref":"#/(?:definitions|components/schemas)/([^"]+)"', text))


def test_every_reference_leads_somewhere(document: Any) -> None:
    assert references(openapi.v2_json().decode()) <= set(document["definitions"])
    for name in NAMES:
        own = third(name)["components"]["schemas"]
        assert references(openapi.v3_document(name).decode()) <= set(own)


@pytest.mark.parametrize(
    "name",
    [
        "io.k8s.api.core.v1.Pod",
        "io.k8s.api.apps.v1.DeploymentSpec",
        "io.k8s.api.batch.v1.JobSpec",
        "io.k8s.api.policy.v1.PodDisruptionBudget",
        "io.k8s.api.policy.v1beta1.PodDisruptionBudgetSpec",
        "io.k8s.api.storage.v1.CSINode",
        "io.k8s.api.coordination.v1.Lease",
        "io.k8s.api.scheduling.v1.PriorityClass",
        "io.k8s.api.core.v1.Event",
        "io.k8s.api.events.v1.Event",
        "io.k8s.api.autoscaling.v1.Scale",
        "io.k8s.api.core.v1.ScaleIOVolumeSource",
        "io.k8s.api.discovery.v1.EndpointSlice",
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
        "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector",
        "io.k8s.apimachinery.pkg.api.resource.Quantity",
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    ],
)
def test_schemas_have_the_names_that_clients_know(document: Any, name: str) -> None:
    assert name in document["definitions"]


def test_merge_keys_are_written_into_the_schemas(document: Any) -> None:
    spec = document["definitions"]["io.k8s.api.core.v1.PodSpec"]["properties"]
    extensions = {key: value for key, value in spec["volumes"].items() if key.startswith("x-")}
    assert extensions == {
        "x-kubernetes-list-map-keys": ["name"],
        "x-kubernetes-list-type": "map",
        "x-kubernetes-patch-merge-key": "name",
        "x-kubernetes-patch-strategy": "merge,retainKeys",
    }
    assert spec["tolerations"]["x-kubernetes-list-type"] == "atomic"


def test_every_row_of_the_merge_keys_is_about_a_field_that_there_is() -> None:
    typed = [each for each in RESOURCES if not each.computed]
    roots = [api_types.model_of_kind(each.kind, each.group_version) for each in typed]
    known = {
        f"{api_types.short_name(model)}.{field}": found
        for model in api_types.reachable(*roots)
        for field, found in api_types.model(model).fields.items()
    }
    assert set(TABLE) <= set(known)
    for field, rules in TABLE.items():
        if rules.keys:
            assert set(rules.keys) <= set(api_types.model(known[field].of).fields)
    types = {api_types.short_name(model) for model in api_types.reachable(*roots)}
    assert types >= ATOMIC_TYPES


def test_every_patch_says_that_fields_are_validated() -> None:
    for name in NAMES:
        for path, item in third(name)["paths"].items():
            if "patch" in item:
                asked = {each["name"] for each in item["patch"]["parameters"]}
                assert {"dryRun", "fieldValidation", "fieldManager", "force"} <= asked, path


def test_a_version_that_is_not_served_is_not_found() -> None:
    with pytest.raises(StatusError) as caught:
        openapi.v3_document("apis/apps/v2")
    assert caught.value.code == 404
    assert openapi.v3_document("apps/v1") == openapi.v3_document("apis/apps/v1")


@pytest.mark.slow
def test_the_table_of_the_models_is_what_the_tool_writes() -> None:
    tool = Path(__file__).parents[3] / "tools" / "api-models"
    written = subprocess.run([sys.executable, tool], check=True, capture_output=True).stdout

    assert written == files(schema).joinpath("models.txt").read_bytes()


# The protocol buffer, read back by its wire format.
def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Numbers and values of the fields of a message."""
    yield from wire.fields(message)


def named(message: bytes, inside: int) -> dict[str, bytes]:
    found = {}
    for number, pair in fields(message):
        if number == inside:
            parts = dict(fields(pair))
            found[parts[1].decode()] = parts[2]
    return found


def read_schema(message: bytes) -> dict[str, Any]:
    """A schema as JSON has it."""
    made: dict[str, Any] = {}
    for number, value in fields(message):
        match number:
            case 1 | 2 | 4:
                made[{1: "$ref", 2: "format", 4: "description"}[number]] = value.decode()
            case 19:
                made.setdefault("required", []).append(value.decode())
            case 21:
                made["additionalProperties"] = read_schema(dict(fields(value))[1])
            case 22:
                made["type"] = dict(fields(value))[1].decode()
            case 23:
                made["items"] = read_schema(dict(fields(value))[1])
            case 25:
                inner = named(value, 1)
                made["properties"] = {name: read_schema(each) for name, each in inner.items()}
            case 31:
                parts = dict(fields(value))
                made[parts[1].decode()] = json.loads(dict(fields(parts[2]))[2])
            case _:
                raise AssertionError(number)
    return made


def test_the_protocol_buffer_says_what_the_json_says(document: Any) -> None:
    whole = dict(fields(openapi.v2_protobuf()))
    assert whole[1] == b"2.0"
    found = {name: read_schema(each) for name, each in named(whole[9], 1).items()}
    assert found == document["definitions"]
    assert set(named(whole[8], 2)) == set(document["paths"])
