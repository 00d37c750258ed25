"""`podium run` under attack: stopped, robbed, deceived; it goes on, or says that it ends."""

from __future__ import annotations

import json
import signal
import socket
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from control_plane.bulk import create_many, nodes, pods, revision
from control_plane.checker import assert_sound
from control_plane.harness import ABSENT, PODS, ControlPlane, free_port
from manifests import device_class, device_slice
from podium.past.format.reading import History
from podium.past.format.records import Decided
from scheduler.api_server.conftest import Podium
from scheduler.api_server.test_faults import all_placed, fill, waiting
from scheduler.api_server.test_lease import TIMES, spec_of
from small_disk import fill as fill_disk
from small_disk import small_disk
from waiting import until

pytestmark = pytest.mark.timeout(600)

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
DEVICES = "/apis/resource.k8s.io/v1"


def test_a_leader_that_was_stopped_binds_nothing_when_it_wakes(
    plane: ControlPlane, podium: Podium
) -> None:
    since = fill(plane, 40)
    name = "stopped"
    flags = (*TIMES, f"--leader-elect-resource-name={name}")
    with podium(*flags, lease=True, name="first") as first:
        all_placed(plane)
        leader = spec_of(plane, name)["holderIdentity"]
        with podium(*flags, lease=True, name="second"):
            first.signal(signal.SIGSTOP)
            create_many(plane, PODS, pods(40, prefix="later", cpu="120m"))
            all_placed(plane)
            assert spec_of(plane, name)["holderIdentity"] != leader
            create_many(plane, PODS, pods(20, prefix="last", cpu="120m"))
            first.signal(signal.SIGCONT)

            assert first.wait(30) == 1
            all_placed(plane)

    assert "leader election lost" in first.log.read_text("utf-8")
    assert_sound(plane, since)


def test_etcd_is_killed_in_the_middle(plane: ControlPlane, podium: Podium) -> None:
    since = fill(plane, 20)
    with podium() as program:
        all_placed(plane)
        create_many(plane, PODS, pods(60, prefix="during", cpu="120m"))
        with plane.etcd_away():
            time.sleep(3)
        create_many(plane, PODS, pods(20, prefix="after", cpu="120m"))
        all_placed(plane)
        program.check()

    assert_sound(plane, since)


def may_list_pods(plane: ControlPlane, user: str) -> bool:
    attributes = {"verb": "list", "resource": "pods", "namespace": "default"}
    spec = {"user": user, "resourceAttributes": attributes}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return bool(plane.post(path, {"spec": spec})["status"]["allowed"])


def test_a_right_that_is_taken_away_and_given_back(plane: ControlPlane) -> None:
    user = "robbed"
    plane.allow(user, [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}])
    binding = plane.get(f"{BINDINGS}/{user}")
    command = [
        *(sys.executable, "-m", "podium", "run", "--kubeconfig", str(plane.kubeconfig_of(user))),
        *("--scheduler-name=podium", "--leader-elect=false", "--port=0"),
    ]
    try:
        since = fill(plane, 20)
        with plane.program("robbed", *command) as program:
            all_placed(plane)
            plane.call("DELETE", f"{BINDINGS}/{user}")
            until("the API server refuses", lambda: not may_list_pods(plane, user))
            create_many(plane, PODS, pods(20, prefix="meanwhile", cpu="120m"))
            program.wait_for("it is told", lambda: "cannot" in program.log.read_text("utf-8"))
            assert len(waiting(plane)) == 20

            again = {key: binding[key] for key in ("roleRef", "subjects")}
            plane.post(BINDINGS, {"metadata": {"name": user}, **again})
            all_placed(plane, 180)
            program.check()
        assert_sound(plane, since)
    finally:
        for path in (BINDINGS, ROLES):
            with suppress(OSError):
                plane.call("DELETE", f"{path}/{user}")


def test_pods_are_bound_while_the_disk_of_the_history_is_full(
    plane: ControlPlane, podium: Podium, tmp_path: Path
) -> None:
    since = fill(plane, 20)
    with small_disk(tmp_path) as disk:
        folder = disk / "history"
        filler = fill_disk(disk, leave=8192)
        with podium("--record", folder) as program:

            def said(text: str) -> int:
                return program.log.read_text("utf-8").count(text)

            all_placed(plane)
            create_many(plane, PODS, pods(80, prefix="full", cpu="120m"))
            all_placed(plane)
            program.wait_for("it is told", lambda: said("no space left on device"))
            create_many(plane, PODS, pods(20, prefix="still", cpu="10m"))
            all_placed(plane)
            filler.unlink()
            program.wait_for("it goes on", lambda: said("goes on with a new segment"), 120)
            create_many(plane, PODS, pods(10, prefix="room", cpu="1m"))
            all_placed(plane)
            program.check()
            assert said("nothing is recorded") == 1
        decided = {each.pod for each in History(folder).records() if isinstance(each, Decided)}

    assert sum("/room-" in each for each in decided) == 10
    assert_sound(plane, since)


def token_for(plane: ControlPlane, account: str, secret: str) -> str:
    """A token that is refused once the secret is gone."""
    space = "/api/v1/namespaces/default"
    made = plane.post(f"{space}/secrets", {"metadata": {"name": secret}})
    bound = {"kind": "Secret", "apiVersion": "v1", "name": secret, "uid": made["metadata"]["uid"]}
    asked = {"spec": {"boundObjectRef": bound}}
    answer = plane.post(f"{space}/serviceaccounts/{account}/token", asked)
    found: str = answer["status"]["token"]
    return found


def test_a_token_that_is_refused_is_replaced_by_the_one_in_its_file(
    plane: ControlPlane, tmp_path: Path
) -> None:
    account, space = "rotated", "/api/v1/namespaces/default"
    plane.post(f"{space}/serviceaccounts", {"metadata": {"name": account}})
    plane.allow(account, [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}])
    binding = plane.get(f"{BINDINGS}/{account}")
    binding["subjects"] = [{"kind": "ServiceAccount", "name": account, "namespace": "default"}]
    plane.call("PUT", f"{BINDINGS}/{account}", binding)
    file = tmp_path / "token"
    file.write_text(token_for(plane, account, "old"))
    config = json.loads(plane.kubeconfig("any").read_text("utf-8"))
    config["users"][0]["user"] = {"tokenFile": str(file)}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    command = [
        *(sys.executable, "-m", "podium", "run", "--kubeconfig", str(kubeconfig)),
        *("--scheduler-name=podium", "--leader-elect=false", "--port=0"),
    ]
    try:
        since = fill(plane, 20)
        with plane.program("rotated", *command) as program:
            all_placed(plane)
            renewed = token_for(plane, account, "new")
            plane.call("DELETE", f"{space}/secrets/old")
            file.write_text(renewed)
            create_many(plane, PODS, pods(40, prefix="renewed", cpu="120m"))
            all_placed(plane, 180)
            program.check()
            assert renewed not in program.log.read_text("utf-8")
        assert_sound(plane, since)
    finally:
        for path in (
            *(f"{BINDINGS}/{account}", f"{ROLES}/{account}"),
            *(f"{space}/serviceaccounts/{account}", f"{space}/secrets/old", f"{space}/secrets/new"),
        ):
            with suppress(OSError):
                plane.call("DELETE", path)


#: Expressions that the API server may accept, and that nobody can afford to evaluate plainly.
HOSTILE = [
    f'"{"a" * 60}!".matches("^(a+)+$")',
    f'semver("{"9" * 4301}.0.0").major() == 1',
    f'quantity("{"9" * 4301}").isGreaterThan(quantity("1"))',
    '"%.2000000000f".format([1.0]) == ""',
    '"%b".format([true]) == "1"',
    "[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, a+b+c > 0)))",
    "device.attributes['no.such'].name == 'x'",
    "1 / 0 == 1",
]


@pytest.fixture
def devices(plane: ControlPlane) -> Iterator[ControlPlane]:
    """A node with forty devices and a class for them; claims are removed again."""
    if not plane.serves("resource.k8s.io/v1"):
        pytest.skip(f"{ABSENT} resource.k8s.io/v1")
    plane.add_node("n1", {})
    plane.post(f"{DEVICES}/deviceclasses", device_class())
    gpus = [{"name": f"gpu-{number}"} for number in range(40)]
    plane.post(f"{DEVICES}/resourceslices", device_slice("n1", gpus))
    yield plane
    for path in (f"{DEVICES}/deviceclasses/gpu", f"{DEVICES}/resourceslices/n1-devices"):
        plane.call("DELETE", path)
    claims = f"{DEVICES}/namespaces/default/resourceclaims"
    for each in plane.get(claims)["items"]:
        path = f"{claims}/{each['metadata']['name']}"
        plane.call("PATCH", path, {"metadata": {"finalizers": None}}, "merge-patch+json")
        with suppress(OSError):
            plane.call("DELETE", path)


def test_no_object_of_a_tenant_stops_the_others(devices: ControlPlane, podium: Podium) -> None:
    taken = []
    with podium() as program:
        for number, expression in enumerate(HOSTILE):
            name = f"hostile-{number}"
            selectors = [{"cel": {"expression": expression}}]
            exactly = {"deviceClassName": "gpu", "selectors": selectors}
            spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
            try:
                devices.post(
                    f"{DEVICES}/namespaces/default/resourceclaims",
                    {"metadata": {"name": name}, "spec": spec},
                )
            except OSError:
                continue  # the API server refuses it
            taken.append(expression)
            named = [{"name": "gpu", "resourceClaimName": name}]
            devices.add_pod(name, "podium", resourceClaims=named)
        for number, cpu in enumerate(("9" * 30, "1e15", "9223372036854775807E", "1n")):
            with suppress(OSError):
                devices.add_pod(f"vast-{number}", "podium", cpu=cpu)
        devices.add_pod("modest", "podium")

        program.wait_for("the modest one is bound", lambda: devices.node_of("modest"), 60)

        def all_tried() -> bool:
            return all(
                each["spec"].get("nodeName") or each["status"].get("conditions")
                for each in devices.get(PODS)["items"]
            )

        program.wait_for("each was tried", all_tried, 120)
        program.check()

    assert taken
    assert "Traceback" not in program.log.read_text("utf-8")


def answer_to(port: int, sent: bytes, then: bytes = b"", times: int = 0) -> bytes:
    """What a port answers to some bytes, and to more of them."""
    with socket.create_connection(("127.0.0.1", port), 30) as stranger, suppress(OSError):
        stranger.sendall(sent)
        for _ in range(times):
            stranger.sendall(then)
        return stranger.recv(200)
    return b""


def resident(pid: int) -> int:
    """The memory of a process in KiB."""
    lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def test_strangers_who_send_too_much_or_too_slowly(plane: ControlPlane, podium: Podium) -> None:
    since = fill(plane, 20)
    plain, secure = free_port(), free_port()

    def is_live() -> Any:
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{plain}/livez") as found:
            return found.status == 200

    flags = (f"--port={plain}", f"--secure-port={secure}", "--pages")
    with podium(*flags) as program, ExitStack() as slow:
        all_placed(plane)
        program.wait_for("it is live", is_live)
        before = resident(program.pid)
        host = b"Host: 127.0.0.1\r\n"
        post = b"POST /explain HTTP/1.1\r\n" + host + b"Content-Type: application/json\r\n"
        block = b"x" * 65536
        for port in (plain, secure):
            for _ in range(40):
                stranger = slow.enter_context(socket.create_connection(("127.0.0.1", port), 10))
                stranger.sendall(b"GET / HTTP/1.1\r\nX: ")
            heads = answer_to(port, b"GET /livez HTTP/1.1\r\nX: ", block, 64)
            lengths = answer_to(port, post + b"Content-Length: 9" + b"9" * 4400 + b"\r\n\r\n")
            bodies = answer_to(port, post + b"Content-Length: 99999999999\r\n\r\n", block, 1600)
            chunk = b"10000\r\n" + block + b"\r\n"
            chunked = answer_to(port, post + b"Transfer-Encoding: chunked\r\n\r\n", chunk, 1600)
            for answer in (heads, lengths, bodies, chunked):
                assert b" 200 " not in answer
        for path in ("/decisions?limit=" + "9" * 4400, "/decisions/" + "a" * 4000, "/%00%ff"):
            found = answer_to(plain, f"GET {path} HTTP/1.0\r\n".encode() + host + b"\r\n")
            assert b" 500 " not in found
        create_many(plane, PODS, pods(40, prefix="still", cpu="120m"))
        all_placed(plane)
        program.wait_for("it is live", is_live)
        program.check()
        assert resident(program.pid) - before < 100 * 1024

    assert "Traceback" not in program.log.read_text("utf-8")
    assert_sound(plane, since)


def test_a_pod_fits_as_soon_as_another_was_shrunk(plane: ControlPlane, podium: Podium) -> None:
    """The kubelet says so in the status of the shrunk pod; nothing else happens."""
    resources = {each["name"] for each in plane.get("/api/v1")["resources"]}
    if "pods/resize" not in resources:
        pytest.skip(f"{ABSENT} pods/resize")
    since = revision(plane)
    create_many(plane, "/api/v1/nodes", nodes(1, cpu="1"))
    with podium() as program:
        plane.add_pod("large", "podium", cpu="900m")
        program.wait_for("it is bound", lambda: plane.node_of("large"))

        def report(cpu: str) -> None:
            requests = {"requests": {"cpu": cpu}}
            state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
            status = {
                "name": "c",
                "image": "i",
                "imageID": "i",
                "ready": True,
                "restartCount": 0,
                "state": state,
                "allocatedResources": {"cpu": cpu},
                "resources": requests,
            }
            body = {"status": {"phase": "Running", "containerStatuses": [status]}}
            plane.call("PATCH", f"{PODS}/large/status", body, "merge-patch+json")

        report("900m")
        plane.add_pod("small", "podium", cpu="500m")
        program.wait_for("it waits", lambda: plane.events_of("small"))
        container = {"name": "c", "resources": {"requests": {"cpu": "100m"}}}
        wanted = {"spec": {"containers": [container]}}
        plane.call("PATCH", f"{PODS}/large/resize", wanted, "strategic-merge-patch+json")
        report("100m")
        program.wait_for("it is bound", lambda: plane.node_of("small"), 30)

    assert_sound(plane, since)
