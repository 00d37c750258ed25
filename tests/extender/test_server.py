"""What `podium extender` answers, in both forms of the protocol."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from builders import node, objects, pod
from cases import cases
from podium.engine.framework.profile import Profile, Weighted
from podium.engine.rules.resources.predicates import GeneralPredicates, LeastRequestedPriority
from podium.engine.state.accounting import ContainerSums
from podium.extender.cluster_state import FORGET_SECONDS, ExtenderState
from podium.extender.server import MOST_AT_ONCE, ExtenderApp, ExtenderVerbs
from podium.kube.http_rules import LOOPBACK
from podium.objects.kinds.meta import Object
from podium.profiles.user_rules.loading import LoadedRules, rules_in, with_rules
from podium.rules import predicate, priority


@predicate("SameTeam", reason="node(s) belonged to another team", depends="node")
def same_team(pod: Any, node: Any) -> bool:
    return bool(pod.labels.get("team") == node.labels.get("team"))


@predicate("Quiet", reason="node(s) were noisy", depends="pods")
def quiet(pod: Any, node: Any) -> bool:
    return not any("noisy" in each.labels for each in node.pods)


@priority("Rank", weight=3, depends="node")
def rank(pod: Any, node: Any) -> int:
    return int(node.labels["rank"])


SPECS = [spec for rule in (same_team, quiet, rank) for spec in rules_in(rule)]
RULES = LoadedRules(
    {spec.name: spec for spec in SPECS if spec.kind == "predicate"},
    {spec.name: spec for spec in SPECS if spec.kind == "priority"},
)
NOTHING = Profile("own", (), (), ContainerSums())

NODES: list[Any] = [
    {"metadata": {"name": "a", "labels": {"team": "red", "rank": "1"}}, "extra": {"kept": True}},
    {"metadata": {"name": "b", "labels": {"team": "red", "rank": "4"}}},
    {"metadata": {"name": "c", "labels": {"team": "blue", "rank": "9"}}},
]
POD = {"metadata": {"name": "p", "labels": {"team": "red"}}}
OTHER_TEAM = "node(s) belonged to another team"


class Server:
    """The application, called without a network."""

    def __init__(
        self, profile: Profile = NOTHING, *known: Object, rules: LoadedRules = RULES, **access: Any
    ) -> None:
        whole = with_rules(profile, rules)
        self.state = ExtenderState(whole)
        self.state.load(objects(*known))
        self.told: list[str] = []
        self._app = ExtenderApp(
            ExtenderVerbs(whole, self.state), self.state, None, self.told.append
        ).asgi(**access)

    def post(self, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        given = {"content_type": "application/json", "host": "127.0.0.1:8888", **headers}
        return asyncio.run(self._exchange("POST", path, body, given))

    def get(self, path: str, **headers: str) -> tuple[int, Any]:
        return asyncio.run(self._exchange("GET", path, None, headers))

    async def _exchange(
        self, method: str, path: str, body: Any, headers: dict[str, str]
    ) -> tuple[int, Any]:
        given = [
            (name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()
        ]
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(),
            "query_string": b"", "headers": given, "http_version": "1.1", "scheme": "http",
            "server": ("test", 80), "client": ("test", 1), "root_path": "",
        }  # fmt: skip
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": text, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self._app(scope, receive, send)
        answer = b"".join(message.get("body", b"") for message in sent)
        status: int = sent[0]["status"]
        return status, json.loads(answer) if answer[:1] in b"[{" else answer.decode()


def test_whole_nodes_are_given_back_as_they_came() -> None:
    status, said = Server().post(
        "/filter", {"Pod": POD, "Nodes": {"items": NODES}, "NodeNames": None}
    )

    assert status == 200
    assert said == {
        "Nodes": {"metadata": {}, "items": NODES[:2]},
        "NodeNames": None,
        "FailedNodes": {"c": OTHER_TEAM},
        "FailedAndUnresolvableNodes": {"c": OTHER_TEAM},
        "Error": "",
    }


def test_the_lower_case_form_is_answered_in_kind() -> None:
    _, said = Server().post("/filter", {"pod": POD, "nodes": {"items": NODES}})

    assert list(said) == [
        "nodes",
        "nodenames",
        "failedNodes",
        "failedAndUnresolvableNodes",
        "error",
    ]
    assert said["nodes"]["items"] == NODES[:2]

    _, said = Server().post("/prioritize", {"pod": POD, "nodes": {"items": NODES}})
    assert said[1] == {"host": "b", "score": 12}


def test_scores_are_weighted_sums() -> None:
    _, said = Server().post("/x/y/prioritize", {"Pod": POD, "Nodes": {"items": NODES}})

    assert said == [
        {"Host": "a", "Score": 3},
        {"Host": "b", "Score": 12},
        {"Host": "c", "Score": 27},
    ]


def test_a_profile_that_scores_to_a_hundred_is_scaled() -> None:
    profile = Profile("own", (), (), ContainerSums(), max_score=100)
    _, said = Server(profile).post("/prioritize", {"Pod": POD, "Nodes": {"items": NODES[1:2]}})

    assert said == [{"Host": "b", "Score": 1}]  # 12 of 100


def test_names_mean_what_is_known() -> None:
    known = [node("a", labels={"team": "red"}), node("b", labels={"team": "blue"})]
    _, said = Server(NOTHING, *known).post("/filter", {"Pod": POD, "NodeNames": ["b", "a", "z"]})

    assert said["NodeNames"] == ["a"]
    assert said["Nodes"] is None
    assert said["FailedNodes"] == {"b": OTHER_TEAM, "z": "node(s) were unknown to the extender"}
    assert said["FailedAndUnresolvableNodes"] == {"b": OTHER_TEAM}


def test_pods_count_where_they_are_known() -> None:
    red = {"team": "red"}
    known = [node("a", labels=red), node("b", labels=red), pod("x", node="a", labels={"noisy": ""})]
    server = Server(NOTHING, *known)

    _, said = server.post("/filter", {"Pod": POD, "NodeNames": ["a", "b"]})
    assert said["NodeNames"] == ["b"]
    assert said["FailedNodes"] == {"a": "node(s) were noisy"}
    assert said["FailedAndUnresolvableNodes"] == {}  # evicting pods would help

    server.state.drop_pod("default/x")
    _, said = server.post("/filter", {"Pod": POD, "NodeNames": ["a", "b"]})
    assert said["NodeNames"] == ["a", "b"]


def test_built_in_rules_are_served_too() -> None:
    profile = Profile(
        "own", (GeneralPredicates(),), (Weighted(LeastRequestedPriority(), 2),), ContainerSums()
    )
    known = [node("a", cpu="1"), node("b", cpu="4"), pod("x", node="b", requests={"cpu": "2"})]
    server = Server(profile, *known, rules=LoadedRules())
    container = {"name": "c", "resources": {"requests": {"cpu": "2"}}}
    wanted = {"metadata": {"name": "p"}, "spec": {"containers": [container]}}

    _, said = server.post("/filter", {"Pod": wanted, "NodeNames": ["a", "b"]})
    assert said["FailedNodes"] == {"a": "Insufficient cpu"}
    _, said = server.post("/prioritize", {"Pod": wanted, "NodeNames": ["b"]})
    assert said == [{"Host": "b", "Score": 2 * 4}]  # (0 + 9) // 2 for cpu and memory


def test_a_changed_node_is_read_again() -> None:
    server = Server()
    ask = {"Pod": POD, "Nodes": {"items": NODES[2:]}}
    _, before = server.post("/filter", ask)
    changed = {"metadata": {"name": "c", "labels": {"team": "red", "rank": "1"}}}
    _, after = server.post("/filter", {"Pod": POD, "Nodes": {"items": [changed]}})

    assert before["Nodes"]["items"] == []
    assert after["Nodes"]["items"] == [changed]


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_victims_are_kept_where_the_rules_let_the_pod_in(lower: bool, whole: bool) -> None:
    red = {"team": "red"}
    known = [
        node("a", labels=red),
        node("b", labels=red),
        node("c", labels={"team": "blue"}),
        pod("x", uid="ux", node="a", labels={"noisy": ""}),
        pod("y", uid="uy", node="b", labels={"noisy": ""}),
        pod("z", uid="uz", node="b"),
    ]
    uid, pods, number = (
        ("uid", "pods", "numPDBViolations") if lower else ("UID", "Pods", "NumPDBViolations")
    )
    key = (
        ("nodeToVictims" if lower else "NodeNameToVictims")
        if whole
        else ("nodeNameToMetaVictims" if lower else "NodeNameToMetaVictims")
    )

    def victim(name: str) -> Any:
        return {"metadata": {"uid": name}} if whole else {uid: name}

    candidates = {
        "a": {pods: [victim("ux")], number: 1},
        "b": {pods: [victim("uz")], number: 0},  # the noisy one stays
        "c": {pods: [], number: 0},
        "z": {pods: [], number: 0},
    }
    body = {"pod" if lower else "Pod": POD, key: candidates}
    status, said = Server(NOTHING, *known).post("/preempt", body)

    answer = "nodeNameToMetaVictims" if lower else "NodeNameToMetaVictims"
    assert (status, said) == (200, {answer: {"a": {pods: [{uid: "ux"}], number: 1}}})


def test_without_an_api_server_nothing_is_bound() -> None:
    _, said = Server().post(
        "/bind", {"PodName": "p", "PodNamespace": "n", "PodUID": "u", "Node": "a"}
    )

    assert said == {"Error": "this extender has no API server to bind at; start it with --server"}


@cases(
    ("path", "body", "status", "sentence"),
    {
        "a wrong verb": ("/filters", {}, 404, "no verb 'filters'; known: filter, "),
        "half a request": ("/filter", b"{", 400, "the request is not readable"),
        "a list": ("/filter", [], 400, "the request is not readable"),
        "no pod": ("/filter", {"Nodes": None}, 400, "the request has no pod"),
        "not a pod": ("/filter", {"Pod": 1}, 400, "the request is not readable"),
        "a quantity of a pod": (
            "/prioritize",
            {"Pod": {"spec": {"containers": [{"resources": {"requests": {"cpu": "much"}}}]}}},
            400,
            "the request is not readable: pod: spec.containers[0].resources.requests.cpu: 'much'",
        ),
        "not a node": (
            "/filter",
            {"Pod": POD, "Nodes": {"items": [{"metadata": {"name": "a"}, "spec": 5}]}},
            400,
            "the request is not readable: Expected `object`, got `int` - at `$.spec`",
        ),
        "a quantity of a node": (
            "/filter",
            {
                "Pod": POD,
                "Nodes": {
                    "items": [{"metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "x"}}}]
                },
            },
            400,
            "the request is not readable: node a: status.allocatable.cpu: 'x' is not a quantity",
        ),
    },
)
def test_bad_requests(path: str, body: Any, status: int, sentence: str) -> None:
    server = Server()

    found, said = server.post(path, body)

    assert found == status
    assert said.startswith(sentence)
    assert server.post("/filter", ASKED)[0] == 200, "the next request is answered"


def test_an_unforeseen_exception_is_told_and_ends_one_request_alone(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("absent")

    server = Server()
    with monkeypatch.context() as patched:
        patched.setattr(ExtenderVerbs, "filter", fail)

        assert server.post("/filter", ASKED) == (500, "KeyError: 'absent'")

    assert "Traceback" in caplog.text
    assert server.post("/filter", ASKED)[0] == 200


ASKED = {"Pod": POD, "Nodes": {"items": NODES}}


@cases(
    ("headers", "status", "sentence"),
    {
        "a page": ({"origin": "http://evil.example"}, 403, "requests of web pages"),
        "own origin": ({"origin": "http://127.0.0.1:8888"}, 403, "requests of web"),
        "a browser": ({"sec_fetch_site": "cross-site"}, 403, "requests of web"),
        "a rebound name": ({"host": "evil.example:8888"}, 421, "this is not evil."),
        "no name": ({"host": ""}, 421, "this is not a host without a name"),
        "half a name": ({"host": "[::"}, 421, "this is not [::"),
        "a form": ({"content_type": "text/plain"}, 415, "the content type must"),
        "no size": ({"content_length": "x"}, 413, "the request is larger than"),
    },
)
def test_requests_of_others_than_schedulers_are_refused(
    headers: dict[str, str], status: int, sentence: str
) -> None:
    found, said = Server(hosts=LOOPBACK).post("/filter", ASKED, **headers)

    assert found == status
    assert said.startswith(sentence)


def test_any_name_is_answered_where_no_hosts_are_given() -> None:
    assert Server().post("/filter", ASKED, host="podium.kube-system.svc")[0] == 200


@pytest.mark.parametrize(
    ("length", "status"), [("1000", 413), ("", 413)], ids=["told", "found while reading"]
)
def test_bodies_are_bounded(length: str, status: int) -> None:
    headers = {"content_length": length} if length else {}
    found, said = Server(largest_body=100).post("/filter", ASKED, **headers)

    assert (found, said) == (status, "the request is larger than 100 bytes")


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/filter", {}, 401),
        ("/filter", {"authorization": "Bearer wrong"}, 401),
        ("/token/wrong/filter", {}, 401),
        ("/filter", {"authorization": "Bearer secret"}, 200),
        ("/token/secret/filter", {}, 200),
    ],
)
def test_a_token_is_asked_for(path: str, headers: dict[str, str], status: int) -> None:
    assert Server(token="secret").post(path, ASKED, **headers)[0] == status  # noqa: S106


def test_probes_need_no_token() -> None:
    assert Server(token="secret").get("/healthz") == (200, "ok")  # noqa: S106


def test_probes() -> None:
    assert Server().get("/healthz") == (200, "ok")
    assert Server().get("/readyz") == (200, "ok")


def test_examples_in_the_help_are_a_policy() -> None:
    from podium.cli.extender import extender  # noqa: PLC0415
    from podium.profiles.policy.build import Options, from_policy  # noqa: PLC0415

    text = (extender.callback.__doc__ or "").partition("kube-scheduler v1.13:\n")[2]
    policy = {"kind": "Policy", "apiVersion": "v1", **json.loads("{" + text + "}")}
    [made] = from_policy(policy, Options()).extenders
    assert (made.filter_verb, made.bind_verb, made.node_cache_capable) == ("filter", "bind", True)
    assert Path(made.url_prefix).name == "127.0.0.1:8888"


def test_nodes_that_no_request_has_any_more_are_forgotten() -> None:
    now = [0.0]
    state = ExtenderState(NOTHING, clock=lambda: now[0])
    state.load(objects(node("from-a-file")))

    def ask(*names: str) -> None:
        nodes = {name: json.dumps({"metadata": {"name": name}}).encode() for name in names}
        state.put_encoded_nodes({name: msgspec.Raw(text) for name, text in nodes.items()})

    ask("gone", "stays", "from-a-file")
    for _ in range(20):
        now[0] += FORGET_SECONDS / 10
        ask("stays")

    assert state.has_node("stays")
    assert state.has_node("from-a-file")
    assert not state.has_node("gone")
    assert state._encoded.keys() <= {"stays", "from-a-file"}


def test_a_new_list_replaces_what_is_known() -> None:
    state = ExtenderState(NOTHING)
    state.load(objects(node("gone"), node("stays"), pod("p", uid="p", node="stays")))

    state.replace_nodes([node("stays"), node("new")])
    state.replace_pods([pod("q", uid="q", node="new")])

    names = ("gone", "stays", "new")
    residents = state.columns.pods.residents
    rows = {name: state.columns.nodes.row_of[name] for name in names if state.has_node(name)}
    assert {name: [each.key for each in residents[row]] for name, row in rows.items()} == {
        "stays": [],
        "new": ["default/q"],
    }


def test_few_requests_are_read_at_a_time() -> None:
    server = Server()
    reading = most = 0
    going_on = asyncio.Event()

    async def ask() -> int:
        sent: list[Any] = []

        async def receive() -> Any:
            nonlocal reading, most
            reading += 1
            most = max(most, reading)
            await going_on.wait()
            reading -= 1
            return {"type": "http.request", "body": b"{}", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"content-type", b"application/json"), (b"host", b"localhost")]
        scope = {"type": "http", "method": "POST", "path": "/filter", "headers": headers,
                 "query_string": b"", "root_path": ""}  # fmt: skip
        await server._app(scope, receive, send)
        return int(sent[0]["status"])

    async def run() -> list[int]:
        asking = [asyncio.ensure_future(ask()) for _ in range(50)]
        for _ in range(20):
            await asyncio.sleep(0)
        going_on.set()
        return await asyncio.gather(*asking)

    assert len(asyncio.run(run())) == 50
    assert most == MOST_AT_ONCE
