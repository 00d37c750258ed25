"""What Podium sends to extenders, and what it makes of their replies."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from aiohttp import web

from builders import node, pod
from builders import simulation as simulated
from cases import cases
from extender.scripted import SILENCE, Scripted, certificate
from podium.engine.framework.decision import Decision
from podium.engine.framework.extenders import AskFilter, Extender
from podium.engine.framework.profile import Profile
from podium.engine.preemption.plugin import DefaultPreemption
from podium.engine.preemption.pod_priority import PodPriorityPreemption
from podium.engine.rules.resources.predicates import GeneralPredicates
from podium.engine.state.accounting import ContainerSums
from podium.errors import ConfigError
from podium.extender import client
from podium.extender.client import ExtenderClient, blocking_client, context_of
from podium.extender.wire import go_format
from podium.generations.known import GENERATIONS
from podium.generations.v1_13 import V1_13
from podium.generations.v1_36 import V1_36
from podium.library.simulations import SimulatedObjects
from podium.objects.kinds.meta import Object
from podium.objects.kinds.pod import Pod

ABC = [node("a", labels={"l": "1"}), node("b"), node("c")]
CPU = {"cpu": "1"}
FULL = [
    node("a", cpu=1),
    node("b", cpu=1),
    pod("x", uid="ux", node="a", priority=1, requests=CPU),
    pod("y", uid="uy", node="b", priority=2, requests=CPU),
]


def decide(
    *extenders: Extender,
    ground: list[Object] | None = None,
    wanted: Pod | None = None,
    generation: str = "v1.13",
) -> Decision:
    current = generation == "v1.36"
    preemption = DefaultPreemption() if current else PodPriorityPreemption()
    profile = Profile(
        "test", (GeneralPredicates(),), (), ContainerSums(), extenders=extenders,
        post_filters=(preemption,), max_score=100 if current else 10,
    )  # fmt: skip
    seen = SimulatedObjects()
    with blocking_client(seen) as answer:
        seen.simulation = simulated(*(ground or ABC), profile=profile, answer=answer)
        return seen.simulation.attempt(wanted or pod("new", uid="u"), recording=True)


def filters(at: Scripted | str, **options: Any) -> Extender:
    url = at if isinstance(at, str) else at.url
    return Extender(f"{url}//", filter_verb="filter", **{"protocol": V1_13.extenders, **options})


def scores(at: Scripted, **options: Any) -> Extender:
    return Extender(
        at.url,
        prioritize_verb="prioritize",
        **{"weight": 1, "protocol": V1_13.extenders, **options},
    )


def evicts(at: Scripted, **options: Any) -> Extender:
    return Extender(at.url, preempt_verb="preempt", **{"protocol": V1_13.extenders, **options})


def names(listed: Any) -> list[str]:
    return [each["metadata"]["name"] for each in listed]


# Requests -----------------------------------------------------------------------------------------


def test_whole_nodes_are_sent_under_the_names_of_go_fields() -> None:
    with Scripted(filter=lambda asked: {"Nodes": asked["Nodes"]}) as extender:
        decision = decide(filters(extender))

    [(verb, asked)] = extender.asked
    assert verb == "filter"
    assert extender.types == {"application/json"}
    assert list(asked) == ["Pod", "Nodes", "NodeNames"]
    assert asked["Pod"]["metadata"]["name"] == "new"
    assert asked["Nodes"]["metadata"] == {}
    assert names(asked["Nodes"]["items"]) == ["a", "b", "c"]
    assert asked["Nodes"]["items"][0]["metadata"]["labels"] == {"l": "1"}
    assert asked["NodeNames"] is None
    assert decision.feasible == ["a", "b", "c"]


def test_names_are_sent_to_who_knows_the_nodes() -> None:
    with Scripted(
        filter={"NodeNames": ["c", "a"]}, prioritize=[{"Host": "a", "Score": 7}]
    ) as extender:
        decision = decide(
            filters(extender, node_cache_capable=True), scores(extender, node_cache_capable=True)
        )

    assert [asked["Nodes"] for _, asked in extender.asked] == [None, None]
    assert [asked["NodeNames"] for _, asked in extender.asked] == [["a", "b", "c"], ["c", "a"]]
    assert decision.node == "a"


def test_an_ignored_extender_is_told_of_once_until_it_answers() -> None:
    codes = [500, 500, 500, 200, 500]
    told: list[str] = []

    async def post(extender: Extender, url: str, body: bytes) -> tuple[int, bytes]:
        return codes.pop(0), b'{"NodeNames": ["a"]}'

    async def run() -> None:
        ground = simulated(*ABC, profile=Profile("test", (), (), ContainerSums()))
        asked = AskFilter(
            Extender(
                "http://x",
                filter_verb="filter",
                ignorable=True,
                node_cache_capable=True,
                protocol=V1_13.extenders,
            ),
            ground.cache.columns.pods.incoming(pod("p")),
            ("a", "b", "c"),
        )
        async with ExtenderClient(SimulatedObjects(), told.append, post) as client:
            for _ in range(5):
                await client.ask(asked)

    asyncio.run(run())
    line = (
        "extender http://x is ignored: Failed filter with extender at URL http://x/filter, code 500"
    )
    assert told == [line, line]


def test_victims_are_sent_whole_or_as_uids() -> None:
    reply = {"NodeNameToMetaVictims": {"b": {"Pods": [{"UID": "uy"}]}}}
    with Scripted(preempt=reply) as extender:
        wanted = pod("new", priority=9, requests=CPU)
        whole = decide(evicts(extender), ground=FULL, wanted=wanted)
        decide(evicts(extender, node_cache_capable=True), ground=FULL, wanted=wanted)

    (_, first), (_, second) = extender.asked
    assert list(first) == ["Pod", "NodeNameToVictims", "NodeNameToMetaVictims"]
    assert names(first["NodeNameToVictims"]["a"]["Pods"]) == ["x"]
    assert first["NodeNameToVictims"]["a"]["NumPDBViolations"] == 0
    assert first["NodeNameToMetaVictims"] is None
    assert second["NodeNameToVictims"] is None
    assert second["NodeNameToMetaVictims"] == {
        "a": {"Pods": [{"UID": "ux"}], "NumPDBViolations": 0},
        "b": {"Pods": [{"UID": "uy"}], "NumPDBViolations": 0},
    }
    assert whole.preemption is not None
    assert whole.preemption.node == "b"
    assert whole.preemption.candidates["b"].pods == ("default/y",)


@cases(
    ("reply", "error"),
    {
        "bound": ({"Error": ""}, ""),
        "nothing said": ({}, ""),
        "an error is a format": ({"error": "100% bad"}, "100%!b(MISSING)ad"),
        "a code": ((409, b"no"), "Failed bind with extender at URL {}/bind, code 409"),
        "no body": (b"", "EOF"),
    },
)
def test_binding(reply: Any, error: str) -> None:
    async def bind(extender: Extender) -> str:
        async with ExtenderClient(SimulatedObjects()) as client:
            return await client.bind(extender, pod("p", namespace="ns", uid="u1"), "n1")

    with Scripted(bind=reply) as scripted:
        said = asyncio.run(bind(Extender(scripted.url, bind_verb="bind", protocol=V1_13.extenders)))

    assert scripted.asked == [
        ("bind", {"PodName": "p", "PodNamespace": "ns", "PodUID": "u1", "Node": "n1"})
    ]
    assert said == error.format(scripted.url)


# Replies ------------------------------------------------------------------------------------------


@cases(
    ("reply", "left"),
    {
        "Go names": ({"Nodes": {"items": [{"metadata": {"name": "b"}}]}}, ["b"]),
        "lower case": ({"nodes": {"items": [{"metadata": {"name": "b"}}]}}, ["b"]),
        "any case": ({"NODES": {"ITEMS": [{"metadata": {"name": "b"}}]}}, ["b"]),
        "no items": ({"Nodes": {"items": None}}, []),
        "nothing at all": ({}, []),
        "null": (b"null", []),
        "names do not count": ({"NodeNames": ["a"]}, []),
        "its order": (
            {"Nodes": {"items": [{"metadata": {"name": n}} for n in ("c", "a")]}},
            ["c", "a"],
        ),
        "what follows is not read": (
            b'{"Nodes":{"items":[{"metadata":{"name":"b"}}]},"extra":1} and more',
            ["b"],
        ),
    },
)
def test_filter_replies(reply: Any, left: list[str]) -> None:
    with Scripted(filter=reply) as extender:
        decision = decide(filters(extender))

    assert list(decision.feasible) == left
    assert decision.error == ""


def test_messages_are_shown() -> None:
    reply = {"nodenames": [], "failedNodes": {"a": "no", "b": "no"}}
    with Scripted(filter=reply) as extender:
        decision = decide(filters(extender, node_cache_capable=True))

    assert decision.message == "0/3 nodes are available: 2 no."


@cases(
    ("reply", "error"),
    {
        "an error is a format": ({"Error": "100% bad"}, "100%!b(MISSING)ad"),
        "500": ((500, b""), "Failed filter with extender at URL {}/filter, code 500"),
        "201": ((201, {}), "Failed filter with extender at URL {}/filter, code 201"),
        "no body": (b"", "EOF"),
        "no JSON": (b"<html>", "JSON is malformed"),
        "half of it": (b"{", "Input data was truncated"),
        "a list": ([1], "a filter result: expected a mapping, got a list"),
        "not nodes": ({"Nodes": "a"}, "nodes: expected a mapping, got a string"),
        "not an error": ({"Error": 7}, "error: expected a string, got a number"),
        "too slow": (SILENCE, 'Post "{}/filter": no answer within 0.3 s'),
    },
)
@pytest.mark.parametrize("ignorable", [False, True])
def test_failing_filters(reply: Any, error: str, ignorable: bool) -> None:
    with Scripted(filter=reply) as extender:
        decision = decide(filters(extender, ignorable=ignorable, timeout_seconds=0.3))
        expected = error.format(extender.url)

    if ignorable:
        assert (decision.error, decision.feasible) == ("", ["a", "b", "c"])
    else:
        assert decision.error.startswith(expected)
        assert decision.preemption is None


def test_nobody_there() -> None:
    decision = decide(filters("http://127.0.0.1:1"))

    assert decision.error == 'Post "http://127.0.0.1:1/filter": connection refused'


@pytest.mark.parametrize(
    "url",
    ["localhost:80", "https://", "ftp://there/x", "http://a b/", "http://a/b c", "http://a:99999"],
)
def test_no_address(url: str) -> None:
    assert decide(filters(url)).error.startswith(f'Post "{url.rstrip("/")}')


def test_a_password_in_the_address_is_sent_as_one() -> None:
    with Scripted(filter=lambda asked: {"Nodes": asked["Nodes"]}) as server:
        assert decide(filters(server.url.replace("//", "//us:s%40cret@"))).error == ""

    secret = base64.b64encode(b"us:s@cret").decode()
    assert server.authorizations == [f"Basic {secret}"]


def test_an_unknown_name_is_an_error() -> None:
    with Scripted(filter={"NodeNames": ["z"]}) as extender:
        decision = decide(filters(extender, node_cache_capable=True))

    assert decision.error == (
        f'extender "{extender.url}//" claims a filtered node "z" '
        "which is not found in the input node list"
    )


@cases(
    ("reply", "totals"),
    {
        "Go names": ([{"Host": "a", "Score": 7}], [14, 0, 0]),
        "lower case": ([{"host": "a", "score": 7}], [14, 0, 0]),
        "no score is nothing": ([{"host": "a"}], [0, 0, 0]),
        "a fraction is an error": ([{"host": "a", "score": 7.5}], [0, 0, 0]),
        "a text is an error": ([{"host": "a", "score": "7"}], [0, 0, 0]),
        "no list is an error": ({"host": "a"}, [0, 0, 0]),
        "a code is an error": ((500, b""), [0, 0, 0]),
        "null is an empty list": (b"null", [0, 0, 0]),
    },
)
def test_scores(reply: Any, totals: list[int]) -> None:
    with Scripted(prioritize=reply) as extender:
        decision = decide(scores(extender, weight=2))

    assert decision.error == ""
    assert decision.totals is not None
    assert decision.totals.tolist() == totals


def test_scores_are_asked_for_at_the_same_time() -> None:
    # Each waits for the other before it answers.
    both = threading.Barrier(2)

    def together(_: Any) -> Any:
        both.wait(10)
        return [{"Host": "b", "Score": 1}]

    with Scripted(prioritize=together) as one, Scripted(prioritize=together) as two:
        decision = decide(scores(one), scores(two))

    assert decision.totals is not None
    assert decision.totals.tolist() == [0, 2, 0]


# Victims ------------------------------------------------------------------------------------------


def victims(reply: Any, *, generation: str = "v1.13", **options: Any) -> Decision:
    with Scripted(preempt=reply) as extender:
        extenders = evicts(extender, protocol=GENERATIONS[generation].extenders, **options)
        wanted = pod("new", priority=9, requests=CPU)
        return decide(extenders, ground=FULL, wanted=wanted, generation=generation)


@pytest.mark.parametrize("generation", ["v1.13", "v1.36"])
def test_an_extender_may_leave_no_candidate(generation: str) -> None:
    decision = victims({}, generation=generation)

    assert decision.preemption is not None
    assert decision.preemption.node is None
    if generation == "v1.36":
        assert decision.post_message == "preemption: no candidate node for preemption"


@pytest.mark.parametrize("generation", ["v1.13", "v1.36"])
@pytest.mark.parametrize("ignorable", [False, True])
def test_victims_that_are_not_there(generation: str, ignorable: bool) -> None:
    reply = {"nodeNameToMetaVictims": {"a": {"pods": [{"uid": "nobody"}]}}}
    decision = victims(reply, generation=generation, ignorable=ignorable)

    assert decision.preemption is not None
    if ignorable:
        assert decision.preemption.node == "a"  # as if nobody had been asked
        return
    assert decision.preemption.node is None
    assert decision.preemption.error.endswith(
        "claims to preempt pod (UID: nobody) on node: a, but the pod is not found on that node"
    )
    assert (decision.post_code == "Error") == (generation == "v1.36")


def test_a_node_without_victims() -> None:
    reply = {"NodeNameToMetaVictims": {"a": {"Pods": []}, "b": {"Pods": [{"UID": "uy"}]}}}

    old = victims(reply)
    assert old.preemption is not None
    assert old.preemption.node == "a"

    new = victims(reply, generation="v1.36")
    assert new.post_message == 'preemption: expected at least one victim pod on node "a"'

    lenient = victims(reply, generation="v1.36", ignorable=True)
    assert lenient.preemption is not None
    assert lenient.preemption.node == "b"


def test_violations_are_forgotten_in_the_old_generation() -> None:
    reply = {"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "ux"}], "NumPDBViolations": 3}}}

    old, new = victims(reply), victims(reply, generation="v1.36")

    assert old.preemption is not None
    assert new.preemption is not None
    assert old.preemption.candidates["a"].violations == 0
    assert new.preemption.candidates["a"].violations == 3


# Today --------------------------------------------------------------------------------------------


def test_today_nodes_may_be_failed_for_good() -> None:
    reply = {
        "NodeNames": [],
        "FailedNodes": {"a": "busy", "b": "busy"},
        "FailedAndUnresolvableNodes": {"b": "broken"},
    }
    with Scripted(filter=reply) as extender:
        asked = filters(extender, node_cache_capable=True, protocol=V1_36.extenders)
        decision = decide(asked, wanted=pod("new", priority=5), generation="v1.36")

    assert decision.failed() == {"a": ["busy"], "b": ["broken"]}
    assert decision.preemption is not None
    assert decision.preemption.potential == ("a", "c")


def test_today_errors_are_taken_as_they_are() -> None:
    with Scripted(filter={"Error": "100% bad"}) as extender:
        assert (
            decide(filters(extender, protocol=V1_36.extenders), generation="v1.36").error
            == "100% bad"
        )
    with Scripted(filter=(500, b"")) as extender:
        error = decide(filters(extender, protocol=V1_36.extenders), generation="v1.36").error
        assert error == f"failed filter with extender at URL {extender.url}/filter, code 500"


def test_today_scores_count_ten_times() -> None:
    with Scripted(prioritize=[{"Host": "a", "Score": 7}]) as extender:
        decision = decide(scores(extender, weight=2, protocol=V1_36.extenders), generation="v1.36")

    assert decision.totals is not None
    assert decision.totals.tolist() == [140, 0, 0]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("100%", "100%!(NOVERB)"),
        ("100%% sure", "100% sure"),
        ("%d of %5.2f", "%!d(MISSING) of %!f(MISSING)"),
        ("%-+s", "%!s(MISSING)"),
    ],
)
def test_a_text_as_a_format(text: str, shown: str) -> None:
    assert go_format(text) == shown


# TLS ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    for name in ("server.test", "client.test"):
        certificate(folder, name)
    return folder


def serving(folder: Path, *, mutual: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.test.crt", folder / "server.test.key")
    if mutual:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(folder / "client.test.crt")
    return context


def test_who_is_trusted(certificates: Path) -> None:
    authority = str(certificates / "server.test.crt")
    data = (certificates / "server.test.crt").read_bytes()
    with Scripted(
        tls=serving(certificates), filter=lambda asked: {"Nodes": asked["Nodes"]}
    ) as extender:
        for trusted in (
            filters(extender, tls={"ca_file": authority}),
            filters(extender, tls={"ca_data": data}),
            filters(extender, tls={"ca_data": data, "server_name": "server.test"}),
            filters(extender, tls={"insecure": True}),
            filters(extender, enable_https=True),
        ):
            assert decide(trusted).error == ""
        for stranger in (
            filters(extender),
            filters(extender, tls={"ca_file": authority, "server_name": "other.test"}),
            filters(
                extender, tls={"ca_file": str(certificates / "client.test.crt")}, enable_https=True
            ),
        ):
            assert "certificate" in decide(stranger).error.lower()


@pytest.mark.parametrize("data", [False, True])
def test_a_certificate_of_our_own(certificates: Path, data: bool) -> None:
    own: dict[str, object] = {"insecure": True}
    for part, suffix in (("cert", "crt"), ("key", "key")):
        path = certificates / f"client.test.{suffix}"
        own |= {f"{part}_data": path.read_bytes()} if data else {f"{part}_file": str(path)}
    with Scripted(
        tls=serving(certificates, mutual=True), filter=lambda asked: {"Nodes": asked["Nodes"]}
    ) as extender:
        assert decide(filters(extender, tls=own)).error == ""
        assert decide(filters(extender, tls={"insecure": True})).error != ""


def test_a_certificate_that_cannot_be_read() -> None:
    sentence = "tlsConfig of extender https://x: caFile /missing: No such file or directory"
    with pytest.raises(ConfigError, match=sentence):
        context_of(Extender("https://x", tls={"ca_file": "/missing"}))


def test_an_extender_serves_only_clients_of_its_authority(certificates: Path) -> None:
    command = [
        *(sys.executable, "-m", "podium", "extender", "--provider", "DefaultProvider"),
        *("--listen", "127.0.0.1:0", "-o", "json"),
        *("--tls-cert-file", str(certificates / "server.test.crt")),
        *("--tls-private-key-file", str(certificates / "server.test.key")),
        *("--client-ca-file", str(certificates / "client.test.crt")),
    ]
    stranger = ssl.create_default_context(cafile=certificates / "server.test.crt")
    stranger.check_hostname = False
    client = ssl.create_default_context(cafile=certificates / "server.test.crt")
    client.check_hostname = False
    client.load_cert_chain(certificates / "client.test.crt", certificates / "client.test.key")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            found = json.loads("".join(iter(running.stdout.readline, "}\n")) + "}")
            with urlopen(f"{found['url']}/healthz", timeout=60, context=client) as response:
                assert response.read() == b"ok"
            with pytest.raises(OSError, match=r"(?i)certificate|reset|eof|closed"):
                urlopen(f"{found['url']}/healthz", timeout=60, context=stranger)
        finally:
            running.terminate()


def test_a_redirect_is_not_followed() -> None:
    """What is asked is meant for this server alone."""
    with Scripted(filter={}) as other:

        def elsewhere(_: Any) -> Any:
            raise web.HTTPTemporaryRedirect(f"{other.url}/filter")

        with Scripted(filter=elsewhere) as server:
            decision = decide(filters(server))

    assert "code 307" in decision.error
    assert other.asked == []


def test_an_answer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LARGEST_ANSWER", 100)
    with Scripted(filter={"Error": "x" * 1000}) as server:
        decision = decide(filters(server))

    assert decision.error.endswith("the answer is larger than 100 bytes")


@pytest.mark.parametrize(
    ("seconds", "waited"), [(-5.0, 600.0), (0.0, 600.0), (9e9, 600.0), (7.0, 7.0)]
)
def test_an_extender_is_not_waited_for_for_ever(seconds: float, waited: float) -> None:
    assert client._seconds(Extender("http://it", timeout_seconds=seconds)) == waited
