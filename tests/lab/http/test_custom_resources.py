"""Custom resources over HTTP: schemas, versions, patches, watches, and what becomes of them."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.serving import LabServer, Reply
from manifests import manifest
from podium.lab.registry.registry import Registry
from podium.lab.store.sqlite import open_store

Json = dict[str, Any]
CHART = Path(__file__).parents[1] / "clients" / "chart" / "crds.yaml"
DEFINITIONS = list(yaml.safe_load_all(CHART.read_text("utf-8")))
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/factory.example.com/v1/namespaces/default/widgets"
OLD_WIDGETS = "/apis/factory.example.com/v1beta1/namespaces/default/widgets"


@pytest.fixture
def server(lab_server: LabServer) -> LabServer:
    for each in DEFINITIONS:
        lab_server.post(CRDS, each)
    return lab_server


def widget(name: str = "one", **spec: Any) -> Json:
    return {
        "apiVersion": "factory.example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"color": "red", **spec},
    }


def patched(
    server: LabServer, body: Any, form: str = "merge-patch+json", path: str = f"{WIDGETS}/one"
) -> Reply:
    return server.call("PATCH", path, body, content_type=f"application/{form}")


def test_a_definition_is_established_at_once(server: LabServer) -> None:
    status = server.get(f"{CRDS}/widgets.factory.example.com")["status"]
    assert {each["type"]: each["status"] for each in status["conditions"]} == {
        "NamesAccepted": "True",
        "Established": "True",
    }
    assert status["acceptedNames"]["singular"] == "widget"
    assert status["storedVersions"] == ["v1"]


def test_custom_resources_are_discovered(server: LabServer) -> None:
    groups = {each["name"]: each for each in server.get("/apis")["groups"]}
    versions = [each["version"] for each in groups["factory.example.com"]["versions"]]
    assert versions == ["v1", "v1beta1"]
    listed = server.get("/apis/factory.example.com/v1")["resources"]
    assert [each["name"] for each in listed] == [
        "widgets",
        "widgets/scale",
        "widgets/status",
        "factories",
    ]
    assert listed[0]["shortNames"] == ["wd"]
    server.delete(f"{CRDS}/factories.factory.example.com")


def test_defaults_are_set_and_unknown_fields_pruned(server: LabServer) -> None:
    item = widget(unknown=1, raw={"anything": [1]}, parts=[{"name": "a", "x": 1}])
    made = server.post(WIDGETS, item | {"status": {"replicas": 1}})
    assert made["spec"] == {
        "color": "red",
        "replicas": 1,
        "raw": {"anything": [1]},
        "parts": [{"name": "a", "count": 2}],
    }
    assert "status" not in made
    assert made["metadata"]["generation"] == 1


def test_unknown_fields_are_an_error_or_a_warning_if_the_client_asks(server: LabServer) -> None:
    strict = server.call("POST", f"{WIDGETS}?fieldValidation=Strict", widget(unknown=1))
    assert strict.status == 400
    assert 'unknown field "spec.unknown"' in strict.body["message"]
    warned = server.call("POST", f"{WIDGETS}?fieldValidation=Warn", widget(unknown=1))
    assert warned.status == 201
    assert warned.headers["warning"] == '299 - "unknown field \\"spec.unknown\\""'


WRONG = {
    "a missing field": ({"spec": {}}, "spec.color: Required value"),
    "no spec": ({"spec": None}, "spec: "),
    "another type": (
        {"spec": {"color": "red", "replicas": "many"}},
        'spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer',
    ),
    "not in the list": (
        {"spec": {"color": "pink"}},
        'spec.color: Unsupported value: "pink": supported values: ',
    ),
    "too much": (
        {"spec": {"color": "red", "replicas": 101}},
        "spec.replicas: Invalid value: 101: spec.replicas in body should be less than or equal",
    ),
    "too many": (
        {"spec": {"color": "red", "tags": ["a", "b", "c", "d"]}},
        "spec.tags: Too many: 4: must have at most 3 items",
    ),
    "another pattern": (
        {"spec": {"color": "red", "tags": ["A"]}},
        "spec.tags[0]: Invalid value: \"A\": spec.tags[0] in body should match '^[a-z]+$'",
    ),
    "the same key twice": (
        {"spec": {"color": "red", "parts": [{"name": "a"}, {"name": "a"}]}},
        "spec.parts[1]: Duplicate value",
    ),
    "neither number nor text": (
        {"spec": {"color": "red", "size": True}},
        "spec.size: Invalid value",
    ),
}


@pytest.mark.parametrize(("change", "message"), WRONG.values(), ids=WRONG)
def test_objects_that_do_not_fit_the_schema_are_refused(
    server: LabServer, change: Json, message: str
) -> None:
    reply = server.call("POST", WIDGETS, widget() | change)
    assert reply.status == 422
    assert message in reply.body["message"]
    assert reply.body["message"].startswith('Widget.factory.example.com "one" is invalid: ')


def test_versions_serve_the_same_objects(server: LabServer) -> None:
    server.post(WIDGETS, widget())
    old = server.get(f"{OLD_WIDGETS}/one")
    assert old["apiVersion"] == "factory.example.com/v1beta1"
    reply = server.call("PUT", f"{OLD_WIDGETS}/one", old | {"spec": {"color": "blue"}})
    assert "is deprecated" in reply.headers["warning"]
    made = server.get(f"{WIDGETS}/one")
    assert made["apiVersion"] == "factory.example.com/v1"
    assert made["spec"]["color"] == "blue"


def test_the_status_is_written_through_its_subresource(server: LabServer) -> None:
    server.post(WIDGETS, widget())
    body = {"status": {"replicas": 2, "selector": "app=one"}, "spec": {"color": "blue"}}
    assert patched(server, body, path=f"{WIDGETS}/one/status").status == 200
    made = server.get(f"{WIDGETS}/one")
    assert (made["spec"]["color"], made["status"]["replicas"]) == ("red", 2)
    assert made["metadata"]["generation"] == 1
    assert patched(server, {"status": {"replicas": 9}}).body["status"]["replicas"] == 2
    assert patched(server, {"spec": {"color": "green"}}).body["metadata"]["generation"] == 2
    scale = server.get(f"{WIDGETS}/one/scale")
    assert scale["spec"] == {"replicas": 1}
    assert scale["status"] == {"replicas": 2, "selector": "app=one"}
    scale["spec"]["replicas"] = 7
    server.put(f"{WIDGETS}/one/scale", scale)
    assert server.get(f"{WIDGETS}/one")["spec"]["replicas"] == 7


def test_patches_of_all_types_but_one(server: LabServer) -> None:
    server.post(WIDGETS, widget())
    change = [{"op": "replace", "path": "/spec/color", "value": "green"}]
    assert patched(server, change, "json-patch+json").body["spec"]["color"] == "green"
    assert patched(server, {"spec": {"color": "pink"}}).status == 422
    reply = patched(server, {"spec": {"color": "blue"}}, "strategic-merge-patch+json")
    assert reply.status == 415


def test_server_side_apply_merges_lists_by_their_keys(server: LabServer) -> None:
    path = f"{WIDGETS}/one?fieldManager={{}}"
    first = widget(parts=[{"name": "a", "count": 1}])
    assert patched(server, first, "apply-patch+yaml", path.format("x")).status == 201
    second = widget(parts=[{"name": "b", "count": 1}])
    del second["spec"]["color"]
    made = patched(server, second, "apply-patch+yaml", path.format("y")).body
    assert [each["name"] for each in made["spec"]["parts"]] == ["a", "b"]
    wrong = widget(color="blue")
    reply = patched(server, wrong, "apply-patch+yaml", path.format("y"))
    assert reply.status == 409
    assert ".spec.color" in reply.body["message"]
    gone = {**widget(), "spec": {"color": "red"}}
    made = patched(server, gone, "apply-patch+yaml", path.format("x")).body
    assert [each["name"] for each in made["spec"]["parts"]] == ["b"]


def test_custom_objects_are_listed_watched_and_shown_as_tables(server: LabServer) -> None:
    server.post(WIDGETS, widget("a"))
    server.post(WIDGETS, widget("b"))
    listed = server.get(WIDGETS)
    assert (listed["kind"], len(listed["items"])) == ("WidgetList", 2)
    events = server.watch(f"{WIDGETS}?resourceVersion={listed['metadata']['resourceVersion']}")
    server.delete(f"{WIDGETS}/a")
    event = next(events)
    events.close()
    assert (event["type"], event["object"]["metadata"]["name"]) == ("DELETED", "a")
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    body = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    patched(server, body, path=f"{WIDGETS}/b/status")
    table = server.call("GET", WIDGETS, headers={"Accept": accept}).body
    assert [each["name"] for each in table["columnDefinitions"]] == [
        "Name",
        "Replicas",
        "Ready",
        "Color",
        "Age",
    ]
    assert table["rows"][0]["cells"][:4] == ["b", 1, "True", "red"]


def test_schemas_are_in_the_openapi_documents(server: LabServer) -> None:
    index = server.get("/openapi/v3")["paths"]
    assert "apis/factory.example.com/v1" in index
    document = server.get("/openapi/v3/apis/factory.example.com/v1")
    schema = document["components"]["schemas"]["com.example.factory.v1.Widget"]
    assert schema["properties"]["spec"]["description"] == "What the widget shall be."
    definitions = server.get("/openapi/v2")["definitions"]
    assert "com.example.factory.v1.Widget" in definitions


BAD_DEFINITIONS = {
    "another name": ({"metadata": {"name": "x.example.com"}}, "metadata.name"),
    "no schema": ({"spec": {"versions": [{"name": "v1", "served": True, "storage": True}]}},
                  "spec.versions[0].schema.openAPIV3Schema: Required value"),
    "no storage version": (
        {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object"}}}]}},
        "exactly one version marked as storage version",
    ),
    "a field without a type": (
        {"spec": {"versions": [{"name": "v1", "storage": True, "schema": {"openAPIV3Schema":
            {"type": "object", "properties": {"spec": {}}}}}]}},
        "properties[spec].type: Required value",
    ),
    "a pattern that is none": (
        {"spec": {"versions": [{"name": "v1", "storage": True, "schema": {"openAPIV3Schema":
            {"type": "object", "properties": {"a": {"type": "string", "pattern": "["}}}}}]}},
        (
            'properties[a].pattern: Invalid value: "[": must be a valid regular expression, '
            "but isn't: error parsing regexp: missing closing ]: `[`"
        ),
    ),
}  # fmt: skip


FIELD = "spec.validation.openAPIV3Schema.properties[spec].properties[a]"
#: Schemas of one field with a default value, and what kube-apiserver v1.37 says about it.
BAD_DEFAULTS: dict[str, tuple[Json, str]] = {
    "a number for a text": (
        {"type": "string", "default": 1},
        '.default: Invalid value: "integer":  in body must be of type string: "integer"',
    ),
    "a text for a number": (
        {"type": "integer", "default": "x"},
        '.default: Invalid value: "string":  in body must be of type integer: "string"',
    ),
    "none of the list": (
        {"type": "string", "enum": ["x", "y"], "default": "z"},
        '.default: Unsupported value: "z": supported values: "x", "y"',
    ),
    "too much": (
        {"type": "integer", "maximum": 3, "default": 4},
        ".default: Invalid value: 4:  in body should be less than or equal to 3",
    ),
    "too long": ({"type": "string", "maxLength": 2, "default": "xyz"}, ".default: Too long: "),
    "an inner field of another type": (
        {"type": "object", "properties": {"b": {"type": "string"}}, "default": {"b": 1}},
        '.default.b: Invalid value: "integer": b in body must be of type string: "integer"',
    ),
    "an unknown field": (
        {"type": "object", "properties": {"b": {"type": "string"}}, "default": {"c": 1}},
        '.default: Invalid value: {"c":1}: must not have unknown fields',
    ),
    "without a required field, whose own default does not count": (
        {
            "type": "object",
            "required": ["b"],
            "properties": {"b": {"type": "integer", "default": 3}},
            "default": {},
        },
        ".default.b: Required value",
    ),
    "a list with a wrong item": (
        {"type": "array", "items": {"type": "string"}, "default": ["a", 1]},
        '.default.[1]: Invalid value: "integer": [1] in body must be of type string: "integer"',
    ),
    "of items": (
        {"type": "array", "items": {"type": "string", "default": 1}},
        '.items.default: Invalid value: "integer":  in body must be of type string: "integer"',
    ),
    "below another default": (
        {
            "type": "object",
            "default": {},
            "properties": {"b": {"type": "integer", "default": "q"}},
        },
        '.properties[b].default: Invalid value: "string":  in body must be of type integer: ',
    ),
}


def defaulting(schema: Json, name: str = "v1") -> Json:
    """A version whose only field has this schema."""
    spec = {"type": "object", "properties": {"a": schema}}
    whole = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {"name": name, "served": True, "storage": name == "v1", "schema": whole}


@pytest.mark.parametrize(("schema", "message"), BAD_DEFAULTS.values(), ids=BAD_DEFAULTS)
def test_defaults_that_do_not_fit_their_schema_are_refused(
    lab_server: LabServer, schema: Json, message: str
) -> None:
    made = deepcopy(DEFINITIONS[1])
    made["spec"]["versions"] = [defaulting(schema)]
    reply = lab_server.call("POST", CRDS, made)
    assert reply.status == 422
    assert f"{FIELD}{message}" in reply.body["message"]


def test_a_schema_that_versions_do_not_share_is_named_by_its_version(lab_server: LabServer) -> None:
    made = deepcopy(DEFINITIONS[1])
    good, bad = {"type": "integer", "default": 1}, {"type": "integer", "default": "x"}
    made["spec"]["versions"] = [defaulting(good), defaulting(bad, "v2")]
    reply = lab_server.call("POST", CRDS, made)
    assert reply.status == 422
    assert ": spec.versions[1].schema.openAPIV3Schema.properties[spec]" in reply.body["message"]


def test_defaults_that_the_schema_allows_are_accepted(lab_server: LabServer) -> None:
    made = deepcopy(DEFINITIONS[1])
    text: Json = {"type": "string", "default": "x"}
    fields: list[Json] = [
        text,
        {"type": "integer", "default": 1.0},
        {"type": "integer", "default": None},
        {"type": "object", "additionalProperties": text, "default": {"k": "v"}},
    ]
    made["spec"]["versions"] = [
        defaulting(
            {"type": "object", "properties": {f"f{n}": each for n, each in enumerate(fields)}}
        )
    ]
    reply = lab_server.call("POST", CRDS, made)
    assert reply.status == 201, reply.body
    lab_server.delete(f"{CRDS}/{made['metadata']['name']}")


@pytest.mark.parametrize(("change", "message"), BAD_DEFINITIONS.values(), ids=BAD_DEFINITIONS)
def test_definitions_that_make_no_sense_are_refused(
    lab_server: LabServer, change: Json, message: str
) -> None:
    wanted = DEFINITIONS[1]
    made = {**wanted, **change, "spec": {**wanted["spec"], **change.get("spec", {})}}
    reply = lab_server.call("POST", CRDS, made)
    assert reply.status == 422
    assert message in reply.body["message"]


def test_definitions_and_objects_are_kept_on_disk(tmp_path: Path) -> None:
    store, journal = open_store(tmp_path)
    registry = Registry(store)
    registry.create("CustomResourceDefinition", deepcopy(DEFINITIONS[0]))
    made = registry.create("widgets.factory.example.com", widget(), namespace="default")
    journal.close()
    store, journal = open_store(tmp_path)
    found = Registry(store).get("widgets.factory.example.com", "one", "default")
    journal.close()
    assert found["metadata"]["uid"] == made["metadata"]["uid"]


def test_an_api_service_is_kept_with_a_warning(lab_server: LabServer) -> None:
    item = {
        "metadata": {"name": "v1.x.example.com"},
        "spec": {"group": "x.example.com", "version": "v1", "groupPriorityMinimum": 1,
                 "versionPriority": 1},
    }  # fmt: skip
    reply = lab_server.call("POST", "/apis/apiregistration.k8s.io/v1/apiservices", item)
    assert reply.status == 201
    assert "kept and idle" in reply.headers["warning"]


def test_deletion_options_hold_for_custom_objects(server: LabServer) -> None:
    server.post(WIDGETS, widget() | {"metadata": {"name": "one", "finalizers": ["x/y"]}})
    server.delete(f"{WIDGETS}/one")
    assert server.get(f"{WIDGETS}/one")["metadata"]["deletionTimestamp"]
    patched(server, {"metadata": {"finalizers": None}})
    assert server.call("GET", f"{WIDGETS}/one").status == 404


def gauges(*rules: Json, **properties: Json) -> Json:
    """A definition of gauges, whose spec has some rules."""
    spec = {"type": "object", "x-kubernetes-validations": [*rules], "properties": properties}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "gauges", "kind": "Gauge"}
    spec = {"group": "factory.example.com", "scope": "Namespaced", "names": names}
    spec["versions"] = [version]
    return manifest("CustomResourceDefinition", "gauges.factory.example.com", spec=spec)


GAUGES = "/apis/factory.example.com/v1/namespaces/default/gauges"


def gauge(**spec: Any) -> Json:
    return widget() | {"kind": "Gauge", "spec": spec}


def test_rules_in_cel_are_kept_with_a_warning(lab_server: LabServer) -> None:
    told = lab_server.call("POST", CRDS, gauges({"rule": "self.low < 3"}, {"rule": "false"}))

    assert told.status == 201
    assert "does not evaluate the 2 rules in CEL of version v1" in told.headers["warning"]
    assert lab_server.call("POST", GAUGES, gauge(low=9)).status == 201


@pytest.mark.timeout(60)
def test_a_pattern_takes_no_longer_than_its_text(lab_server: LabServer) -> None:
    lab_server.post(CRDS, gauges(unit={"type": "string", "pattern": "^(a+)+$"}))

    refused = lab_server.call("POST", GAUGES, gauge(unit="a" * 100_000 + "!"))

    assert refused.status == 422
    assert "should match '^(a+)+$'" in refused.body["message"]


def test_a_pattern_means_what_it_means_in_go(lab_server: LabServer) -> None:
    lab_server.post(CRDS, gauges(unit={"type": "string", "pattern": r"^[[:alpha:]]\d$"}))

    assert lab_server.call("POST", GAUGES, gauge(unit="a1\n")).status == 422
    assert lab_server.call("POST", GAUGES, gauge(unit="a1")).status == 201
