"""What an agent gets that asks about a cluster, through the SDK's own client."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import httpx2
import pytest
import yaml
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from manifests import manifest, node, pod

ROOT = Path(__file__).parents[2]
DUMP = str(ROOT / "examples" / "dump.json")
CLUSTER = str(ROOT / "examples" / "cluster")
TOOLS = {
    "why_pending",
    "explain_placement",
    "what_if",
    "fix",
    "capacity",
    "compare",
    "past_decision",
    "more",
}
#: A token is about three characters of such texts.
MOST_CHARACTERS = 4_000 * 3
#: A question of an on-call engineer, the tool and its arguments, and what the answer must say.
ASKED: list[tuple[str, str, dict[str, Any], list[str]]] = [
    ("what waits?", "why_pending", {}, ["pods are pending", "default/warehouse-0"]),
    (
        "why does it wait?",
        "why_pending",
        {"pod": "warehouse-0"},
        ["default/warehouse-0 fits nowhere", "Insufficient memory", "memory"],
    ),
    (
        "why does that pod wait?",
        "why_pending",
        {"pod": "default/api-5d4f8c7b6-w4m9t"},
        ["goes to worker-2", "would bind it now"],
    ),
    (
        "why there?",
        "explain_placement",
        {"pod": "api-5d4f8c7b6-w4m9t"},
        ["goes to worker-2", "its total 602 is 74 more than that of worker-1", "worker-1: 528"],
    ),
    (
        "why not there?",
        "explain_placement",
        {"pod": "api-5d4f8c7b6-w4m9t", "node": "worker-3"},
        ["worker-3:", "its total 376 is 226 less than the best"],
    ),
    ("what would help?", "fix", {"pod": "warehouse-0", "most": 3}, ["warehouse-0", "kubectl"]),
    (
        "may we drain it?",
        "what_if",
        {"changes": ["drain worker-1"]},
        ["drain worker-1", "without a node"],
    ),
    ("and two nodes?", "what_if", {"changes": ["cordon worker-1", "lose worker-2"]}, ["worker-2"]),
    (
        "how much room is there?",
        "capacity",
        {"pod": "api-5d4f8c7b6-w4m9t"},
        ["3 nodes", "cpu"],
    ),
    ("does the release matter?", "compare", {"configurations": ["v1.13", "v1.36"]}, ["v1.13"]),
]
#: The same for the shop of the examples.
ASKED_OF_THE_SHOP: list[tuple[str, str, dict[str, Any], list[str]]] = [
    ("what waits?", "why_pending", {}, ["17 pods are pending", "shop/search"]),
    (
        "why does search wait?",
        "why_pending",
        {"pod": "shop/search"},
        [
            "shop/search fits nowhere",
            "cpu: wants 6, 1500m free of 4",
            "taint accelerator=gpu:NoSchedule is not tolerated",
            "1. Tolerate the taint",
        ],
    ),
    (
        "what becomes of checkout?",
        "why_pending",
        {"pod": "shop/checkout"},
        ["evicting pods from a-2 helps", "the scheduler evicts batch/report-2 from a-2"],
    ),
    ("and of training?", "why_pending", {"pod": "batch/training"}, ["only this one fits"]),
    (
        "why not on a-2?",
        "explain_placement",
        {"pod": "shop/db-0"},
        ["goes to a-1", "no volume of class local suits", "(a-2)"],
    ),
    (
        "why not on b-2?",
        "explain_placement",
        {"pod": "shop/search", "node": "b-2"},
        ["TaintToleration rejected it", "evicting pods there would not help"],
    ),
    (
        "where does the next web pod go?",
        "explain_placement",
        {"pod": "deployment/web"},
        ["goes to a-1", "share the best total"],
    ),
    (
        "may we drain a-1?",
        "what_if",
        {"changes": ["drain a-1"]},
        ["1 eviction blocked", "shop/db-1", "disruption budget finance"],
    ),
    (
        "what if a zone is lost?",
        "what_if",
        {"changes": ["lose topology.kubernetes.io/zone=north-b"]},
        ["3 pods moved", "batch/report-3"],
    ),
    (
        "do twelve fit?",
        "what_if",
        {"changes": ["scale deployment/web=12"]},
        ["8 pods new", "no more pods without a node"],
    ),
    ("does a node help search?", "what_if", {"changes": ["add 1:b-1"]}, ["PENDING AS BEFORE"]),
    (
        "what does cache take away?",
        "what_if",
        {"changes": ["delete deployment/cache"]},
        ["2 pods removed"],
    ),
    ("is a restart safe?", "what_if", {"changes": ["rollout deployment/web"]}, ["4 pods moved"]),
    (
        "and if c-2 comes back first?",
        "what_if",
        {"changes": ["uncordon c-2", "drain a-1"]},
        ["uncordon c-2", "drain a-1"],
    ),
    (
        "what if a-1 is reserved?",
        "what_if",
        {"changes": ["taint a-1:dedicated=db:NoSchedule"]},
        ["taint a-1"],
    ),
    ("what is the smallest fix?", "fix", {"pod": "search", "most": 2}, ["1. Tolerate", "2. "]),
    ("how many web pods fit?", "capacity", {"pod": "shop/web"}, ["20 more of deployment/web fit"]),
    ("how many databases?", "capacity", {"pod": "shop/db"}, ["3 more of statefulset/db fit"]),
    (
        "what does the upgrade change?",
        "compare",
        {"configurations": ["v1.36", "v1.37"]},
        ["0 placements of 15 differ"],
    ),
    ("and the release before?", "compare", {"configurations": ["v1.36", "v1.35"]}, ["placed anew"]),
]
#: Questions that cannot be answered, and what the agent is told.
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("why_pending", {"pod": "warehous-0"}, "warehous-0"),
    ("explain_placement", {"pod": "warehouse-0", "node": "worker-9"}, "worker-9"),
    ("what_if", {"changes": ["explode worker-1"]}, "is no change"),
    ("what_if", {"changes": ["apply cluster.yaml"]}, "read no files"),
    ("what_if", {"changes": ["add 2:cluster.yaml"]}, "there is no node"),
    ("compare", {"configurations": ["v1.13", "rules.py"]}, "is no configuration"),
    ("capacity", {"pod": DUMP}, "dump.json"),
    ("past_decision", {"pod": "default/a"}, "there is no history"),
    ("more", {"handle": "page-99"}, "there is no further page"),
    ("what_if", {"changes": []}, "changes"),
    ("fix", {}, "pod"),
]

Asking = Callable[[Client], Awaitable[None]]


def with_client(asking: Asking, *arguments: str) -> None:
    """Start a server over standard input and output, and ask it."""

    async def run() -> None:
        command = StdioServerParameters(
            command=sys.executable,
            args=["-m", "podium", "mcp", *arguments],
            env={"PYTHONPATH": str(ROOT / "src")},
        )
        async with Client(stdio_client(command)) as client:
            await asking(client)

    asyncio.run(run())


async def text_of(client: Client, tool: str, arguments: dict[str, Any]) -> tuple[str, bool]:
    answer = await client.call_tool(tool, arguments)
    [content] = answer.content
    text: str = content.text  # type: ignore[union-attr]
    return text, bool(answer.is_error)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cluster", "asked"), [(DUMP, ASKED), (CLUSTER, ASKED_OF_THE_SHOP)], ids=["dump", "shop"]
)
def test_questions_are_answered_in_bounded_text(
    cluster: str, asked: list[tuple[str, str, dict[str, Any], list[str]]]
) -> None:
    async def asking(client: Client) -> None:
        for question, tool, arguments, expected in asked:
            text, failed = await text_of(client, tool, arguments)
            assert not failed, f"{question}: {text}"
            assert len(text) <= MOST_CHARACTERS, question
            assert [part for part in expected if part not in text] == [], f"{question}\n{text}"

    with_client(asking, cluster)


@pytest.mark.slow
def test_questions_that_cannot_be_answered_get_a_sentence() -> None:
    async def asking(client: Client) -> None:
        for tool, arguments, expected in REFUSED:
            text, failed = await text_of(client, tool, arguments)
            assert failed, f"{tool} {arguments}: {text}"
            assert expected in text
            assert "Traceback" not in text

    with_client(asking, DUMP)


@pytest.mark.slow
def test_tools_have_schemas_and_only_read() -> None:
    async def asking(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert {each.name for each in tools} == TOOLS
        for each in tools:
            assert each.input_schema["type"] == "object"
            assert each.description
            assert each.annotations is not None
            assert each.annotations.read_only_hint is True
            for name, field in each.input_schema.get("properties", {}).items():
                assert field.get("description"), f"{each.name}.{name}"

    with_client(asking, DUMP)


@pytest.mark.slow
def test_names_of_the_cluster_are_resources() -> None:
    async def asking(client: Client) -> None:
        listed = (await client.list_resources()).resources
        assert {str(each.uri) for each in listed} == {
            "podium://nodes",
            "podium://pods",
            "podium://pods/pending",
        }
        nodes = await client.read_resource("podium://nodes")
        assert nodes.contents[0].text == "worker-1\nworker-2\nworker-3"  # type: ignore[union-attr]
        waiting = await client.read_resource("podium://pods/pending")
        assert "default/warehouse-0" in waiting.contents[0].text  # type: ignore[union-attr]

    with_client(asking, DUMP)


@pytest.mark.slow
def test_a_long_answer_comes_in_pages(tmp_path: Path) -> None:
    pods = [pod(f"{number:05}-{'x' * 40}") for number in range(500)]
    file = tmp_path / "many.yaml"
    file.write_text(yaml.safe_dump_all([manifest("Node", "n"), *pods]))

    async def asking(client: Client) -> None:
        pages = []
        answer = await client.read_resource("podium://pods")
        text = answer.contents[0].text  # type: ignore[union-attr]
        while True:
            pages.append(text)
            assert len(text) <= MOST_CHARACTERS
            handle = re.search(r'call more with handle "([^"]+)"', text)
            if handle is None:
                break
            text, failed = await text_of(client, "more", {"handle": handle[1]})
            assert not failed
        assert len(pages) > 2
        names = [line for page in pages for line in page.splitlines() if "/" in line]
        assert len(names) == 500
        again, failed = await text_of(client, "more", {"handle": "page-1"})
        assert failed
        assert "ask the question again" in again

    with_client(asking, str(file))


@pytest.mark.slow
def test_secrets_are_no_part_of_answers(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    secretive = pod("a", "64", annotations={"note": "hunter2-annotation"})
    secretive["spec"]["containers"][0]["env"] = [
        {"name": "PASSWORD", "value": "hunter2-environment"}
    ]
    file.write_text(yaml.safe_dump_all([node("n"), secretive]))

    async def asking(client: Client) -> None:
        for tool, arguments in (
            ("why_pending", {}),
            ("why_pending", {"pod": "a"}),
            ("explain_placement", {"pod": "a"}),
            ("fix", {"pod": "a"}),
            ("capacity", {"pod": "a"}),
            ("what_if", {"changes": ["cordon n"]}),
        ):
            text, _ = await text_of(client, tool, arguments)
            assert "hunter2" not in text

    with_client(asking, str(file))


@pytest.fixture
def served() -> Iterator[tuple[str, str]]:
    """A server over HTTP: its address and its token."""
    command = [sys.executable, "-m", "podium", "mcp", "--http", "--listen", "127.0.0.1:0", CLUSTER]
    with Popen(command, stderr=PIPE, text=True, env={"PYTHONPATH": str(ROOT / "src")}) as process:
        assert process.stderr is not None
        address = process.stderr.readline().split()[-1]
        token = process.stderr.readline().split()[-1]
        yield address, token
        process.terminate()


@pytest.mark.slow
def test_over_http_a_token_is_needed(served: tuple[str, str]) -> None:
    address, token = served

    async def ask() -> str:
        async with AsyncExitStack() as stack:
            http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60)
            await stack.enter_async_context(http)
            transport = streamable_http_client(address, http_client=http)
            client = await stack.enter_async_context(Client(transport))
            text, failed = await text_of(client, "why_pending", {"pod": "shop/search"})
            assert not failed
            return text

    assert "shop/search fits nowhere" in asyncio.run(ask())
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
        request = urllib.request.Request(address, body, headers)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=30)
        assert refused.value.code == 401
        refused.value.close()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--http", "--listen", "0.0.0.0:0", DUMP], "sends answers unencrypted"),
        (["--token-file", "t", DUMP], "--token-file is for --http"),
        (["nothing.yaml"], "nothing.yaml"),
        ([], "there is no cluster to talk to"),
    ],
)
@pytest.mark.slow
def test_a_wrong_start_is_one_sentence(arguments: list[str], sentence: str) -> None:
    command = [sys.executable, "-m", "podium", "mcp", *arguments]
    with Popen(command, stderr=PIPE, text=True, env={"PYTHONPATH": str(ROOT / "src")}) as process:
        assert process.stderr is not None
        told = process.stderr.read()

    assert process.returncode == 2
    assert sentence in told
    assert told.count("\n") == 1
