"""No request gives 500: good requests, changed at random, are served or refused."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from lab.request_mutations import PATCHES, STRANGE, Json, Requests, json_patch, mutated
from podium.lab.api.resources import TABLE

#: How a controller tells of an error that is no answer of the API server.
EXCEPTION = re.compile(r": [A-Za-z]+(Error|Exception|Exit|Interrupt): ")
RESOURCES = {(each.group_version, each.kind): each for each in TABLE}
PODS = "/api/v1/namespaces/default/pods"
OTHERS: dict[str, Json] = {
    f"{PODS}/web/eviction": {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "web", "namespace": "default"},
        "deleteOptions": {"gracePeriodSeconds": 0, "preconditions": {"uid": "x"}},
    },
    f"{PODS}/web/binding": {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "web"},
        "target": {"kind": "Node", "name": "node"},
    },
    "/apis/apps/v1/namespaces/default/deployments/deployment/scale": {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "deployment", "namespace": "default"},
        "spec": {"replicas": 3},
    },
    "/api/v1/namespaces/default/bindings": {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "web", "namespace": "default"},
        "target": {"kind": "Node", "name": "node"},
    },
    "/api/v1/namespaces/default/serviceaccounts/account/token": {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"audiences": ["x"], "expirationSeconds": 3600},
    },
    "/api/v1/namespaces/space/finalize": {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "space"},
        "spec": {"finalizers": ["kubernetes"]},
    },
    "/apis/authentication.k8s.io/v1/selfsubjectreviews": {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "SelfSubjectReview",
    },
    "/apis/authentication.k8s.io/v1/tokenreviews": {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": "x", "audiences": ["x"]},
    },
    "/apis/authorization.k8s.io/v1/subjectaccessreviews": {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": "x", "groups": ["x"], "resourceAttributes": {"verb": "get"}},
    },
    "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews": {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "LocalSubjectAccessReview",
        "spec": {"user": "x", "resourceAttributes": {"verb": "get", "namespace": "default"}},
    },
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"nonResourceAttributes": {"path": "/x", "verb": "get"}},
    },
    "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews": {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": "default"},
    },
}
#: What is read and never written.
READ = [
    "/api", "/apis", "/apis/apps/v1", "/openapi/v2", "/openapi/v3", "/openapi/v3/apis/apps/v1",
    "/version", "/healthz", "/readyz", "/livez", "/metrics", f"{PODS}/web/log",
    "/apis/metrics.k8s.io/v1beta1/nodes", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods",
]  # fmt: skip
NOWHERE = [
    "/",
    "/apis/apps",
    "/foo",
    "//",
    "/api/v1/x/y/z/a/b",
    f"{PODS}/..",
    f"{PODS}/{'a' * 300}",
]
PARAMETERS = """
    limit resourceVersion labelSelector fieldSelector continue timeoutSeconds gracePeriodSeconds
    propagationPolicy fieldManager dryRun resourceVersionMatch watch allowWatchBookmarks
    sendInitialEvents orphanDependents fieldValidation pretty force includeObject
""".split()  # noqa: SIM905 - a list of words
#: Values of parameters besides `STRANGE`: good ones, and those that end too early.
VALUES = """
    true false 0 1 -1 All Foreground Orphan Strict Ignore Exact NotOlderThan app=web app!=web !app
    app,!x app%20in%20(web app%20in%20(web) app%20notin%20() (app) metadata.name=web status.phase!=x
    metadata.name spec.nodeName=,status.phase= involvedObject.name=web metadata.uid=x =, %ff %00 e30
""".split()  # noqa: SIM905 - a list of words
#: Bodies that are no JSON, or no object.
BODIES: list[bytes] = [
    b"", b"{", b"null", b"[]", b"1", b'"x"', b"\xff\xfe", b"[" * 100_000, b'{"a":' * 5000,
    b'{"kind":"Pod","kind":"Node"}', b'{"metadata":{"name":"\\ud800"}}', b"a: &a [*a]", b"{}{}",
    b"a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]", b"!!python/object:os.system {}", b"- x",
    b"k8s\x00\x0a", b"%d" % 10**400, b"1e999999999", b"2026-01-01",
]  # fmt: skip
ACCEPTED = [
    b"application/json;as=Table;v=v1;g=meta.k8s.io", b"application/vnd.kubernetes.protobuf",
    b"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", b"application/yaml", b"x",
    b"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", b"*/*;q=x,;,", b"\xff",
]  # fmt: skip
FORMS = ["json", "yaml", "vnd.kubernetes.protobuf", "cbor", "x", "json;charset=x", *PATCHES]


class Loader(yaml.SafeLoader):
    """YAML whose times stay texts."""


Loader.yaml_implicit_resolvers = {
    first: [each for each in found if each[0] != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def good_objects() -> list[Json]:
    text = (Path(__file__).parent / "good_objects.yaml").read_text("utf-8")
    return list(yaml.load_all(text, Loader))


def path_of(item: Json) -> str:
    version = item["apiVersion"]
    resource = RESOURCES.get((version, item["kind"]))
    plural = "gauges" if resource is None else resource.plural
    space = "/namespaces/default" if resource is None or resource.namespaced else ""
    return f"/{'apis' if '/' in version else 'api'}/{version}{space}/{plural}"


def filled() -> tuple[Requests, list[Json]]:
    """A lab with all good objects."""
    lab, good = Requests(), good_objects()
    for each in good:
        status, body = lab.send("POST", path_of(each), each)
        assert status == 201, (each["kind"], body)
    return lab, good


def send_any(lab: Requests, good: list[Json], rng: random.Random) -> tuple[int, Any, Any]:
    """One random request: the status and body of the response, and the request."""
    item = rng.choice(good)
    path, name = path_of(item), item["metadata"]["name"]
    kind = rng.randrange(10)
    method, form, body = "GET", "json", None
    if kind == 0:
        method, body = "POST", mutated(item, rng)
        if isinstance(body.get("metadata"), dict):
            body["metadata"]["name"] = f"n{rng.randrange(10**9)}"
    elif kind == 1:
        method, path, body = "PUT", f"{path}/{name}", mutated(item, rng)
    elif kind == 2:
        method, form, path = "PATCH", PATCHES[0], f"{path}/{name}"
        body = json_patch(item, rng)
    elif kind <= 4:
        method, form, body = "PATCH", rng.choice(PATCHES[1:]), mutated(item, rng)
        path = f"{path}/{name}?fieldManager=x&force=true"
    elif kind == 5:
        method = rng.choice(("GET", "DELETE"))
        value = quote(str(rng.choice(STRANGE)).replace("\0", ""), errors="replace")
        path = f"{path}{rng.choice(('', f'/{name}'))}?{rng.choice(PARAMETERS)}={value}"
    elif kind == 6:
        path, whole = rng.choice(list(OTHERS.items()))
        method, form = rng.choice(("POST", "PUT")), rng.choice(("json", *PATCHES))
        body = mutated(whole, rng)
    elif kind == 7:
        path = f"{path}/{name}/{rng.choice(('status', 'scale'))}"
        method, form = rng.choice(("PUT", "PATCH")), rng.choice(("json", *PATCHES))
        body = mutated(item, rng)
    elif kind == 8:
        method = rng.choice(("GET", "GET", "POST", "PUT", "PATCH", "DELETE"))
        path = rng.choice((*READ, *NOWHERE, path, f"{path}/{name}", f"{path}/{name}/x"))
        query = (f"{rng.choice(PARAMETERS)}={rng.choice(VALUES)}" for _ in range(3))
        path = f"{path}?{'&'.join(query)}"
    else:
        method, form = rng.choice(("POST", "PUT", "PATCH", "DELETE")), rng.choice(FORMS)
        path = rng.choice((path, f"{path}/{name}", f"{path}/{name}/status", *OTHERS))
        body = rng.choice(BODIES)
    lab.accept = rng.choice(ACCEPTED) if rng.random() < 0.1 else b""
    return *lab.send(method, path, body, form), (method, path, form, body)


def test_every_kind_is_asked_for_and_changed() -> None:
    changed = {path_of(each) for each in good_objects()} | set(OTHERS)
    served = {each.path("default") for each in TABLE if not each.computed}

    assert served <= changed


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_no_request_gives_500(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    lab, good = filled()
    seen: Counter[int] = Counter()

    for _ in range(500):
        status, body, request = send_any(lab, good, rng)
        assert status < 500 or status == 504, (request, body)
        if status >= 400 and body.startswith(b"{"):
            assert json.loads(body)["kind"] == "Status", (request, body)
        seen[status] += 1
        lab.let_controllers_work()

    assert [each for each in lab.warnings if EXCEPTION.search(each)] == []
    assert seen[200] + seen[201] > 50, "some requests are served"
    assert seen[422] + seen[400] > 50, "some are refused"


@pytest.mark.parametrize(
    ("method", "path", "form", "body", "status"),
    [
        ("GET", f"{PODS}?resourceVersion={'9' * 5000}", "json", None, 400),
        ("GET", f"{PODS}?limit={'9' * 5000}", "json", None, 400),
        (
            "PATCH", f"{PODS}/web", PATCHES[0],
            [{"op": "remove", "path": f"/spec/containers/{'9' * 5000}"}], 422,
        ),
        ("PATCH", f"{PODS}/web", PATCHES[0], [{"op": "remove", "path": "/kind"}], 200),
        ("PATCH", f"{PODS}/web", PATCHES[0], [{"op": "remove", "path": "/apiVersion"}], 400),
        ("PATCH", f"{PODS}/web", PATCHES[1], {"kind": None}, 200),
        ("PATCH", f"{PODS}/web", PATCHES[1], {"kind": "Node"}, 422),
        ("PATCH", f"{PODS}/web", PATCHES[1], {"kind": 5}, 422),
        ("PATCH", f"{PODS}/web", PATCHES[1], {"apiVersion": "v2"}, 422),
        ("PATCH", f"{PODS}/web", PATCHES[1], {"metadata": None}, 400),
        ("PATCH", f"{PODS}/web", PATCHES[2], {"kind": None, "apiVersion": None}, 200),
        (
            "POST", PODS, "json",
            {
                "metadata": {"name": "null", "finalizers": [None]},
                "spec": {"containers": [{"name": "a", "image": "x"}]},
            }, 422,
        ),
        (
            "POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets", "json",
            {"metadata": {"name": "no-spec"}}, 201,
        ),
        (
            "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "json",
            {
                "metadata": {"name": "a.example.com"},
                "spec": {"versions": [{"schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-validations": [{"rule": "true"}],
                }}}]},
            }, 422,
        ),
    ],
)  # fmt: skip
def test_requests_that_gave_500(method: str, path: str, form: str, body: Any, status: int) -> None:
    lab, _ = filled()

    assert lab.send(method, path, body, form)[0] == status
    code, found = lab.send("GET", f"{PODS}/web")
    assert (code, json.loads(found)["kind"], json.loads(found)["apiVersion"]) == (200, "Pod", "v1")
    lab.let_controllers_work()
    assert lab.warnings == []


def test_a_pod_is_evicted_beside_a_budget_without_a_spec() -> None:
    lab, _ = filled()
    lab.send("POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
             {"metadata": {"name": "no-spec"}})  # fmt: skip

    status, body = lab.send("POST", f"{PODS}/web/eviction", OTHERS[f"{PODS}/web/eviction"])

    assert status in {201, 409, 429}, body


def test_texts_in_an_object_that_nest_deeply_are_not_followed() -> None:
    """Who owns which field, and what `kubectl apply` wrote last, are JSON in texts."""
    lab, _ = filled()
    deep = "[" * 100_000
    owner = {
        "manager": "x", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {f"k:{deep}": {}}},
    }  # fmt: skip
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": deep}
    metadata = {"managedFields": [owner], "annotations": annotations}
    config = "/api/v1/namespaces/default/configmaps/config"
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "config"}}

    assert lab.send("PATCH", config, {"metadata": metadata}, PATCHES[1])[0] == 200
    for manager, data in (("x", "c"), ("kubectl", "d")):
        status, body = lab.send(
            "PATCH", f"{config}?fieldManager={manager}", {**wanted, "data": {"a": data}}, PATCHES[3]
        )
        assert status in {200, 409}, body


def test_copies_of_a_patch_are_bounded() -> None:
    """Each operation doubles the object: without a bound, sixteen take 2 GB, and ten 10 MB."""
    lab, _ = filled()
    config = "/api/v1/namespaces/default/configmaps/config"
    lab.send("PATCH", config, {"data": {"a": "x" * 10_000}}, PATCHES[1])
    doubling = [{"op": "copy", "from": "", "path": f"/data{number}"} for number in range(10)]

    status, body = lab.send("PATCH", config, doubling, PATCHES[0])

    assert status == 422, body


@pytest.mark.parametrize(
    ("field", "value", "wanted"),
    [
        ("maxLength", 2**63, "number 9223372036854775808 {} int64"),
        ("maxLength", 1.5, "number 1.5 {} int64"),
        ("maxLength", "1", "string {} int64"),
        ("minItems", -(10**20), "number -100000000000000000000 {} int64"),
        ("description", 7, "number {} string"),
    ],
)
def test_a_number_of_a_schema_fits_into_its_type(field: str, value: Any, wanted: str) -> None:
    """The answers of kube-apiserver v1.37."""
    lab, good = filled()
    definition = next(each for each in good if each["kind"] == "CustomResourceDefinition")
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"] = {"a": {"type": "string", field: value}}

    status, body = lab.send("PUT", f"{path_of(definition)}/gauges.factory.example.com", definition)

    where = (
        "into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema."
        f"properties.properties.{field} of type"
    )
    assert status == 400, body
    assert f"json: cannot unmarshal {wanted.format(where)}" in body.decode()


def test_a_schema_with_a_field_of_the_wrong_type_is_refused_as_such() -> None:
    lab, good = filled()
    definition = next(each for each in good if each["kind"] == "CustomResourceDefinition")
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"][
        "required"
    ] = "low"

    status, body = lab.send("PUT", f"{path_of(definition)}/gauges.factory.example.com", definition)

    assert status == 400
    assert (
        "json: cannot unmarshal string into Go struct field JSONSchemaProps.spec.versions.schema."
        "openAPIV3Schema.properties.required of type []string"
    ) in body.decode()
