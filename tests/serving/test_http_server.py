"""The HTTP endpoints of a running scheduler."""

from __future__ import annotations

import json
import re
import socket
import urllib.error
import urllib.request

import pytest

from control_plane.harness import ROOT
from podium.errors import InputError
from podium.past.decisions.decision_log import DecisionLog
from podium.past.judge.agreement import Agreement
from podium.scheduler.telemetry.metrics import Metrics
from podium.serving.endpoints.health import Health
from podium.serving.endpoints.http_server import application, listening
from render.json_schema import problems
from serving.serving import a_log, served


def fetched(url: str, **headers: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.fixture
def health() -> Health:
    found = Health()
    found.alive["leaderElection"] = lambda: ""
    found.ready["informer-sync"] = lambda: "pods are not listed yet"
    return found


def test_probes_answer_as_those_of_kubernetes(health: Health) -> None:
    with served(application(health)) as url:
        assert fetched(f"{url}/healthz") == (200, "ok")
        assert fetched(f"{url}/livez?verbose") == (
            200,
            "[+]ping ok\n[+]leaderElection ok\nlivez check passed\n",
        )
        assert fetched(f"{url}/readyz") == (
            500,
            """[+]ping ok
[+]leaderElection ok
[-]informer-sync failed: pods are not listed yet
readyz check failed
""",
        )
        assert fetched(f"{url}/readyz?exclude=informer-sync") == (200, "ok")
        assert fetched(f"{url}/readyz/informer-sync")[0] == 500
        assert fetched(f"{url}/livez/ping") == (200, "ok")
        assert fetched(f"{url}/livez/informer-sync")[0] == 404

        health.ready["informer-sync"] = lambda: ""

        assert fetched(f"{url}/readyz") == (200, "ok")


def test_nothing_can_be_written(health: Health) -> None:
    with served(application(health, Metrics(), DecisionLog())) as url:
        for path in ("healthz", "metrics", "decisions", "decisions/a/b"):
            request = urllib.request.Request(f"{url}/{path}", b"{}", method="POST")
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request)
            assert refused.value.code == 405
            refused.value.close()


def test_on_loopback_other_names_are_turned_away(health: Health) -> None:
    with served(application(health, loopback=True)) as url:
        assert fetched(f"{url}/healthz")[0] == 200
        assert fetched(f"{url}/healthz", Host="attacker.example")[0] == 400


def test_metrics_are_served_in_the_form_that_is_accepted(health: Health) -> None:
    with served(application(health, Metrics())) as url:
        code, text = fetched(f"{url}/metrics")
        _, open_metrics = fetched(f"{url}/metrics", Accept="application/openmetrics-text")

    assert code == 200
    assert "# TYPE scheduler_preemption_attempts_total counter" in text
    assert open_metrics.endswith("# EOF\n")


def test_decisions_are_listed_and_chosen(health: Health) -> None:
    with served(application(health, log=a_log())) as url:
        everything = json.loads(fetched(f"{url}/decisions")[1])
        placed = json.loads(fetched(f"{url}/decisions?outcome=placed&namespace=default")[1])
        one = json.loads(fetched(f"{url}/decisions?limit=1")[1])
        big = json.loads(fetched(f"{url}/decisions/default/big")[1])

        assert [item["pod"] for item in everything["items"]] == [
            "default/small",
            "default/big",
            "default/big",
        ]
        assert [item["node"] for item in placed["items"]] == ["n2"]
        assert len(one["items"]) == 1
        assert [item["attempt"] for item in big["items"]] == [2, 1]
        assert big["items"][0]["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
        code, text = fetched(f"{url}/decisions/default/nobody")
        assert (code, json.loads(text)["message"]) == (
            404,
            "no decision about pod default/nobody is kept",
        )
        code, text = fetched(f"{url}/decisions?limit=0")
        assert (code, json.loads(text)["message"]) == (
            400,
            "limit=0: expected a number from 1 to 1000",
        )
        code, text = fetched(f"{url}/decisions?outcome=lost")
        assert json.loads(text)["message"].startswith("outcome=lost: known outcomes are placed,")


def test_what_is_served_keeps_to_the_schema(health: Health) -> None:
    schema = json.loads((ROOT / "docs" / "decision.schema.json").read_text())
    with served(application(health, log=a_log())) as url:
        items = [
            *json.loads(fetched(f"{url}/decisions")[1])["items"],
            *json.loads(fetched(f"{url}/decisions/default/small")[1])["items"],
        ]

    assert [problems(item, schema, schema) for item in items] == [[]] * 4


def test_the_comparison_is_served(health: Health) -> None:
    with served(application(health, shadow=Agreement())) as url:
        data = json.loads(fetched(f"{url}/shadow")[1])
        _, text = fetched(f"{url}/shadow?text")

    assert (data["kind"], data["pods"], data["agreement"]) == ("Agreement", 0, 1.0)
    assert text.startswith("0 placements compared\n")


@pytest.mark.parametrize("host", ["no.such.invalid", "a..b", "ł..b", "127.0.0.1 "])
def test_a_host_that_is_none_is_refused_in_a_sentence(host: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"cannot listen on {host}:1: ")):
        listening(host, 1)


def test_a_port_that_is_taken_is_refused_in_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"cannot listen on 127.0.0.1:{port}: address already"):
            listening("127.0.0.1", port)
