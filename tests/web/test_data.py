"""The data of the pages over HTTP, without a browser."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from email.message import Message
from typing import Any

import pytest

from podium.releases import RELEASES
from web.playground import Served


def ask(
    url: str,
    *,
    method: str = "GET",
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> tuple[int, Message, bytes]:
    request = urllib.request.Request(url, body, headers or {}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read()


def data(site: Served, path: str, body: Any = None, method: str = "POST") -> Any:
    sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    status, _, answer = ask(
        f"{site.url}podium/v1/{path}", method="GET" if body is None else method, body=sent
    )
    assert status == 200, answer
    return json.loads(answer)


def refusal(site: Served, path: str, body: bytes, method: str = "POST") -> tuple[int, str]:
    status, _, answer = ask(f"{site.url}podium/v1/{path}", method=method, body=body)
    return status, json.loads(answer)["error"]


def changes(site: Served, wish: dict[str, Any]) -> dict[str, Any]:
    _, _, answer = ask(
        f"{site.url}podium/v1/what-if", method="POST", body=json.dumps(wish).encode()
    )
    lines = [json.loads(line) for line in answer.splitlines()]
    assert all({"done", "total"} == line.keys() for line in lines[:-1])
    found: dict[str, Any] = lines[-1]["result"]
    return found


@pytest.mark.parametrize("path", ["", "podium/static/js/main.js", "podium/v1/pending"])
def test_every_answer_keeps_the_page_to_itself(site: Served, path: str) -> None:
    status, headers, _ = ask(f"{site.url}{path}")

    assert status == 200
    assert "default-src 'self'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize("path", ["", "podium/static/js/main.js", "podium/v1/cluster"])
def test_what_is_known_already_is_not_sent_again(site: Served, path: str) -> None:
    _, headers, _ = ask(f"{site.url}{path}")
    status, _, body = ask(f"{site.url}{path}", headers={"If-None-Match": headers["ETag"]})

    assert (status, body) == (304, b"")


def test_nothing_but_static_files_is_served(site: Served) -> None:
    for path in ("podium/static/../app.py", "podium/static/%2e%2e/app.py", "podium/nothing"):
        assert ask(f"{site.url}{path}")[0] == 404


def test_a_manifest_may_be_json(site: Served) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    found = data(site, "explain", pod)

    assert (found["source"], found["outcome"]) == ("dry-run", "placed")
    assert {"scores", "totals", "headline", "because"} <= found.keys()


def test_a_workload_is_tried_by_its_first_pod(site: Served) -> None:
    text = b"""
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  replicas: 3
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}
"""
    found = data(site, "explain", text)

    assert "asks for 3 pods; this is the first" in found["notes"][0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "asks for no pod"),
        (b"kind: Service\napiVersion: v1\nmetadata: {name: s}\n", "asks for no pod"),
        (b"a: [", "manifest"),
        (b"\xff\xfe\x00", "manifest"),
        (b"kind: Pod\napiVersion: v1\nmetadata: {name: UPPER}\n", "metadata.name"),
    ],
)
def test_a_bad_manifest_is_refused_in_one_sentence(site: Served, text: bytes, said: str) -> None:
    status, sentence = refusal(site, "explain", text)

    assert status == 422
    assert said in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"{", 400, "not JSON"),
        (b"[" * 100_000, 400, "not JSON"),
        (b"[]", 400, "not an object"),
        (b"{}", 422, "expected new rules"),
        (b'{"weights": {"Nonsense": 1}}', 422, "has no priority 'Nonsense'"),
        (b'{"weights": {"LeastRequestedPriority": -1}}', 422, "whole number"),
        (b'{"weights": {"LeastRequestedPriority": true}}', 422, "expected new rules"),
        (b'{"text": "kind: Pod"}', 422, "neither a Policy nor a KubeSchedulerConfiguration"),
        (b'{"text": "kind: Policy\\napiVersion: v2"}', 422, "apiVersion: expected v1"),
    ],
)
@pytest.mark.parametrize("way", ["POST what-if", "PUT profile"])
def test_bad_rules_are_refused_in_one_sentence(
    site: Served, way: str, body: bytes, status: int, said: str
) -> None:
    method, path = way.split()
    got, sentence = refusal(site, path, body, method)

    assert got == status
    assert said in sentence


def test_too_much_is_refused(site: Served) -> None:
    assert refusal(site, "explain", b"#" * ((1 << 20) + 1))[0] == 413


def test_a_question_that_fails_unforeseen_is_logged_and_answered_in_a_sentence(
    site: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: object) -> None:
        raise LookupError("nobody foresaw this")

    monkeypatch.setattr(type(site.playground.page_data), "history", broken)
    status, _, answer = ask(f"{site.url}podium/v1/history")

    assert (status, json.loads(answer)) == (500, {"error": "the question failed; the log says why"})
    assert "nobody foresaw this" in caplog.text


def test_unknown_nodes_and_pods_are_said_to_be_unknown(site: Served) -> None:
    for path in ("nodes/nowhere", "decisions/shop/nobody"):
        assert ask(f"{site.url}podium/v1/{path}")[0] == 404


def test_the_stream_tells_numbers_at_once(site: Served) -> None:
    with urllib.request.urlopen(f"{site.url}podium/v1/stream", timeout=60) as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        lines = [stream.readline().decode().strip() for _ in range(4)]

    told = json.loads(lines[3].removeprefix("data: "))
    assert lines[2] == "event: pulse"
    assert (told["nodes"], told["pods"], told["waiting"]) == (6, 8, 1)


def test_the_same_weights_change_nothing(site: Served) -> None:
    found = changes(site, {"weights": {"LeastRequestedPriority": 1}})

    assert (found["moved"], found["placed"], found["lost"]) == (0, 0, 0)
    assert found["unchanged"] == found["pods"] == 9


def test_other_weights_move_pods_but_nothing_is_applied(site: Served) -> None:
    before = data(site, "profile")
    found = changes(site, {"weights": {"NodeAffinityPriority": 50}})

    assert found["moved"] > 0
    assert {change["after"] for change in found["changes"]} <= {"a-1", "a-2"}
    assert data(site, "profile") == before


def test_every_release_can_be_compared_with(site: Served) -> None:
    names = [each["name"] for each in data(site, "profile")["named"]]

    newest_first = [each.name for each in reversed(RELEASES)]
    assert names == [*newest_first, "ClusterAutoscalerProvider"]


def test_applied_rules_can_be_read_back(site: Served) -> None:
    applied = data(site, "profile", {"weights": {"LeastRequestedPriority": 0}}, "PUT")

    assert applied == data(site, "profile")
    names = {each["name"] for each in applied["profiles"][0]["priorities"]}
    assert "LeastRequestedPriority" not in names
    assert "LeastRequestedPriority" not in applied["text"]
