"""The secure port of `podium run`, with a real API server that says who may."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from control_plane.harness import ControlPlane, free_port
from scheduler.api_server.conftest import Podium

pytestmark = pytest.mark.slow

ACCOUNT = "/api/v1/namespaces/default/serviceaccounts"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
NAME = "reads-metrics"


def get(url: str, token: str = "", certificate: tuple[Path, Path] | None = None) -> tuple[int, str]:
    """The code and the text of an answer; the certificate is self-signed. 0 for no answer."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    context = ssl._create_unverified_context()  # noqa: S323
    if certificate is not None:
        context.load_cert_chain(*certificate)
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=60, context=context
        ) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def test_a_certificate_that_is_none_is_told_in_a_sentence(
    plane: ControlPlane, podium: Podium, tmp_path: Path
) -> None:
    file = tmp_path / "none.pem"
    file.write_text("none")
    flags = (f"--secure-port={free_port()}", f"--port={free_port()}", "--bind-address=127.0.0.1")

    with podium(*flags, f"--tls-cert-file={file}", f"--tls-private-key-file={file}") as program:
        assert program.wait(60) == 2

    told = program.log.read_text("utf-8").splitlines()
    assert f"podium: {file} and {file} are no certificate and key in PEM" in told[-1]
    assert all(line.startswith("podium") for line in told), told


def test_the_cluster_says_who_reads_the_endpoints(plane: ControlPlane, podium: Podium) -> None:
    named = {"metadata": {"name": NAME}}
    plane.post(ACCOUNT, named)
    rule = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    plane.post(ROLES, named | {"rules": [rule]})
    subjects = [
        {"kind": "ServiceAccount", "name": NAME, "namespace": "default"},
        {"kind": "Group", "name": NAME, "apiGroup": "rbac.authorization.k8s.io"},
    ]
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME}
    plane.post(BINDINGS, named | {"roleRef": reference, "subjects": subjects})
    token = plane.post(f"{ACCOUNT}/{NAME}/token", {"spec": {}})["status"]["token"]
    port, plain = free_port(), free_port()
    url = f"https://127.0.0.1:{port}"
    flags = (f"--secure-port={port}", f"--port={plain}", "--bind-address=0.0.0.0")
    try:
        with podium(*flags) as program:
            program.wait_for("it is ready", lambda: get(f"{url}/readyz") == (200, "ok"))

            code, text = get(f"{url}/metrics", token)
            assert code == 200
            assert "scheduler_schedule_attempts_total" in text
            assert get(f"{url}/decisions", token)[0] == 403
            assert get(f"{url}/metrics")[0] == 403
            assert get(f"{url}/metrics", f"{token}x")[0] == 401
            assert get(f"http://127.0.0.1:{port}/metrics", token)[0] != 200

            assert get(f"https://127.0.0.2:{port}/livez") == (200, "ok")
            assert get(f"http://127.0.0.1:{plain}/livez") == (200, "ok")
            assert get(f"http://127.0.0.2:{plain}/livez")[0] == 0, "plain HTTP is on loopback alone"

            member = plane.certificate("ann", "others", NAME)
            assert get(f"{url}/metrics", certificate=member)[0] == 200
            assert get(f"{url}/decisions", certificate=member)[0] == 403
            code, text = get(f"{url}/metrics", certificate=plane.certificate("bob", "others"))
            assert (code, json.loads(text)["message"]) == (
                403,
                'User "bob" cannot get path "/metrics"',
            )
    finally:
        for path in (BINDINGS, ROLES, ACCOUNT):
            plane.call("DELETE", f"{path}/{NAME}")
