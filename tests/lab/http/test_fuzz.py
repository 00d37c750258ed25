"""Malformed requests: never a 500, never a hang, and no object is lost.

Requests are made from valid objects by putting nonsense in random places. Whatever was acknowledged
as created must be there at the end, unless a deletion of it was acknowledged as well.
"""

from __future__ import annotations

import copy
import http.client
import json
import random
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.serving import TOKEN, LabServer, node, pod
from podium.lab.api.resources import TABLE, Resource

pytestmark = pytest.mark.slow

#: Values for any field.
NONSENSE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**70), 0.5, 1e308, "", " ", "a", "A_B", "a" * 300,
    "\u0000", "\U0001f984", "1Gi", "-1", "1e99999", "25%", "2024-01-01T00:00:00Z", [], [None],
    ["a"], {}, {"a": None}, {"": ""}, [[]], [{}],
)  # fmt: skip
NAMES = (
    *("a", "b", "c", "web-0") * 5,
    "x.y",
    "A_",
    "..",
    "%2e",
    "a" * 254,
    "default",
    "système",
    "",
)
NAMESPACES = (*("default",) * 8, "kube-system", "nope", "")
FORMS = (
    "application/json", "application/yaml", "application/json-patch+json",
    "application/merge-patch+json", "application/strategic-merge-patch+json",
    "application/apply-patch+yaml", "application/vnd.kubernetes.protobuf", "text/plain", "",
)  # fmt: skip
ACCEPTED = (
    "application/json",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf",
    "*/*",
    ";;,=",
)
PARAMETERS = {
    "labelSelector": ("a=b", "a in (b", "!a", "a b", ",", "a>1"),
    "fieldSelector": ("metadata.name=a", "spec.nodeName=", "status.phase!=Running", "foo=1", "\\"),
    "limit": ("1", "0", "-1", "x", "99999999999999999999"),
    "continue": ("x", "e30", "eyJydiI6MX0"),
    "resourceVersion": ("0", "1", "x", "99999999", "-1"),
    "resourceVersionMatch": ("Exact", "NotOlderThan", "x"),
    "dryRun": ("All", "x", ""),
    "fieldManager": ("me", "a" * 200, "\u0000"),
    "fieldValidation": ("Strict", "Warn", "Ignore", "x"),
    "force": ("true", "x"),
    "propagationPolicy": ("Orphan", "Background", "Foreground", "x"),
    "gracePeriodSeconds": ("0", "-1", "x", "99999999999999999999"),
    "includeObject": ("Object", "None", "x"),
    "pretty": ("true",),
}
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]},
}
SPECS: dict[str, Any] = {
    "Deployment": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE},
    "Service": {"ports": [{"port": 80}], "selector": {"a": "b"}},
    "PersistentVolumeClaim": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    },
    "PersistentVolume": {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/a"},
    },
    "PodDisruptionBudget": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}},
    "Job": {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}},
}  # fmt: skip
SPECS |= dict.fromkeys(("ReplicaSet", "StatefulSet", "DaemonSet"), SPECS["Deployment"])
#: What is sent to the paths below an object, and with a deletion.
SUBRESOURCE_BODIES: dict[str, Any] = {
    "binding": {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "a", "labels": {"a": "b"}, "annotations": {"a": "b"}},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
    },
    "eviction": {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "a"},
        "deleteOptions": {"gracePeriodSeconds": 1, "preconditions": {"uid": "u"}, "dryRun": []},
    },
    "scale": {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "a"},
        "spec": {"replicas": 2},
        "status": {"replicas": 1, "selector": "a=b"},
    },
    "options": {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 1,
        "preconditions": {"uid": "u", "resourceVersion": "1"},
        "propagationPolicy": "Background",
        "orphanDependents": False,
        "dryRun": ["All"],
    },
}


class Fuzzer:
    """Sends random requests and remembers what must exist."""

    def __init__(self, lab: LabServer, chance: random.Random) -> None:
        self.lab = lab
        self.chance = chance
        self.connection = http.client.HTTPConnection("127.0.0.1", lab.port, timeout=20)
        self.alive: dict[str, str] = {}

    def object(self, row: Resource) -> Any:
        """A valid object of a kind, or close to one, with nonsense in it now and then."""
        made = node("n") if row.kind == "Node" else pod("p") if row.kind == "Pod" else {}
        made = {**made, "apiVersion": row.group_version, "kind": row.kind}
        made["metadata"] = {"name": self.chance.choice(NAMES)}
        if row.kind in SPECS:
            made["spec"] = copy.deepcopy(SPECS[row.kind])
        for _ in range(self.chance.choice((0, 0, 0, 1, 1, 3))):
            made = self.spoiled(made)
        return made

    def spoiled(self, value: Any) -> Any:
        """The same with one value somewhere replaced, removed or added."""
        if isinstance(value, dict) and value and self.chance.random() < 0.85:
            key = self.chance.choice(list(value))
            if self.chance.random() < 0.1:
                return {each: value[each] for each in value if each != key}
            if self.chance.random() < 0.1:
                return {**value, self.chance.choice(("x", "", "name", "spec")): self.nonsense()}
            return {**value, key: self.spoiled(value[key])}
        if isinstance(value, list) and value and self.chance.random() < 0.85:
            index = self.chance.randrange(len(value))
            return [*value[:index], self.spoiled(value[index]), *value[index + 1 :]]
        return self.nonsense()

    def nonsense(self) -> Any:
        return copy.deepcopy(self.chance.choice(NONSENSE))

    def subresource_body(self, kind: str) -> Any:
        """A body for a subresource, in most cases with a wrong value."""
        made = copy.deepcopy(SUBRESOURCE_BODIES[kind])
        for _ in range(self.chance.choice((0, 1, 1, 2, 3))):
            made = self.spoiled(made)
        return made

    def body(self, row: Resource, method: str, path: str) -> bytes:
        kind = self.chance.random()
        if kind < 0.03:
            return bytes(self.chance.randrange(256) for _ in range(self.chance.randrange(60)))
        if kind < 0.04:
            return b'{"a":' * 3000
        if method == "DELETE":
            return b"" if kind < 0.5 else json.dumps(self.subresource_body("options")).encode()
        ending = path.rpartition("/")[2]
        if ending in SUBRESOURCE_BODIES and kind < 0.9:
            return json.dumps(self.subresource_body(ending)).encode()
        if method == "PATCH" and kind < 0.3:
            steps = [{"op": self.chance.choice(("add", "remove", "replace", "test", "x")),
                      "path": self.chance.choice(("/spec", "/metadata/labels/a", "", "x", "/a/0")),
                      "value": self.nonsense()}]  # fmt: skip
            return json.dumps(steps).encode()
        return json.dumps(self.object(row)).encode()

    def path(self, row: Resource, method: str) -> str:
        chance = self.chance
        if chance.random() < 0.03:
            return chance.choice(
                ("/", "/api", "/apis", "/apis/apps", "/foo", "//", "/api/v1/x/y/z/a/b")
            )
        namespace = (
            chance.choice(NAMESPACES) if row.namespaced else chance.choice((*("",) * 9, "x"))
        )
        path = row.path(namespace)
        named = method in {"PUT", "PATCH"} or (method != "POST" and chance.random() < 0.6)
        if named or chance.random() < 0.05:
            path += f"/{chance.choice(NAMES)}"
            if chance.random() < 0.3:
                below = ("status", "scale", "scale", "binding", "eviction", "finalize", "log", "x")
                path += f"/{chance.choice(below)}"
        elif method == "POST" and row.plural == "pods" and chance.random() < 0.5:
            path += f"/{chance.choice(NAMES[:3])}/{chance.choice(('binding', 'eviction'))}"
        return path

    def step(self) -> None:
        chance = self.chance
        row = chance.choice(TABLE)
        method = chance.choice(("GET", "POST", "POST", "POST", "PUT", "PATCH", "DELETE", "FOO"))
        path = self.path(row, method).encode("utf-8").decode("latin-1")
        count = chance.choice((0, 0, 0, 1, 2))
        chosen = chance.sample(list(PARAMETERS), count)
        asked = {name: chance.choice(PARAMETERS[name]) for name in chosen}
        query = "&".join(f"{name}={value}" for name, value in asked.items())
        address = f"{path}?{query}" if query else path
        address = "".join(
            each if "!" <= each <= "~" else f"%{ord(each) & 255:02x}" for each in address
        )
        form = FORMS[0] if chance.random() < 0.9 else chance.choice(FORMS)
        if method == "PATCH" and chance.random() < 0.8:
            form = chance.choice(FORMS[2:6])
        headers = {
            "Authorization": f"Bearer {TOKEN}",
            "Content-Type": form,
            "Accept": ACCEPTED[0] if chance.random() < 0.7 else chance.choice(ACCEPTED),
        }
        body = self.body(row, method, path) if method not in {"GET", "FOO"} else None
        self.connection.request(method, address, body, headers)
        response = self.connection.getresponse()
        text = response.read()
        shown = f"{method} {address} {form} {body!r} -> {response.status} {text[:400]!r}"
        assert response.status < 500 or response.status == 504, shown
        if response.status < 400:
            self.remember(method, row, address, response.status, text)
        elif text.startswith(b"{"):
            assert json.loads(text)["kind"] == "Status", shown

    def remember(self, method: str, row: Resource, address: str, status: int, text: bytes) -> None:
        """Note what exists from now on, and what no longer has to."""
        path, _, query = address.partition("?")
        dry = "dryRun=All" in query
        if method == "POST" and status == 201 and "list" in row.verbs and not dry:
            if path.endswith(("/binding", "/eviction")):
                self.forget(path.rpartition("/")[0])
                return
            made = json.loads(text)
            if made["kind"] == "Table":
                made = made["rows"][0]["object"] or {}
            about = made.get("metadata")
            if about and "uid" in about:
                stored = row.path(about.get("namespace", ""), about["name"])
                self.alive[stored] = about["uid"]
        elif method == "DELETE" and not dry:
            self.forget(path)

    def forget(self, path: str) -> None:
        """An object, or a whole collection, in whatever version it was named."""
        tail = unquote(path).split("/v1", 1)[-1].removeprefix("beta1")
        plural = tail.rsplit("/", 1)[-1]
        everywhere = tail.count("/") == 1
        for each in list(self.alive):
            same = tail in each
            if same or (everywhere and f"/{plural}/" in each):
                del self.alive[each]

    def check(self) -> None:
        """Everything that must exist does."""
        for path, uid in self.alive.items():
            reply = self.lab.call("GET", quote(path))
            assert reply.status == 200, (path, reply)
            assert reply.body["metadata"]["uid"] == uid, path


def fuzz(lab: LabServer, seed: int, steps: int) -> None:
    fuzzer = Fuzzer(lab, random.Random(seed))  # noqa: S311
    try:
        for _ in range(steps):
            fuzzer.step()
        fuzzer.check()
    finally:
        fuzzer.connection.close()


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=50)
def test_nonsense_is_refused_and_harms_nothing(seed: int) -> None:
    with LabServer() as lab:
        fuzz(lab, seed, 40)


@pytest.mark.soak
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=100)
def test_much_nonsense_is_refused_and_harms_nothing(seed: int) -> None:
    with LabServer() as lab:
        fuzz(lab, seed, 120)
