"""A script of kubectl commands, run against the lab and a real API server: the same output.

Where a line differs, the table says why; docs/lab-differences.md has the same reasons for readers.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from control_plane.harness import ADMIN, ControlPlane
from lab.clients.kubectl import PROGRAMS, Kubectl, Result, available, normal
from lab.clients.kubectl_script import EDITOR, commands
from lab.serving import LabServer

DOCUMENT = Path(__file__).parents[2] / "docs" / "lab-differences.md"


class Difference(NamedTuple):
    """Lines of the difference between the outputs of some commands, and their reason."""

    command: str
    line: str
    reason: str


POD_FIELDS = r"core\.PodSpec\{|\.\.\. // \d+ identical fields|[-+ \t]*\w+:.*,|\}|"
DIFFERENCES = (
    Difference(
        r"get nodes .* wide",
        r".kc-one .*",
        "The kernel column of a node tells the architecture as well.",
    ),
    Difference(
        r"get node .* yaml",
        r"- *(daemonEndpoints:|kubeletEndpoint:|Port: 0)",
        "Empty parts of a node's status that were not sent are not made up.",
    ),
    Difference(
        r"(apply|patch pod)",
        rf"-\s*({POD_FIELDS})|.The Pod \"web\" is invalid: spec: Forbidden: .*",
        "A refused change of a pod names the fields that may change, without a difference of Go "
        "structures below it.",
    ),
    Difference(
        r"(get pod|describe pod)",
        r"\+ *\"?(preemptionPolicy|priority|Priority)\"?: .*",
        "Every pod has a priority; the real server of the tests runs without that plugin.",
    ),
    Difference(
        r"get deployment",
        r"- *creationTimestamp: null",
        "Templates of pods have no `creationTimestamp: null`.",
    ),
    Difference(
        r"diff",
        r".[-+ ]*(f:\S+: \{\}|manager: .*|operation: .*|time: \"TIME\"|name.*: .*|"
        r"resourceVersion: VERSION|@@)",
        "kubectl 1.20 shows `managedFields` in differences, whose times depend on the second.",
    ),
    Difference(
        r"(get|describe) service",
        r"[-+] *(internalTrafficPolicy:.*|ipFamilies:|- IPv4|ipFamilyPolicy:.*"
        r"|IP Famil.*|Internal Traffic Policy:.*)",
        "Services tell address families and traffic policy, which came after 1.20.",
    ),
    Difference(
        r"get (quota|priorityclass|job|all)",
        r".(NAME |limits |kc-high |once |job\.batch/once ).*|-Warning: batch/v1beta1 CronJob .*",
        "Columns of quotas, priority classes and jobs are those of newer versions, and cron jobs "
        "are in batch/v1.",
    ),
    Difference(
        r"get --raw /api/",
        r"-Error from server \(NotFound\).*|\+error: You must be logged in.*",
        "`kubectl get --raw` leaves out the path of the server, where the token is; use "
        "`kubectl proxy --append-server-path`, curl with the token, or the path of the "
        "kubeconfig's server before your own. Health and version need no token.",
    ),
)


class Pair:
    """The same kubectl at both servers, both at once."""

    def __init__(self, real: Kubectl, lab: Kubectl) -> None:
        self.real, self.lab = real, lab
        self._pool = ThreadPoolExecutor(2)

    def run(self, words: str, stdin: str) -> tuple[Result, Result]:
        def one(kubectl: Kubectl) -> Result:
            return kubectl.run(*words.split(" "), stdin=stdin, KUBE_EDITOR=EDITOR)

        real, lab = self._pool.map(one, (self.real, self.lab))
        return real, lab


@pytest.fixture(params=available())
def pair(
    request: pytest.FixtureRequest, control_plane: ControlPlane, tmp_path: Path
) -> Iterator[Pair]:
    program = PROGRAMS[request.param]()
    if not program:
        pytest.skip(f"there is no such kubectl here: {request.param}")
    real = Kubectl(program, control_plane.kubeconfig(ADMIN), tmp_path / "real")
    with LabServer() as server:
        kubeconfig = server.kubeconfig(tmp_path / "kubeconfig")
        yield Pair(real, Kubectl(program, kubeconfig, tmp_path / "lab"))
    # Nobody ends a namespace at the real server, so the next one starts where this one did.
    control_plane.call("PUT", "/api/v1/namespaces/kc/finalize", emptied(control_plane))


def emptied(server: ControlPlane) -> dict[str, object]:
    """The namespace of the script without anything in it, and without what would hold it."""
    for kind in ("pods", "configmaps", "secrets", "serviceaccounts", "events", "resourcequotas"):
        server.call("DELETE", f"/api/v1/namespaces/kc/{kind}", {"gracePeriodSeconds": 0})
    for service in server.get("/api/v1/namespaces/kc/services")["items"]:
        server.call("DELETE", f"/api/v1/namespaces/kc/services/{service['metadata']['name']}")
    for group in ("apps/v1/namespaces/kc/deployments", "batch/v1/namespaces/kc/jobs"):
        for each in server.get(f"/apis/{group}")["items"]:
            each["metadata"]["finalizers"] = []
            path = f"/apis/{group}/{each['metadata']['name']}"
            server.call("PUT", path, each)
        server.call("DELETE", f"/apis/{group}", {"propagationPolicy": "Background"})
    server.call("DELETE", "/api/v1/namespaces/kc")
    namespace: dict[str, object] = server.get("/api/v1/namespaces/kc")
    return {**namespace, "spec": {"finalizers": []}}


def unexplained(words: str, real: Result, lab: Result, used: set[str]) -> list[str]:
    """The lines that differ for no reason that the table has."""
    theirs, ours = (
        f"[{each.code}]\n{normal(each.out)}{normal(each.err)}".splitlines() for each in (real, lab)
    )
    lines = list(difflib.unified_diff(theirs, ours, n=0, lineterm=""))
    found = []
    for line in lines[2:]:
        if line.startswith("@@"):
            continue
        for each in DIFFERENCES:
            if re.match(each.command, words) and re.fullmatch(each.line, line):
                used.add(each.reason)
                break
        else:
            found.append(line)
    return found


def test_kubectl_prints_the_same_at_both_servers(pair: Pair) -> None:
    used: set[str] = set()
    wrong = {}
    for words, stdin in commands():
        lines = unexplained(words, *pair.run(words, stdin), used)
        if lines:
            wrong[words] = "\n".join(lines)
    assert wrong == {}
    # A reason that explains nothing has no place in the table; the one about time may not occur.
    assert {each.reason for each in DIFFERENCES} - used <= {
        each.reason for each in DIFFERENCES if each.command == "diff"
    }


def test_every_reason_is_in_the_document_for_readers() -> None:
    text = " ".join(DOCUMENT.read_text("utf-8").split())
    assert [each.reason for each in DIFFERENCES if each.reason not in text] == []
