"""`podium lab` as a process: start, kubeconfig, kubectl, shutdown."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.command.lab_process import LabProcess
from podium.cli.main import run
from podium.errors import InputError
from podium.host.lab_kubeconfig import default_path, read_token, write_kubeconfig

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
NODES = """
apiVersion: v1
kind: Node
metadata: {name: only}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: app, image: "app:1"}]}
"""


def kubectl(lab: LabProcess, *arguments: str) -> str:
    done = subprocess.run(
        ["kubectl", "--kubeconfig", str(lab.kubeconfig), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_demo_comes_up_and_ends_in_peace(start: Callable[..., LabProcess]) -> None:
    lab = start()
    assert lab.told["profile"] == "v1.37 default-scheduler"
    lab.until(lambda: len(lab.running()) >= 30)
    pods = {pod["metadata"]["name"]: pod for pod in lab.items("/api/v1/namespaces/ml/pods")}
    assert "nodeName" not in pods["training-run"]["spec"]
    assert "nodeName" not in pods["rendering"]["spec"]
    claims = "/apis/resource.k8s.io/v1/namespaces/ml/resourceclaims"
    lab.until(lambda: sum("reservedFor" in each["status"] for each in lab.items(claims)) == 3)
    assert lab.ask("/")[0] == 200
    assert b"scheduler_schedule_attempts_total" in lab.ask("/metrics")[1]

    assert lab.end() == (0, "")


def test_the_older_rules_get_a_shop_of_their_own_and_slow_decisions_are_logged(
    start: Callable[..., LabProcess], tmp_path: Path
) -> None:
    rules = tmp_path / "slow.py"
    rules.write_text(
        "import time\n\nfrom podium.rules import predicate\n\n\n"
        "@predicate('Slow', columns=True)\ndef slow(pod, nodes):\n"
        "    time.sleep(0.11)\n    return ~nodes.has_label('never')\n"
    )
    lab = start("--profile", "v1.13", "-v", "0", "--rules", str(rules))
    lab.until(
        lambda: (
            sum(name.startswith("edge") for name in lab.running()) == 3
            and sum(name.startswith("cache") for name in lab.running()) == 3
        ),
        60,
    )

    assert {pod["metadata"]["name"] for pod in lab.items("/api/v1/namespaces/ml/pods")} == {
        "training-run"
    }
    assert re.search(r'"Scheduling \S+ took 1\d\d ms"', lab.end()[1])


def test_nobody_gets_in_without_the_token(start: Callable[..., LabProcess]) -> None:
    lab = start("--nodes", "1")

    assert lab.ask("/api/v1/pods", Authorization="Bearer wrong")[0] == 401
    assert lab.ask("/api/v1/pods", Host="evil.example")[0] == 421
    assert lab.kubeconfig.stat().st_mode & 0o077 == 0


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")
def test_kubectl_makes_a_pod_that_soon_runs(start: Callable[..., LabProcess]) -> None:
    lab = start("--nodes", "3")
    kubectl(lab, "run", "web", "--image=app:1")
    kubectl(lab, "wait", "--for=condition=Ready", "pod/web", "--timeout=120s")
    wide = kubectl(lab, "get", "pod", "web", "-o", "wide")
    assert re.search(r"web +1/1 +Running .* node-\d", wide)
    kubectl(lab, "delete", "pod", "web", "--timeout=120s")

    assert lab.end(signal.SIGINT) == (0, "")


def followed(lab: LabProcess, folder: Path, commands: str) -> str:
    """What a shell prints that runs these commands with the lab's kubeconfig."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        env={**os.environ, "KUBECONFIG": str(lab.kubeconfig), "PATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")
def test_the_page_about_the_lab_can_be_followed(start: Callable[..., LabProcess]) -> None:
    page = (ROOT / "docs" / "lab.md").read_text("utf-8")
    part = page[page.index("## Look around") : page.index("## Other worlds")]
    commands = "\n".join(re.findall(r"```sh\n(.*?)```", part, re.DOTALL))
    assert commands.count("kubectl") > 15

    printed = followed(start(), ROOT, commands)

    assert "Insufficient nvidia.com/gpu" in printed
    assert "ml/training-run fits nowhere" in printed


def test_the_questions_of_the_readme_have_answers_in_the_lab(
    start: Callable[..., LabProcess], tmp_path: Path
) -> None:
    page = (ROOT / "README.md").read_text("utf-8")
    commands = page.partition("has an answer in the lab")[2].split("```sh\n")[1].split("```")[0]
    assert len(commands.splitlines()) == 7
    lab = start()
    lab.until(lambda: len(lab.running()) >= 30)

    printed = followed(lab, tmp_path, commands)

    assert "ml/training-run fits nowhere" in printed
    assert "Lower the nvidia.com/gpu request of container training" in printed
    assert (tmp_path / "cluster.json").exists()


def test_why_asks_the_lab_of_the_shell(
    start: Callable[..., LabProcess],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lab = start()
    monkeypatch.setenv(
        "KUBECONFIG", f"{lab.kubeconfig}-that-is-missing{os.pathsep}{lab.kubeconfig}"
    )
    lab.until(
        lambda: (
            run(["why", "ml/training-run", "--exit-code"]) == 1
            and "ml/training-run fits nowhere" in capsys.readouterr().out
        )
    )

    assert run(["why", "ml/nobody"]) == 2
    said = capsys.readouterr().err
    assert f"{lab.told['server']} knows of no decision about pod ml/nobody" in said
    assert lab.told["token"] not in said

    monkeypatch.setenv("KUBECONFIG", os.devnull)
    assert run(["why", "ml/training-run"]) == 2
    assert "http://127.0.0.1:10251" in capsys.readouterr().err

    assert run(["why", "ml/training-run", "--kubeconfig", str(lab.kubeconfig), "--exit-code"]) == 1
    assert "ml/training-run fits nowhere" in capsys.readouterr().out


def test_a_lab_from_files_by_another_profile(
    start: Callable[..., LabProcess], tmp_path: Path
) -> None:
    file = tmp_path / "world.yaml"
    file.write_text(NODES)
    lab = start("-f", str(file), "--profile", "v1.13")

    assert lab.told["profile"].startswith("v1.13")
    lab.until(lambda: lab.running() == {"web"})


def test_a_lab_without_a_scheduler_is_of_the_release_that_it_was_asked_for(
    start: Callable[..., LabProcess],
) -> None:
    lab = start("--nodes", "1", "--no-scheduler", "--profile", "v1.35")

    code, body = lab.ask("/version")
    assert code == 200
    assert json.loads(body)["gitVersion"].startswith("v1.35.")


def test_without_a_scheduler_pods_wait_for_somebody_else(
    start: Callable[..., LabProcess], tmp_path: Path
) -> None:
    file = tmp_path / "world.yaml"
    file.write_text(NODES)
    lab = start("-f", str(file), "--no-scheduler")
    assert lab.told["profile"] is None
    [pod] = lab.items("/api/v1/pods")
    assert "nodeName" not in pod["spec"]

    outside = subprocess.Popen(
        [sys.executable, "-m", "podium", "run", "--leader-elect=false", "--listen", "127.0.0.1:0"],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "KUBECONFIG": str(lab.kubeconfig),
        },
        stderr=subprocess.DEVNULL,
    )
    try:
        lab.until(lambda: lab.running() == {"web"}, 40)
    finally:
        outside.terminate()
        outside.wait(20)


def test_what_is_kept_is_there_the_next_time(
    start: Callable[..., LabProcess], tmp_path: Path
) -> None:
    data = str(tmp_path / "kept")
    file = tmp_path / "world.yaml"
    file.write_text(NODES)
    first = start("--data", data, "-f", str(file))
    first.until(lambda: first.running() == {"web"})
    [before] = first.items("/api/v1/pods")
    assert first.end() == (0, "")

    second = start("--data", data, "--nodes", "50")
    [after] = second.items("/api/v1/pods")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert len(second.items("/api/v1/nodes")) == 1
    assert second.told["token"] == first.told["token"]


Refused = Callable[..., str]


@pytest.fixture
def refused(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Refused:
    """The one sentence with which a lab does not start."""

    def tried(*arguments: str) -> str:
        file = (
            [] if "--write-kubeconfig" in arguments else ["--write-kubeconfig", str(tmp_path / "k")]
        )
        code = run(["lab", *file, *arguments])
        out, errors = capfd.readouterr()
        assert (code, out) == (2, "")
        [sentence] = errors.splitlines()
        return sentence

    return tried


def test_a_port_that_is_taken_is_told_in_one_sentence(refused: Refused) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        sentence = refused("--listen", f"127.0.0.1:{port}")

    assert sentence.startswith(f"podium: cannot listen on 127.0.0.1:{port}: address already in use")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--nodes", "3", "-f", "x"], "podium: --nodes and -f exclude each other"),
        (["--zones", "3"], "podium: --zones says where --nodes are; give both"),
        (["-f", "nowhere.yaml"], "podium: nowhere.yaml: cannot be read"),
        (["--snapshot", "nowhere.json"], "podium: nowhere.json: cannot be read"),
        (["--policy", "nowhere.json"], "podium: nowhere.json: cannot be read"),
        (["--profile", "v9"], "podium: there is no profile 'v9'"),
    ],
)
def test_what_makes_no_sense_is_told_in_one_sentence(
    arguments: list[str], sentence: str, refused: Refused
) -> None:
    assert refused("--listen", "127.0.0.1:0", *arguments).startswith(sentence)


def test_a_kubeconfig_of_somebody_else_is_left_alone(refused: Refused, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("apiVersion: v1\nkind: Config\nclusters: [{name: prod}]\n")
    sentence = refused("--listen", "127.0.0.1:0", "--write-kubeconfig", str(file))

    assert "is there and not of a lab, so it is left alone" in sentence
    assert "prod" in file.read_text()


def test_the_token_of_a_place_stays_the_same(tmp_path: Path) -> None:
    file = tmp_path / "config"
    token = read_token(file)
    write_kubeconfig(file, "http://127.0.0.1:1", token)

    assert read_token(file) == token
    file.write_text("")
    assert read_token(file) != token
    file.write_bytes(b"\xff")
    with pytest.raises(InputError, match="cannot be read"):
        read_token(file)


def test_every_port_has_a_kubeconfig_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    assert default_path(8480) == tmp_path / "podium" / "lab" / "kubeconfig"
    assert default_path(99) == tmp_path / "podium" / "lab" / "kubeconfig-99"


def test_a_chapter_starts_a_lab_with_its_cluster_and_page(
    start: Callable[..., LabProcess],
) -> None:
    lab = start(chapter="nominated-pods")

    assert lab.told["profile"] == "v1.13 DefaultProvider"
    path = lab.told["chapter"].partition(lab.told["server"])[2].partition("?")[0]
    status, page = lab.ask(path)
    assert status == 200
    assert "Nominated pods and the two passes" in page.decode()
    lab.until(lambda: "urgent" in lab.running())
    assert lab.end() == (0, "")
