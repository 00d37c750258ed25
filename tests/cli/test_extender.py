"""`podium extender`: what it prints once it can be asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from cli.conftest import Podium

SOURCE = Path(__file__).parents[2] / "src"


def test_the_command_asks_for_the_token_and_for_a_name_of_loopback(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    command = [sys.executable, "-m", "podium", "extender", "--provider", "DefaultProvider"]
    flags = ["--listen", "127.0.0.1:0", "--client-token-file", str(tmp_path / "token")]
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    with subprocess.Popen(
        [*command, *flags, "-o", "json"], env=environment, stdout=subprocess.PIPE, text=True
    ) as running:
        try:
            assert running.stdout is not None
            found = json.loads("".join(iter(running.stdout.readline, "}\n")) + "}")

            def code(**headers: str) -> int:
                given = {"Content-Type": "application/json", **headers}
                request = Request(f"{found['url']}/filter", b"{}", given)
                with pytest.raises(HTTPError) as refused:
                    urlopen(request, timeout=60)
                with refused.value as answer:
                    return int(answer.code)

            assert code() == 401
            assert code(Authorization="Bearer secret") == 400  # let in, and there is no pod
            assert code(Authorization="Bearer secret", Host="evil.example") == 421
            assert code(Authorization="Bearer secret", Origin="http://evil.example") == 403
        finally:
            running.terminate()


def test_where_it_listens_is_data_as_well() -> None:
    command = [sys.executable, "-m", "podium", "extender", "--provider", "DefaultProvider"]
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    with subprocess.Popen(
        [*command, "--listen", "127.0.0.1:0", "-o", "json"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            assert running.stdout is not None
            found = json.loads("".join(iter(running.stdout.readline, "}\n")) + "}")
            with urlopen(f"{found['url']}/healthz", timeout=60) as response:
                assert response.read() == b"ok"
        finally:
            running.terminate()

    assert found["profile"] == "v1.13 DefaultProvider"
    assert found["predicates"] > found["priorities"] > 1


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ((), "nothing to serve; give --rules, --policy, --provider or --config"),
        (("--listen", "8888"), "'8888' is no address; HOST:PORT would be one"),
        (
            ("--provider", "DefaultProvider", "--listen", "127.0.0.1:0", "--tls-cert-file", "none"),
            "--tls-cert-file none: no such file or directory",
        ),
        (
            ("--provider", "DefaultProvider", "--client-ca-file", "ca.crt"),
            "--client-ca-file needs https; give --tls-cert-file as well",
        ),
        (
            ("--provider", "DefaultProvider", "--client-token-file", "none"),
            "--client-token-file none: no such file or directory",
        ),
        (
            ("--provider", "DefaultProvider", "--listen", "0.0.0.0:0"),
            "give --client-token-file or --client-ca-file, or listen on 127.0.0.1",
        ),
        (
            ("--provider", "DefaultProvider", "--listen", "0.0.0.0:0", "--allow-plain-http"),
            "give --client-token-file or --client-ca-file, or listen on 127.0.0.1",
        ),
    ],
)
def test_what_cannot_be_served(podium: Podium, flags: tuple[str, ...], sentence: str) -> None:
    result = podium("extender", *flags)

    assert (result.code, result.out) == (2, "")
    assert sentence.lower() in result.err.lower()


def test_a_context_is_one_of_the_usual_kubeconfig(
    podium: Podium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config"}))
    monkeypatch.setenv("KUBECONFIG", str(path))

    result = podium("extender", "--provider", "DefaultProvider", "--context", "staging")

    assert (result.code, result.out) == (2, "")
    assert f"{path}: there is no context 'staging'" in result.err


def test_a_token_is_not_asked_for_over_plain_http_unless_that_is_wanted(
    podium: Podium, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("secret")
    flags = ("--listen", "0.0.0.0:0", "--client-token-file", str(tmp_path / "token"))
    result = podium("extender", *flags)
    assert result.code == 2
    assert "the token could be read on its way" in result.err
    assert "--allow-plain-http" in result.err

    # What is wrong next is told then.
    result = podium("extender", *flags, "--allow-plain-http")
    assert (result.code, "nothing to serve" in result.err) == (2, True)
